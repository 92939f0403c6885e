"""``cpbalance artifact``: export, verify, show, extract and compare the artifact of a run."""

import argparse
import json
import math
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cpbalance.artifact import Artifact, extract_members, open_artifact, write_artifact
from cpbalance.artifact.format import MAX_BYTES, STAGES
from cpbalance.artifact.provenance import environment_document, run_document
from cpbalance.cli.json_arguments import json_object
from cpbalance.errors import InputError
from cpbalance.table_schemas import ARTIFACT_METRICS, ARTIFACT_SETTINGS
from cpbalance.tables import replacing, write_frame

HELP = "pack a finished run into one file, check such a file, take it apart"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this stage."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    export = actions.add_parser("export", help="write an artifact from the files of a run")
    export.add_argument("--root", type=Path, required=True, help="results/{experiment}")
    export.add_argument("--experiment", required=True)
    export.add_argument("--config", required=True, help="resolved configuration, as JSON")
    export.add_argument("--command", dest="remake", required=True, help="what makes the run again")
    export.add_argument("--license", default="CC-BY-4.0", help="SPDX identifier, for the data")
    export.add_argument("--output", type=Path, required=True)
    export.add_argument("files", type=Path, nargs="+", help="files below --root")
    export.set_defaults(act=_export)

    verify = _reading(actions, "verify", "check everything that can be checked")
    verify.add_argument("--made-with", metavar="JSON", help="refuse another configuration")
    verify.add_argument("--copy", type=Path, help="write a copy here if all is well")
    verify.set_defaults(act=_verify)
    show = _reading(actions, "show", "say what is inside and how it was made")
    show.add_argument("--config", action="store_true", help="print the configuration only, as JSON")
    show.set_defaults(act=_show)
    extract = _reading(actions, "extract", "check, then write the members out")
    extract.add_argument("--to", type=Path, required=True, help="folder")
    extract.add_argument("--force", action="store_true", help="replace files that differ")
    extract.add_argument("--only", nargs="+", default=[], help="members or stages (default: all)")
    extract.set_defaults(act=_extract)

    timings = _reading(actions, "timings", "check that timings fit packs, then write them out")
    timings.add_argument("--member", required=True, help="timings/KERNEL/ATTENTION/LENGTHS.parquet")
    timings.add_argument("--packs", type=Path, nargs="+", required=True, help="files of this run")
    timings.add_argument("--output", type=Path, required=True)
    timings.set_defaults(act=_timings)

    compare = actions.add_parser("compare", help="say how two artifacts differ")
    compare.add_argument("a", type=Path, metavar="A", help="artifact (*.crate.zip)")
    compare.add_argument("b", type=Path, metavar="B", help="another")
    compare.add_argument("--output-dir", type=Path, help="write the tables here too")
    compare.set_defaults(act=_compare)


def _reading(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text)
    parser.add_argument("path", type=Path, metavar="PATH", help="artifact (*.crate.zip)")
    parser.add_argument("--experiment", help="refuse an artifact of another experiment")
    parser.add_argument(
        "--limit-gib",
        type=float,
        default=MAX_BYTES / 2**30,
        help="refuse what inflates past this (default %(default)g)",
    )
    return parser


def run(args: argparse.Namespace) -> None:
    """Do what was asked."""
    args.act(args)


def _opened(args: argparse.Namespace) -> Any:
    if not 0 < args.limit_gib < math.inf:
        raise InputError(f"--limit-gib is {args.limit_gib}: give a number over 0")
    return open_artifact(args.path, args.experiment, int(args.limit_gib * 2**30))


def _export(args: argparse.Namespace) -> None:
    files = {}
    for path in args.files:
        if not path.is_relative_to(args.root):
            raise InputError(f"{path} is not below --root {args.root}: give files of the run")
        files[path.relative_to(args.root).as_posix()] = path
    config = json_object("--config", args.config)
    documents = {
        "config": config,
        "run": run_document(args.remake, config.get("seed")),
        "environment": environment_document(),
    }
    write_artifact(args.output, args.experiment, files, documents, args.license)


def _verify(args: argparse.Namespace) -> None:
    with _opened(args) as artifact:
        if args.made_with is not None:
            _check_config(artifact, json_object("--made-with", args.made_with))
        if args.copy is not None:
            with replacing(args.copy) as partial, partial.open("wb") as sink:
                # From the open file: what was checked, even if another has its name by now.
                artifact.archive.fp.seek(0)
                shutil.copyfileobj(artifact.archive.fp, sink)
        print(f"{artifact.path}: sound, experiment {artifact.experiment}, {_contents(artifact)}")


def _check_config(artifact: Artifact, config: Mapping[str, Any]) -> None:
    """Raise InputError unless the artifact was made with this configuration."""
    differing = sorted(
        key
        for key in artifact.config.keys() | config.keys()
        if artifact.config.get(key) != config.get(key)
    )
    if differing:
        raise InputError(
            f"{artifact.path}: was made with another {', '.join(differing)} than configured; save "
            f"its own with 'cpbalance artifact show --config', and give that with --configfile"
        )


def _show(args: argparse.Namespace) -> None:
    with _opened(args) as artifact:
        if args.config:
            print(json.dumps(artifact.config, indent=1))
            return
        environment = artifact.environment
        print(f"experiment   {artifact.experiment}")
        print(f"contents     {_contents(artifact)}")
        for key in ("command", "seed", "version", "revision", "date"):
            print(f"{key:<12} {artifact.run.get(key)}")
        print(f"machine      {environment.get('system')}, {environment.get('processor')}")
        print(f"software     Python {environment.get('python')}, {_software(environment)}")
        for stage in artifact.stages:
            print(f"{stage}: {STAGES[stage]}")
            for member in artifact.members(stage):
                print(f"  {artifact.sizes[member]:>12,}  {member}")


def _contents(artifact: Artifact) -> str:
    size = sum(artifact.sizes.values())
    return f"{len(artifact.sizes)} files, {size:,} bytes ({', '.join(artifact.stages)})"


def _software(environment: Mapping[str, Any]) -> str:
    packages = environment.get("packages", {})
    named = [
        f"{name} {packages[name]}"
        for name in ("snakemake", "torch", "numpy", "pyarrow")
        if name in packages
    ]
    return ", ".join([*named, f"{len(packages)} packages in all"])


def _extract(args: argparse.Namespace) -> None:
    with _opened(args) as artifact:
        wanted = _chosen(artifact, args.only)
        if not args.force:
            for member in wanted:
                _refuse_to_replace(artifact, member, args.to / member)
        extract_members(artifact, args.to, wanted)


def _timings(args: argparse.Namespace) -> None:
    # Only this action needs what calibration needs.
    from cpbalance.cli.calibrate import load as load_timings

    with (
        _opened(args) as artifact,
        replacing(args.output) as partial,
        tempfile.TemporaryDirectory(dir=partial.parent) as folder,
    ):
        extract_members(artifact, Path(folder), [args.member])
        found = Path(folder) / args.member
        try:
            load_timings(found, args.packs)
        except InputError as error:
            reason = str(error).removeprefix(f"{found}: ")
            raise InputError(
                f"{args.path}: {args.member} does not fit the packs here: {reason}; take lengths, "
                f"packing, cluster and seed from 'cpbalance artifact show --config {args.path}'"
            ) from error
        found.replace(partial)


def _compare(args: argparse.Namespace) -> None:
    # Only comparing needs pandas.
    from cpbalance.artifact.compare import as_text, metrics_differences, settings_differences

    names = artifact_names(args.a, args.b)
    with open_artifact(args.a) as a, open_artifact(args.b) as b:
        settings = settings_differences(a, b)
        frames = [side.table("tables/metrics.parquet").to_pandas() for side in (a, b)]
        metrics = metrics_differences(*frames, names)
        print(as_text(settings, metrics, names), end="")
        if args.output_dir is not None:
            made = {"stage": "compare", "artifacts": names}
            for schema, frame in ((ARTIFACT_SETTINGS, settings), (ARTIFACT_METRICS, metrics)):
                write_frame(args.output_dir / f"{schema.name}.parquet", schema, frame, made)


def artifact_names(a: Path, b: Path) -> tuple[str, str]:
    """Names to tell two artifacts apart: those of their files, marked where they agree."""
    first, second = (path.name.removesuffix(".zip").removesuffix(".crate") for path in (a, b))
    return (first, second) if first != second else (f"{first} (a)", f"{second} (b)")


def _chosen(artifact: Artifact, names: list[str]) -> list[str]:
    """Members that the names, of members or of stages, stand for; all for none."""
    chosen: list[str] = []
    for name in names:
        chosen += artifact.members(name.rstrip("/")) if name.rstrip("/") in STAGES else [name]
    return chosen if names else sorted(artifact.sizes)


def _refuse_to_replace(artifact: Artifact, member: str, target: Path) -> None:
    if target.is_dir() or (target.is_file() and target.read_bytes() != artifact.read(member)):
        raise InputError(
            f"{target} exists and differs from the artifact's: move it, choose another --to, or "
            f"add --force"
        )
