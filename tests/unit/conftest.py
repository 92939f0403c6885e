"""A tiny run of an experiment and its artifact, for the tests of artifacts."""

import pytest

from cpbalance import tables
from cpbalance.cli import main
from cpbalance.stage_schemas import COSTS, LENGTHS


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """Files of a tiny run of the experiment ``demo``."""
    root = tmp_path_factory.mktemp("run") / "demo"
    columns = {"step": [0, 0, 1], "num_tokens": [5, 3, 8]}
    tables.write_table(root / "lengths/demo.parquet", LENGTHS, columns, {"stage": "sample"})
    columns = {"step": [0, 1], "pack": [0, 0], "attention_pairs": [34, 64], "cost": [34.0, 64.0]}
    tables.write_table(root / "costs/demo/cp1.parquet", COSTS, columns, {})
    (root / "calibration").mkdir()
    (root / "calibration/cpu.json").write_text('{"fixed": 1.0}')
    return root


@pytest.fixture(scope="session")
def export_artifact():
    """Export every file below a folder; returns the exit status."""

    def export(root, output):
        command = ["artifact", "export", "--root", str(root), "--experiment", "demo"]
        command += ["--config", '{"experiment":"demo","seed":7}', "--command", "snakemake all"]
        command += ["--output", str(output)]
        return main([*command, *sorted(str(p) for p in root.rglob("*") if p.is_file())])

    return export


@pytest.fixture(scope="session")
def artifact(export_artifact, run_folder, tmp_path_factory):
    path = tmp_path_factory.mktemp("artifact") / "demo.crate.zip"
    assert export_artifact(run_folder, path) == 0
    return path
