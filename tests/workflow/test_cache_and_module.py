"""Sharing between workflows: one cache of results for many clones, and use as a module."""

import pytest

from tests.workflow.harness import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("journeys")]

# Two of everything, equal but for their names: what differs in nothing but a wildcard.
SEVERAL = """
experiment: tiny
seed: 3
steps: 2
cluster: {world_size: 8, cp_sizes: [1, 2], tokens_per_gpu: 512}
attention:
  one: {q_heads: 8, kv_heads: 8, head_dim: 32, causal: false}
  two: {q_heads: 8, kv_heads: 8, head_dim: 32, causal: false}
costs: [quadratic, full_pairs]
lengths:
  one: {family: constant, mean: 100}
  two: {family: constant, mean: 100}
"""
# Each with its density.
THEORY = ("results/tiny/theory/one.parquet", "results/tiny/theory/two.parquet")


def run_cached(workspace, cache, monkeypatch, *targets):
    """Make ``targets``; how many files were fetched, and how many computed."""
    monkeypatch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(cache))
    targets = targets or ("costs", *THEORY)
    log = workspace.snakemake(*targets, "--cache", config="several.yaml").stderr
    stored = log.count("Moving output file")
    return {"fetched": log.count("Symlinking output file") - stored, "computed": stored}


def new_clone(folder):
    workspace = Workspace(folder)
    (folder / "several.yaml").write_text(SEVERAL)
    return workspace


@pytest.fixture(scope="module")
def cached(tmp_path_factory):
    """A clone that put lengths, packs, costs and theory, all of it, into a cache; and the cache."""
    folder = tmp_path_factory.mktemp("cached")
    (folder / "cache").mkdir()
    first = new_clone(folder / "first")
    with pytest.MonkeyPatch.context() as patch:
        assert run_cached(first, folder / "cache", patch) == {"fetched": 0, "computed": 26}
    return first, folder / "cache"


def test_no_two_results_share_an_entry(cached):
    first, cache = cached
    entries = {path.resolve() for path in (first.folder / "results").rglob("*.parquet")}
    assert len(entries) == 26 == len(list(cache.iterdir()))


def test_a_second_clone_computes_nothing_and_gets_the_same_bytes(cached, tmp_path, monkeypatch):
    first, cache = cached
    second = new_clone(tmp_path / "second")
    assert run_cached(second, cache, monkeypatch) == {"fetched": 26, "computed": 0}
    assert second.digests() == first.digests()


def test_an_edited_module_or_parameter_misses(cached, tmp_path, monkeypatch):
    _, cache = cached
    second = new_clone(tmp_path / "second")
    module = "workflow/cpbalance/packing/concat_split.py"
    second.edit(module, '"""Concat-then-split:', '"""Edited. Concat-then-split:')
    pack = "results/tiny/packs/one/concat_split/cp1.parquet"
    assert run_cached(second, cache, monkeypatch, pack) == {"fetched": 1, "computed": 1}
    third = new_clone(tmp_path / "third")
    third.edit("several.yaml", "seed: 3", "seed: 4")
    assert run_cached(third, cache, monkeypatch, pack) == {"fetched": 0, "computed": 2}


MODULE = """
configfile: "settings.yaml"

module balance:
    snakefile: "{snakefile}"
    prefix: "balance"
    config: config["balance"]

use rule * from balance as balance_*

rule mine:
    default_target: True
    input:
        "balance/results/tiny/tables/metrics.csv",
    output:
        "mine.csv",
    shell:
        "head -n 1 {{input}} > {{output}}"
"""


def test_another_workflow_imports_this_one(finished, tmp_path):
    """With a prefix and a configuration of its own: the same bytes, below the prefix."""
    library = Workspace(tmp_path / "library")
    user = tmp_path / "user"
    user.mkdir()
    snakefile = library.folder / "workflow" / "Snakefile"
    (user / "Snakefile").write_text(MODULE.format(snakefile=snakefile))
    settings = (library.folder / "tiny.yaml").read_text().replace("\n", "\n  ")
    (user / "settings.yaml").write_text(f"balance:\n  {settings}\n")
    (user / "tiny-lengths.txt").write_bytes((library.folder / "tiny-lengths.txt").read_bytes())
    library.run("snakemake", "--cores", "2", "-d", str(user), "-s", str(user / "Snakefile"))
    table = "results/tiny/tables/metrics.csv"
    assert (user / "balance" / table).read_bytes() == (finished.folder / table).read_bytes()
    assert (user / "mine.csv").read_text().startswith("lengths,packing,attention,cost,source")
    assert {path.name for path in user.iterdir()} == {
        *("Snakefile", "settings.yaml", "tiny-lengths.txt", ".snakemake", "mine.csv", "balance"),
    }
