"""What a user does with artifacts: make one, draw from one, and get the same bytes."""

import functools
import http.server
import shutil
import threading
import zipfile

import pandas as pd
import pytest

from tests.workflow.harness import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("journeys")]
ARTIFACT = "results/tiny/tiny.crate.zip"
TABLE = "results/tiny/tables/metrics.csv"
FIGURES = "results/tiny/figures"


@pytest.fixture(scope="module")
def artifact(finished, tmp_path_factory):
    """The artifact of the finished run, made in a copy of it."""
    folder = tmp_path_factory.mktemp("artifact") / "copy"
    shutil.copytree(finished.folder, folder, symlinks=True)
    Workspace.at(folder).snakemake("artifact")
    return folder / ARTIFACT


@pytest.fixture(scope="module")
def measured(timed, tmp_path_factory):
    """The artifact of a run that timed a kernel."""
    folder = tmp_path_factory.mktemp("measured") / "copy"
    shutil.copytree(timed.folder, folder, symlinks=True)
    Workspace.at(folder).snakemake("artifact", config="timed.yaml")
    return folder / ARTIFACT


@pytest.fixture
def empty(tmp_path):
    """A clone in which nothing has run."""
    return Workspace(tmp_path / "empty")


def test_its_own_settings_make_the_same_bytes_elsewhere_on_another_number_of_cores(artifact, empty):
    with zipfile.ZipFile(artifact) as archive:
        archive.extract("config.json", empty.folder)
    empty.snakemake("--cores", "1", "artifact", config="config.json")
    assert (empty.folder / ARTIFACT).read_bytes() == artifact.read_bytes()


def test_figures_from_an_artifact_are_those_of_the_run(finished, artifact, empty):
    # The settings are the artifact's own: what is configured beside it does not count.
    empty.edit("tiny.yaml", "steps: 6", "steps: 9")
    (empty.folder / "tiny-lengths.txt").unlink()
    drawing = ("figures", "--config", f"artifact={artifact}")
    assert set(empty.jobs(*drawing)) == {
        "check_artifact",
        "import_tables",
        "render_figures",
        "figures",
    }
    empty.snakemake(*drawing)
    assert empty.digests("figures", "tables") == finished.digests("figures", "tables")
    assert empty.jobs(*drawing) == {}


def test_drawing_needs_no_kernel_package(timed, measured, empty, monkeypatch):
    """No torch, no kernel package, no GPU: importing one ends the process."""
    for name in ("torch", "flash_attn", "flash_attn_interface", "fa3_fwd_interface"):
        (empty.folder / "workflow" / name).mkdir()
        module = empty.folder / "workflow" / name / "__init__.py"
        module.write_text(f"raise SystemExit('{name} was imported')")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    planned = empty.jobs("figures", "--config", f"artifact={measured}")
    assert "time_kernels" not in planned and planned["import_tables"] == 1
    assert planned["render_figures"] == len(list((timed.folder / FIGURES).glob("*.pdf")))
    figure = f"{FIGURES}/calibration_imbalance.pdf"
    empty.snakemake(figure, "--config", f"artifact={measured}")
    assert (empty.folder / figure).read_bytes() == (timed.folder / figure).read_bytes()


@pytest.fixture
def url(artifact):
    """URL of the artifact, served on the loopback."""
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=str(artifact.parent)
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}/{artifact.name}"
        running.shutdown()
        thread.join()


def test_artifact_from_a_url(finished, empty, url):
    command = (TABLE, "--config", f"artifact={url}")
    empty.snakemake(*command)
    assert (empty.folder / TABLE).read_bytes() == (finished.folder / TABLE).read_bytes()


def test_artifact_from_a_url_made_with_other_settings(empty, url):
    empty.edit("tiny.yaml", "steps: 6", "steps: 9")
    refused = empty.snakemake(TABLE, "--config", f"artifact={url}", check=False)
    assert refused.returncode
    assert "was made with another steps than configured" in refused.stdout + refused.stderr
    assert not (empty.folder / TABLE).exists()


def test_bad_artifact_leaves_finished_results_alone(finished, artifact, clone, tmp_path):
    workspace = clone()
    broken, other = tmp_path / "broken.zip", tmp_path / "other.zip"
    broken.write_bytes(artifact.read_bytes()[:-100])
    shutil.copy(artifact, other)
    refusals = {
        (broken, "tiny"): "truncated, or not a zip",
        (other, "mine"): "holds experiment 'tiny', but 'mine' is configured",
        (tmp_path / "none.zip", "tiny"): "no such file",
    }
    for (path, experiment), message in refusals.items():
        settings = ("--config", f"artifact={path}", f"experiment={experiment}")
        refused = workspace.snakemake("figures", "--forceall", *settings, check=False)
        assert refused.returncode and message in refused.stderr
    assert workspace.digests() == finished.digests()


def test_large_stages_are_in_by_choice(clone):
    workspace = clone()
    config = workspace.folder / "tiny.yaml"
    config.write_text(config.read_text() + "export: {stages: [lengths, packs], license: CC0-1.0}\n")
    assert workspace.jobs("artifact") == {"export_artifact": 1, "artifact": 1}
    workspace.snakemake("artifact")
    with zipfile.ZipFile(workspace.folder / ARTIFACT) as archive:
        names = archive.namelist()
    assert "lengths/corpus.parquet" in names
    assert "packs/exponential/concat_split/cp2.parquet" in names
    assert not any(name.startswith("costs/") for name in names)


def test_timings_from_an_artifact_with_simulations_from_here(timed, measured, empty):
    shutil.copy(timed.folder / "timed.yaml", empty.folder)
    arguments = ("tables", "--config", f"timings_from={measured}")
    planned = empty.jobs(*arguments, config="timed.yaml")
    assert "time_kernels" not in planned and planned["import_timings"] == 1
    assert planned["simulate_costs"] > 0 and planned["calibrate_kernels"] == 1
    empty.snakemake(*arguments, config="timed.yaml")
    folders = ("timings", "calibration", "costs", "tables")
    assert empty.digests(*folders) == timed.digests(*folders)


def test_timings_of_other_packs_are_refused(timed, measured, empty):
    shutil.copy(timed.folder / "timed.yaml", empty.folder)
    empty.edit("timed.yaml", "seed: 3", "seed: 4")
    arguments = ("timings", "--config", f"timings_from={measured}")
    refused = empty.snakemake(*arguments, config="timed.yaml", check=False)
    assert refused.returncode
    assert "exponential.parquet does not fit the packs here" in refused.stderr
    assert empty.digests("timings") == {}


def test_timings_from_an_artifact_without_them(artifact, timed, empty):
    shutil.copy(timed.folder / "timed.yaml", empty.folder)
    arguments = ("timings", "--config", f"timings_from={artifact}")
    refused = empty.snakemake(*arguments, config="timed.yaml", check=False)
    assert refused.returncode and "it holds no timings" in refused.stderr


def test_two_artifacts_side_by_side(artifact, measured, empty):
    empty.snakemake("compare", "--config", f"compare=[{artifact},{measured}]")
    folder = empty.folder / "results/tiny/compare"
    assert "tiny (a)" in (folder / "differences.txt").read_text()
    settings = pd.read_csv(folder / "artifact_settings.csv")
    assert "timing.torch_cpu.dtype" in set(settings.query("kind == 'config'")["item"])
    metrics = pd.read_csv(folder / "artifact_metrics.csv")
    theory = {"theory:iid", "theory:renewal", "theory:distribution"}
    assert set(metrics["source_b"]) == {"simulated", *theory}
    # Timing a kernel changes nothing of what is simulated or predicted.
    assert (metrics["value_a"] == metrics["value_b"]).all()
    assert metrics.loc[metrics["source_a"] == "simulated", "overlap"].all()
    assert (folder / "figures/artifact_metrics.pdf").is_file()


def test_comparing_takes_two(artifact, empty):
    refused = empty.snakemake("--config", f"compare=[{artifact}]", check=False)
    assert refused.returncode and "compare names 1 artifacts; name two" in refused.stderr


def test_an_artifact_has_its_own_timings(artifact, empty):
    settings = ("--config", f"artifact={artifact}", f"timings_from={artifact}")
    refused = empty.snakemake(*settings, check=False)
    assert refused.returncode and "artifact and timings_from" in refused.stderr
