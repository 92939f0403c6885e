#!/usr/bin/env bash
# Run the workflow so that it can be killed at any moment and simply started again: one run at a
# time in this folder, and a lock that a killed run left behind is taken away.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .snakemake

# Jobs of a killed run hold this lock too, until they end: nothing is written twice at once.
exec 9>.snakemake/run.lock
if ! flock --nonblock 9; then
  echo "run.sh: another run, or a job that one left behind, is still going; waiting for it" >&2
  flock 9
fi

running_elsewhere() { # a snakemake of this folder that was not started by this script
  local process
  for process in /proc/[0-9]*; do
    [ "${process#/proc/}" != $$ ] || continue
    [ "$(readlink "$process/cwd" 2>/dev/null)" = "$PWD" ] || continue
    if tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -qE '(bin/|-m )snakemake '; then return 0; fi
  done
  return 1
}

if [ -n "$(ls -A .snakemake/locks 2>/dev/null)" ]; then
  if running_elsewhere; then
    echo "run.sh: snakemake is running in this folder; wait for it, or stop it, then run again" >&2
    exit 1
  fi
  snakemake --unlock >/dev/null 2>&1
fi
exec snakemake --rerun-incomplete --quiet host reason rules --show-failed-logs "$@"
