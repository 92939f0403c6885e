#!/usr/bin/env bash
# Tests, timings, cross-check and calibration on one GPU; README.md says what it needs and leaves.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:?usage: tests/gpu/check.sh RESULT_FOLDER}
carry=${CARRY:-tests/gpu/carry}
kernel=${KERNEL:-fa3} dtype=${DTYPE:-bfloat16} budget=${BUDGET:-30}
python=${PYTHON:-python3}
read -ra more <<<"${CHECK_ARGS:-}"

[ -d "$carry/packs" ] || { echo "check.sh: no $carry/packs: run tests/gpu/prepare.sh first" >&2; exit 2; }
mkdir -p "$out"
exec > >(tee "$out/check.log") 2>&1
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
for wheel in "$carry"/wheels/*.whl; do
  [ ! -e "$wheel" ] || "$python" tests/gpu/unpack.py "$wheel" "$site"
done | tee "$out/wheels.sha256"
# What the machine has comes first, but for the kernel that was carried here.
export PYTHONPATH="$PWD/workflow:$PWD:$site${PYTHONPATH:+:$PYTHONPATH}"
cpbalance() { "$python" -m cpbalance "$@"; }

echo "== kernels"
cpbalance kernels | tee "$out/kernels.txt"

echo "== tests of the adapters"
"$python" -m pytest --noconftest -q -p no:cacheprovider -k "not wheel" tests/gpu \
  tests/unit/test_kernels.py tests/unit/test_kernel_choice.py tests/unit/test_cuda_device.py \
  | tee "$out/tests.txt"

for layer in full-mha full-gqa causal-mha causal-gqa; do
  case $layer in *mha) kv=64 ;; *) kv=8 ;; esac
  echo "== timing $layer"
  cpbalance time --kernel "$kernel" --packs "$carry"/packs/cp*.parquet --steps 2 \
    --attention-name "$layer" --q-heads 64 --kv-heads "$kv" --head-dim 128 "--${layer%-*}" \
    --dtype "$dtype" --budget "$budget" --seed 1 "${more[@]}" --output "$out/timings/$layer.parquet"
  cpbalance calibrate --timings "$out/timings/$layer.parquet" --packs "$carry"/packs/cp*.parquet \
    --table "$out/calibration/$layer.parquet" --output "$out/calibration/$layer.json"
done

echo "== cross-check against do_bench"
"$python" tests/gpu/crosscheck.py --timings "$out/timings/full-mha.parquet" \
  --packs "$carry"/packs/cp*.parquet --output "$out/crosscheck.csv"

size=$(du -sk "$out" | cut -f1)
[ "$size" -lt 16384 ] || { echo "check.sh: $out holds $size KiB: more than 16 MiB" >&2; exit 1; }
echo "== done: $out, $size KiB, $SECONDS s"
