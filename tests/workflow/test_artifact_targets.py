"""What a user does with artifacts: make one, draw from one, and get the same bytes."""

import functools
import http.server
import shutil
import threading
import zipfile

import pytest

from tests.workflow.clone import TINY, jobs

pytestmark = pytest.mark.slow
ARTIFACT = "results/tiny/tiny.crate.zip"


def drawn(files):
    return {name: content for name, content in files.items() if "/figures/" in name}


def test_two_folders_and_one_or_two_cores_give_the_same_bytes(tiny_run, clone):
    clone.run("--cores", "2", "all", "artifact")
    assert clone.files() == tiny_run.files()


def test_figures_from_an_artifact_are_those_of_the_run(tiny_run, clone, tmp_path):
    artifact = tmp_path / "downloaded.zip"
    shutil.copy(tiny_run.root / ARTIFACT, artifact)
    # The settings are the artifact's own: what is configured beside it does not count.
    other = {**TINY, "steps": 9, "lengths": {"none": {"file": "absent.csv"}}}
    command = ("--cores", "2", "figures", "--config", f"artifact={artifact}")
    ran = jobs(clone.run(*command, config=other))
    assert set(ran) == {"check_artifact", "import_tables", "render_figures", "figures"}
    made, wanted = clone.files(), tiny_run.files()
    assert drawn(made) == drawn(wanted) != {}
    for name in made:
        if "/tables/" in name:
            assert made[name] == wanted[name]
    assert "Nothing to be done" in clone.run(*command, config=other)


def test_drawing_needs_no_kernel_package(tiny_run, clone, tmp_path):
    """No torch, no kernel package, no GPU: importing one ends the process."""
    blocked = tmp_path / "blocked"
    for name in ("torch", "flash_attn", "flash_attn_interface", "fa3_fwd_interface"):
        (blocked / name).mkdir(parents=True)
        (blocked / name / "__init__.py").write_text(f"raise SystemExit('{name} was imported')")
    path = f"{blocked}:{clone.environment()['PYTHONPATH']}"
    figure = "results/tiny/figures/imbalance.pdf"
    arguments = ("--cores", "1", figure, "--config", f"artifact={tiny_run.root / ARTIFACT}")
    clone.run(*arguments, PYTHONPATH=path, CUDA_VISIBLE_DEVICES="")
    assert (clone.root / figure).read_bytes() == (tiny_run.root / figure).read_bytes()


@pytest.fixture
def server(tiny_run):
    """URL of the finished results, served on the loopback."""
    handler = functools.partial(
        http.server.SimpleHTTPRequestHandler, directory=str(tiny_run.root / "results/tiny")
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def test_artifact_from_a_url(tiny_run, clone, server):
    table = "results/tiny/tables/metrics.csv"
    command = ("--cores", "1", table, "--config", f"artifact={server}/tiny.crate.zip")
    refused = clone.run(*command, config={**TINY, "steps": 9}, status=1)
    assert "was made with another steps than configured" in refused
    assert not (clone.root / table).exists()
    clone.run(*command)
    assert (clone.root / table).read_bytes() == (tiny_run.root / table).read_bytes()


def test_bad_artifact_leaves_finished_results_alone(tiny_run, clone, tmp_path):
    clone.adopt(tiny_run)
    before = clone.files()
    broken = tmp_path / "broken.zip"
    broken.write_bytes((tiny_run.root / ARTIFACT).read_bytes()[:-100])
    command = ("--cores", "1", "figures", "--forceall", "--config")
    refused = clone.run(*command, f"artifact={broken}", status=1)
    assert "truncated, or not a zip" in refused
    sound = f"artifact={tiny_run.root / ARTIFACT}"
    refused = clone.run(*command, sound, config={**TINY, "experiment": "other"}, status=1)
    assert "holds experiment 'tiny', but 'other' is configured" in refused
    assert clone.files() == before


def test_large_stages_are_in_by_choice(tiny_run, clone):
    clone.adopt(tiny_run)
    config = {**TINY, "export": {"stages": ["lengths", "packs"], "license": "CC0-1.0"}}
    ran = jobs(clone.run("--cores", "1", "artifact", config=config))
    assert set(ran) == {"export_artifact", "artifact"}
    with zipfile.ZipFile(clone.root / ARTIFACT) as archive:
        names = archive.namelist()
    assert "lengths/exponential.parquet" in names
    assert "packs/exponential/concat_split/cp2.parquet" in names
    assert not any(name.startswith("costs/") for name in names)
