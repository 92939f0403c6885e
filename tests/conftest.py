"""Fixtures of the whole suite."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Reference inputs that stand beside the repository, where they do."""
    folder = Path(os.environ.get("CPBALANCE_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "reference").is_dir():
        pytest.skip("the shared reference inputs are not beside this repository")
    return folder
