"""One cluster for all tests here; a clone of the workflow with documents packed, to copy from."""

import pytest

from tests.slurm.cluster import Cluster, Unavailable, require
from tests.slurm.workspace import SlurmWorkspace


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/slurm/" in str(item.path):
            item.add_marker(pytest.mark.slurm)
            # One cluster a machine: these tests stay in one worker.
            item.add_marker(pytest.mark.xdist_group("slurm"))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A running cluster with accounting; gone afterwards, whatever happens."""
    try:
        require()
    except Unavailable as reason:
        pytest.skip(str(reason))
    with Cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="session")
def prepared(cluster, tmp_path_factory) -> SlurmWorkspace:
    """A workspace whose documents were packed on the cluster; do not change it, copy it."""
    workspace = SlurmWorkspace(tmp_path_factory.mktemp("prepared") / "clone")
    workspace.submit("packs").check()
    return workspace
