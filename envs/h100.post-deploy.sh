#!/usr/bin/env bash
# Snakemake runs this once, inside the new environment, in the folder that it was started in: the
# command cpbalance then runs the code of that clone.
set -euo pipefail
[ -f pyproject.toml ] || { echo "start snakemake --sdm conda in the clone of cpbalance" >&2; exit 1; }
"$CONDA_PREFIX/bin/python" -m pip install --quiet --no-deps --no-build-isolation --editable .
