"""One cluster for all tests here; a clone of the workflow with documents packed, to copy from."""

import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

# Before they are imported: what went wrong in a story is shown as in a test.
pytest.register_assert_rewrite("tests.slurm.scenarios", "tests.slurm.workspace")

from tests.slurm.cluster import Cluster  # noqa: E402
from tests.slurm.machine import Unavailable, require  # noqa: E402
from tests.slurm.scenarios import ALONE, FEATURES, PARALLEL  # noqa: E402
from tests.slurm.workspace import SlurmWorkspace  # noqa: E402

# Stories at once: each is Snakemake, its job, and much waiting.
WORKERS = 10


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/slurm/" in str(item.path):
            item.add_marker(pytest.mark.slurm)
            # One cluster a machine: these tests stay in one worker.
            item.add_marker(pytest.mark.xdist_group("slurm"))


@pytest.fixture(scope="session")
def cluster():
    """A running cluster with accounting; gone afterwards, whatever happens."""
    try:
        require()
    except Unavailable as reason:
        pytest.skip(str(reason))
    # Not below pytest's folder, which other users, as MariaDB's, cannot enter.
    folder = Path(tempfile.mkdtemp(prefix="slurm-testbed-"))
    folder.chmod(0o755)
    with Cluster(folder) as running:
        yield running
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> SlurmWorkspace:
    """A workspace whose documents are packed already; do not change it, copy it."""
    workspace = SlurmWorkspace(tmp_path_factory.mktemp("prepared") / "clone")
    workspace.snakemake("packs", config="small.yaml")
    return workspace


@pytest.fixture(scope="session")
def outcomes(request, cluster, prepared, tmp_path_factory):
    """``outcomes(name)`` is the workspace at the end of a story; what went wrong in it is raised.

    The stories that selected tests need run from now on, side by side. One that has to be alone
    starts when it is asked for and all others are over.
    """
    folder = tmp_path_factory.mktemp("stories")
    selected = {"nothing"}
    for item in request.session.items:
        parameters = getattr(item, "callspec", None)
        if parameters is not None and "name" in parameters.params:
            selected.add(parameters.params["name"])
        selected.update(mark.args[0] for mark in item.iter_markers("story"))

    def run(name: str) -> SlurmWorkspace:
        workspace = prepared.copy(folder / name, FEATURES[name])
        (PARALLEL | ALONE)[name](workspace, cluster)
        return workspace

    pool = ThreadPoolExecutor(WORKERS)
    futures = {name: pool.submit(run, name) for name in PARALLEL if name in selected}

    def outcome(name: str) -> SlurmWorkspace:
        if name not in futures:
            for other in futures.values():
                other.exception()
            futures[name] = pool.submit(run, name)
        return futures[name].result()

    yield outcome
    pool.shutdown(wait=True, cancel_futures=True)
