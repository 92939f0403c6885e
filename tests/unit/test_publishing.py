"""What others need to find, cite and reuse the workflow, kept in step with the package."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from cpbalance import __version__
from cpbalance.config import Config
from cpbalance.names import COMPARE_FIGURES, FIGURE_STAGES, FIGURE_TABLES

ROOT = Path(__file__).resolve().parents[2]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_versions_agree():
    project = tomllib.loads(text("pyproject.toml"))["project"]
    citation = yaml.safe_load(text("CITATION.cff"))
    assert project["version"] == citation["version"] == __version__
    assert re.search(r"^## (\S+)", text("CHANGELOG.md"), re.M)[1] == __version__
    assert project["license"] == citation["license"] == "MIT"
    assert text("LICENSE").startswith("MIT License")


def test_citation_has_what_the_format_requires():
    citation = yaml.safe_load(text("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    assert all({"name", "alias", "family-names"} & author.keys() for author in citation["authors"])


def test_standard_usage_of_the_workflow_catalog():
    for name in ("workflow/Snakefile", "config/README.md", "config/config.yaml", "README.md"):
        assert (ROOT / name).is_file()
    usage = yaml.safe_load(text(".snakemake-workflow-catalog.yml"))["usage"]
    assert usage["report"] is True and usage["mandatory-flags"]["desc"]
    assert set(usage["software-stack-deployment"].values()) <= {True, False}


@pytest.mark.parametrize("key", [key for key in Config.model_fields if key != "shards"])
def test_every_key_is_explained(key):
    assert re.search(rf"`{key}[`.]", text("config/README.md")), f"config/README.md leaves out {key}"


def test_every_figure_has_its_place_and_caption_in_the_report():
    captions = text("workflow/report/figure.rst")
    assert set(FIGURE_STAGES) == set(FIGURE_TABLES) - set(COMPARE_FIGURES)
    for figure in FIGURE_STAGES:
        assert f'figure == "{figure}"' in captions, f"figure.rst has no caption of {figure}"
