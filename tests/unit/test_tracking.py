"""Code digests: which module changes which stage."""

import pytest

from cpbalance import tracking
from cpbalance.cli import COMMANDS


def stages_of(module):
    return {c for c in COMMANDS if module in tracking.modules_of(f"cpbalance.cli.{c}")}


@pytest.mark.parametrize(
    ("module", "in_stages", "not_in"),
    [
        ("cpbalance.packing.concat_split", {"pack"}, {"sample", "simulate", "plot", "time"}),
        ("cpbalance.lengths.families", {"sample"}, {"pack", "simulate", "plot"}),
        ("cpbalance.costs", {"simulate"}, {"sample", "pack", "plot"}),
        ("cpbalance.metrics", {"aggregate"}, {"sample", "pack", "simulate", "plot"}),
        ("cpbalance.table_schemas", {"aggregate", "plot"}, {"sample", "pack", "simulate", "time"}),
        ("cpbalance.config", set(), {"sample", "pack", "simulate", "time"}),
        ("cpbalance.tables", {"sample", "pack", "simulate", "aggregate", "plot"}, set()),
    ],
)
def test_a_module_counts_for_the_stages_that_import_it(module, in_stages, not_in):
    stages = stages_of(module)
    assert in_stages <= stages and not (not_in & stages)


def test_the_digest_follows_the_bytes(tmp_path, monkeypatch):
    package = tmp_path / "cpbalance"
    (package / "cli").mkdir(parents=True)
    for name, text in {
        "__init__.py": "",
        "cli/__init__.py": "import cpbalance.cli.other",
        "cli/stage.py": "def run():\n    from cpbalance.data import value",
        "cli/other.py": "",
        "data/__init__.py": "value = 1",
    }.items():
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(text)
    monkeypatch.setattr(tracking, "PACKAGE", package)

    def digest():
        tracking._imports.cache_clear()
        tracking.code_digest.cache_clear()
        return tracking.code_digest("stage")

    before = digest()
    (package / "cli/other.py").write_text("# not imported by the stage")
    (package / "cli/__init__.py").write_text("# the dispatcher")
    assert digest() == before
    (package / "data/table.csv").write_text("1")
    with_data = digest()
    assert with_data != before
    (package / "data/__init__.py").write_text("value = 2")
    assert digest() not in (before, with_data)
    tracking._imports.cache_clear()
    tracking.code_digest.cache_clear()


def test_no_such_stage():
    with pytest.raises(KeyError):
        tracking.code_digest("nothing")


def test_the_library_imports_no_snakemake():
    for path in tracking.PACKAGE.rglob("*.py"):
        assert not any("snakemake" in n for n in _all_imports(path)), path


def _all_imports(path):
    import ast

    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
