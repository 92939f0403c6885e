"""What the workflow's rules about artifacts read, and the arguments of their commands.

One canonical string a command, as in :mod:`cpbalance.plan`.
"""

import json
import shlex
from pathlib import Path

from cpbalance.artifact.reader import open_artifact
from cpbalance.errors import InputError
from cpbalance.plan import Plan

REMAKE = "snakemake --cores all artifact --configfile config.json"
# Keys that say where to draw from, not what to compute.
SOURCES = {"artifact", "timings_from", "compare"}


def artifact_files(plan: Plan) -> list[str]:
    """What the artifact holds: tables, timings, calibrations, and the large stages asked for."""
    large = {"lengths": plan.lengths_files, "packs": plan.pack_files, "costs": plan.cost_files}
    return [
        *plan.table_files(),
        *plan.timing_files(),
        *plan.calibration_files("json"),
        *plan.calibration_files("parquet"),
        *(path for stage in plan.config.export.stages for path in large[stage]()),
    ]


def export_arguments(plan: Plan) -> str:
    """Arguments of ``cpbalance artifact export`` but for its files."""
    words = ["--experiment", plan.config.experiment, "--config", _resolved(plan)]
    return shlex.join([*words, "--command", REMAKE, "--license", plan.config.export.license])


def check_arguments(plan: Plan) -> str:
    """Arguments of ``cpbalance artifact verify`` for an artifact to draw from."""
    return shlex.join(["--experiment", plan.config.experiment, "--made-with", _resolved(plan)])


def import_arguments(plan: Plan) -> str:
    """Arguments of ``cpbalance artifact extract`` that name the tables."""
    return shlex.join(["--only", *(_member(plan, path) for path in plan.table_files())])


def check_timings_source(plan: Plan) -> None:
    """Raise InputError, before anything runs, unless the timings asked for are there.

    A URL is fetched and checked later.
    """
    source = plan.config.timings_from
    if source is None or "://" in source:
        return
    wanted = [_member(plan, path) for path in plan.timing_files()]
    if not wanted:
        raise InputError(
            f"config: timings_from is {source!r}, but timing names no kernel; name those that the "
            f"artifact holds"
        )
    with open_artifact(Path(source)) as artifact:
        for member in wanted:
            if member not in artifact.sizes:
                held = ", ".join(artifact.members("timings")) or "no timings"
                raise InputError(f"{source}: holds no {member}; it holds {held}")


def _member(plan: Plan, path: str) -> str:
    return path.removeprefix(f"{plan.results}/")


def _resolved(plan: Plan) -> str:
    """The configuration that makes the run again, in the order that it was given."""
    return json.dumps(plan.config.model_dump(mode="json", exclude=SOURCES), allow_nan=False)
