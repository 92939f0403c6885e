import os
import re
import shutil

from snakemake.exceptions import WorkflowError

# A file given with --configfile replaces the default one: merged, the article's lengths would
# stand among the user's own.
if not workflow.config_settings.configfiles:

    configfile: "config/config.yaml"


try:
    from cpbalance.artifact import adopt_config
    from cpbalance.artifact.arguments import (
        artifact_files,
        check_arguments,
        check_timings_source,
        export_arguments,
        import_arguments,
    )
    from cpbalance.artifact.provenance import revision
    from cpbalance.config import parse_config
    from cpbalance.errors import InputError
    from cpbalance.names import FIGURE_STAGES, FIGURE_TABLES
    from cpbalance.plan import make_plan
    from cpbalance.tracking import code_digest
except ImportError as error:
    raise WorkflowError(
        f"cpbalance is not installed ({error}): run `make`, then `source .venv/bin/activate`"
    )

if shutil.which("cpbalance") is None:
    raise WorkflowError(
        "the command cpbalance is not found: run `source .venv/bin/activate`"
    )

try:
    plan = make_plan(parse_config(adopt_config(config)))
    check_timings_source(plan)
except InputError as error:
    raise WorkflowError(str(error)) from None

RESULTS = plan.results
# Captions of the report read the settings with their defaults, or those of the artifact.
config.update(plan.config.model_dump(mode="json"))
REPORT_LABELS = plan.report_labels()


# Used with --software-deployment-method apptainer only; see envs/h100.def.
container: "envs/h100.sif"


# Used with --software-deployment-method conda only.
CPU_ENVIRONMENT = "../../envs/cpu.yaml"
TIMING_ENVIRONMENT = "../../envs/h100.yaml"


def shard_file(path):
    """Output of a stage that may be split by step: then it is one shard, kept until the merge."""
    return temp(path) if plan.sharded else path


def timing_file(path):
    """The same of a timing run that is split by step."""
    return temp(path) if plan.config.shards.time > 1 else path


def figure_tables(wildcards):
    """The tables that a figure is drawn from."""
    return [
        f"{RESULTS}/tables/{table}.parquet" for table in FIGURE_TABLES[wildcards.figure]
    ]


def local_or_storage(artifact):
    """An artifact as input of a rule: a path, or a URL that a storage plugin fetches."""
    # Absolute, for the prefix of a module is for what the module makes.
    return storage(artifact) if "://" in artifact else os.path.abspath(artifact)


wildcard_constraints:
    lengths="|".join(map(re.escape, plan.config.lengths)),
    packing="|".join(map(re.escape, plan.config.packing)),
    attention="|".join(map(re.escape, plan.config.attention)),
    cost="|".join(map(re.escape, plan.config.costs)),
    cp="|".join(map(str, plan.config.cluster.cp_sizes)),
    kernel="|".join(plan.config.timing) or "(?!)",
    # Snakemake takes an empty constraint for none.
    time_part="|".join(map(re.escape, plan.parts("time"))) or "(?:)",
    part="|".join(map(re.escape, plan.parts("simulate"))) or "(?:)",
