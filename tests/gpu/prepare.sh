#!/usr/bin/env bash
# Fills tests/gpu/carry/ with what check.sh needs on a machine without a network.
set -euo pipefail
cd "$(dirname "$0")/../.."
carry=${CARRY:-tests/gpu/carry}
mkdir -p "$carry/wheels" "$carry/packs"

python3 -m pip download --quiet --no-deps --only-binary :all: --python-version 3.11 \
  --platform manylinux_2_24_x86_64 --abi abi3 --abi none --dest "$carry/wheels" fa3-fwd==0.0.3
python3 -m pip download --quiet --only-binary :all: --dest "$carry/wheels" pytest==9.2.0

lengths='{"family":"exponential","mean":1024,"min_tokens":10,"max_seq_len":8192}'
cpbalance sample --name exponential --lengths "$lengths" --tokens-per-gpu 8192 \
  --tokens-per-step 1048576 --steps 2 --seed 1 --output "$carry/lengths.parquet"
for cp in 1 2 4 8 16 32 64; do
  cpbalance pack --lengths "$carry/lengths.parquet" --packing concat_split --world-size 128 \
    --cp-size "$cp" --tokens-per-gpu 8192 --output "$carry/packs/cp$cp.parquet"
done
du -sh "$carry"
