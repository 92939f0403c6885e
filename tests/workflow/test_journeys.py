"""What a user does: run, run again, ask for one thing, change one thing, be interrupted."""

import os
import random
import signal
import time

import pandas as pd
import pytest
import yaml

from tests.workflow.harness import REPOSITORY, TIMEOUT_S, Workspace

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("journeys")]


def test_the_run_leaves_tables_and_figures(finished):
    results = finished.folder / "results" / "tiny"
    metrics = pd.read_csv(results / "tables" / "metrics.csv")
    simulated = metrics[metrics["source"] == "simulated"]
    assert set(simulated["lengths"]) == {"exponential", "corpus"}
    assert set(simulated["cp_size"]) == {1, 2, 8}
    assert (simulated["steps"] == 6).all()
    one_group = simulated.query("cp_size == 8 and metric == 'imbalance'")["value"]
    assert (one_group == 0).all()
    for figure in ("imbalance", "variance", "rank_costs"):
        for ending, magic in ((".pdf", b"%PDF"), (".png", b"\x89PNG"), (".csv", b"")):
            file = results / "figures" / f"{figure}{ending}"
            assert file.read_bytes().startswith(magic)
            assert file.stat().st_size > 100
    assert "exponential" in (results / "tables" / "headline.txt").read_text()


def test_a_second_run_has_nothing_to_do(finished):
    assert "Nothing to be done" in finished.snakemake().stderr


def test_zero_length_documents_are_dropped_and_counted(finished):
    """The tiny corpus has a document of no tokens at every 97th of 400 places."""
    log = (finished.folder / "logs" / "sample_lengths" / "corpus.log").read_text()
    assert log == "tiny-lengths.txt: left out 5 documents of no tokens\n"


def test_targets_are_listed_with_a_sentence(finished):
    listed = finished.snakemake("--list-target-rules").stdout
    for target in ("all", "lengths", "packs", "costs", "tables", "figures"):
        line = next(line for line in listed.splitlines() if line.split()[:1] == [target])
        assert line.endswith(".)"), line


def test_one_file_is_a_target(finished):
    clone_jobs = finished.jobs("--forcerun", "pack_batches", "--until", "pack_batches")
    assert clone_jobs == {"pack_batches": 6}
    target = "results/tiny/packs/corpus/concat_split/cp2.parquet"
    assert finished.jobs(target, "--force") == {"pack_batches": 1}


def test_one_or_two_cores_and_a_forced_rerun_give_the_same_bytes(finished, clone):
    workspace = clone()
    workspace.snakemake("--cores", "1", "--forceall")
    assert workspace.digests() == finished.digests()


# --- tracking ---

PACKING = "workflow/cpbalance/packing/concat_split.py"
AFTER_PACKING = {"pack_batches": 6, "simulate_costs": 6, "aggregate_statistics": 1}


def only(jobs, *rules):
    return {rule: jobs.get(rule, 0) for rule in rules}


def test_an_edited_packing_module_reruns_packing_and_what_follows(clone):
    workspace = clone()
    workspace.edit(PACKING, '"""Concat-then-split:', '"""Edited. Concat-then-split:')
    jobs = workspace.jobs()
    assert "sample_lengths" not in jobs
    assert only(jobs, *AFTER_PACKING) == AFTER_PACKING
    assert jobs["render_figures"] >= 1


def test_an_edited_figure_module_reruns_that_figure(clone):
    workspace = clone()
    workspace.edit("workflow/cpbalance/figures/variance.py", '"""Variance', '"""Edited. Variance')
    assert only(workspace.jobs(), "render_figures", "aggregate_statistics") == {
        "render_figures": 1,
        "aggregate_statistics": 0,
    }


def test_an_edited_lengths_module_reruns_sampling(clone):
    workspace = clone()
    workspace.edit("workflow/cpbalance/lengths/caps.py", '"""What', '"""Edited. What')
    assert workspace.jobs()["sample_lengths"] == 2


def test_swapped_values_are_noticed(clone):
    """min_tokens and max_seq_len swap values with each other: one set of values, another run."""
    workspace = clone()
    config = workspace.folder / "tiny.yaml"
    text = config.read_text()
    before = "{family: normal, mean: 100, cv: 0.5, min_tokens: 7, max_seq_len: 512}"
    after = "{family: normal, mean: 100, cv: 0.5, min_tokens: 512, max_seq_len: 512}"
    first = text.replace("{family: exponential, mean_fraction: 0.125, max_seq_len: 512}", before)
    assert first != text
    config.write_text(first)
    workspace.snakemake("results/tiny/lengths/exponential.parquet")
    assert "sample_lengths" not in workspace.jobs("results/tiny/lengths/exponential.parquet")
    config.write_text(first.replace(before, after))
    assert workspace.jobs("results/tiny/lengths/exponential.parquet")["sample_lengths"] == 1


def test_swapped_arguments_of_one_job_are_noticed(clone):
    """seed 3 and steps 6 become seed 6 and steps 3."""
    workspace = clone()
    workspace.edit("tiny.yaml", "seed: 3\nsteps: 6", "seed: 6\nsteps: 3")
    assert workspace.jobs()["sample_lengths"] == 2


def test_a_changed_corpus_is_noticed_and_a_touched_one_is_not(clone):
    workspace = clone()
    corpus = workspace.folder / "tiny-lengths.txt"
    os.utime(corpus)
    assert workspace.jobs() == {}
    corpus.write_text(corpus.read_text() + "55\n")
    assert workspace.jobs()["sample_lengths"] == 1


@pytest.mark.parametrize("notes", [True, False])
def test_a_fresh_clone_with_finished_results_reruns_nothing(clone, notes):
    """Also where every source file is newer than the results, as after `git clone`."""
    workspace = clone(notes)
    for part in ("workflow", "config", "resources"):
        for file in (workspace.folder / part).rglob("*"):
            os.utime(file)
    assert workspace.jobs() == {}


def test_new_settings_of_one_stage_leave_the_stages_before_it_alone(clone):
    workspace = clone()
    workspace.edit("tiny.yaml", "bootstrap: 200", "bootstrap: 100")
    jobs = workspace.jobs()
    assert jobs["aggregate_statistics"] == 1
    assert not {"sample_lengths", "pack_batches", "simulate_costs"} & set(jobs)


# --- interruption ---


def test_a_killed_run_goes_on_to_the_same_bytes(finished, tmp_path):
    """SIGKILL to the run and all its jobs at a random moment, then the same command again."""
    moment = random.uniform(2, 9)
    workspace = Workspace(tmp_path / "killed")
    command = ["scripts/run.sh", "--configfile", "tiny.yaml", "--cores", "2"]
    run = workspace.start(*command)
    time.sleep(moment)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait(TIMEOUT_S)
    workspace.run(*command)
    assert workspace.digests() == finished.digests(), f"killed after {moment:.2f} s"
    assert not list(workspace.folder.rglob("*.partial"))


def test_a_second_run_waits_for_the_first(finished, clone):
    """Two runs at once in one folder: the second waits, then has nothing to do."""
    workspace = clone()
    workspace.edit("tiny.yaml", "bootstrap: 200", "bootstrap: 150")
    command = ["scripts/run.sh", "--configfile", "tiny.yaml", "--cores", "1"]
    first = workspace.start(*command)
    lock = workspace.folder / ".snakemake" / "run.lock"
    deadline = time.monotonic() + 30
    while not lock.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    second = workspace.run(*command)
    assert first.wait(TIMEOUT_S) == 0
    assert "waiting for it" in second.stderr and "Nothing to be done" in second.stderr


# --- the shipped configuration ---


def test_the_default_configuration_is_the_articles_and_makes_a_full_plan():
    from cpbalance.config import parse_config

    config = parse_config(yaml.safe_load((REPOSITORY / "config" / "config.yaml").read_text()))
    assert (config.cluster.world_size, config.cluster.tokens_per_gpu) == (128, 8192)
    assert {"exponential", "normal", "linux-code"} <= set(config.lengths)
    assert config.lengths["normal"].mean * config.lengths["normal"].cv == 256


def test_the_schema_of_the_configuration_is_up_to_date():
    from cpbalance.cli.schema import schema_text

    shipped = (REPOSITORY / "workflow" / "schemas" / "config.schema.json").read_text()
    assert shipped == schema_text(), "run `make schema`"
