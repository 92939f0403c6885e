#!/usr/bin/env bash
# Run the workflow so that it can be killed at any moment and simply started again: one run at a
# time in this folder, and a lock that a killed run left behind is taken away. With --cancel-jobs in
# front, jobs that such a run left on a SLURM cluster are cancelled, and waited for, before.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .snakemake
cancel_jobs=no
if [ "${1:-}" = --cancel-jobs ]; then
  cancel_jobs=yes
  shift
fi

# Jobs of a killed run hold this lock too, until they end: nothing is written twice at once.
exec 9>.snakemake/run.lock
if ! flock --nonblock 9; then
  echo "run.sh: another run, or a job that one left behind, is still going; waiting for it" >&2
  flock 9
fi

running_elsewhere() { # a snakemake of this folder, not one within a job, that this script did not start
  local process
  for process in /proc/[0-9]*; do
    [ "${process#/proc/}" != $$ ] || continue
    [ "$(readlink "$process/cwd" 2>/dev/null)" = "$PWD" ] || continue
    if tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -E '(bin/|-m )snakemake ' |
      grep -qv -e ' --mode '; then return 0; fi
  done
  return 1
}

locked() { [ -n "$(ls -A .snakemake/locks 2>/dev/null)" ]; }

if locked && running_elsewhere; then
  echo "run.sh: snakemake is running in this folder; wait for it, or stop it, then run again" >&2
  exit 1
fi
if [ $cancel_jobs = yes ]; then cpbalance slurm cancel; fi
if locked; then snakemake --unlock >/dev/null 2>&1; fi
exec snakemake --rerun-incomplete --quiet host reason rules --show-failed-logs "$@"
