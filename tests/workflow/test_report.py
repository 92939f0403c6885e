"""The report in headless Chromium: every figure and table can be reached, nothing is missing."""

import json
import shutil

import pytest

from tests.workflow.chromium import Page, find_chromium
from tests.workflow.harness import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("journeys")]

# Rows of the open category, and a click on the eye of one of them.
ROWS = "[...document.querySelectorAll('tbody tr')].filter(row => row.querySelector('a'))"
PICTURE = "document.querySelector('#app > div > :nth-child(3) img')"


@pytest.fixture(scope="module")
def workspace(finished, tmp_path_factory):
    """A copy of the finished run with its report."""
    folder = tmp_path_factory.mktemp("report") / "copy"
    shutil.copytree(finished.folder, folder, symlinks=True)
    workspace = Workspace.at(folder)
    workspace.snakemake("--report", "report.html")
    return workspace


@pytest.fixture
def report(workspace, tmp_path):
    """The report, open in Chromium; the test fails if the page complained or asked for more."""
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with Page(chromium, tmp_path / "profile") as page:
        page.open((workspace.folder / "report.html").as_uri())
        page.wait_for("document.body.innerText.includes('Settings')")
        yield page
        assert page.errors == []
        own = ("file:", "data:", "blob:", "about:", "chrome-extension:")  # the last shows PDF
        assert [url for url in page.requests if not url.startswith(own)] == []


def names(workspace, folder, ending):
    return sorted(p.stem for p in (workspace.folder / "results/tiny" / folder).glob(f"*.{ending}"))


def test_first_page_tells_the_settings(report):
    text = report.evaluate("document.body.innerText")
    for part in ("Experiment tiny", "8, tensor parallel 1, 512 tokens each", "tiny-lengths.txt"):
        assert part in text


def test_every_figure_is_shown_with_its_caption(report, workspace):
    shown = []
    for category in json.loads(report.evaluate("JSON.stringify(Object.keys(categories))")):
        if category == "Tables":
            continue
        report.evaluate("app.setView({navbarMode: 'menu'})")
        report.wait_for(f"[...document.links].some(link => link.innerText === '{category}')")
        report.evaluate(f"[...document.links].find(l => l.innerText === '{category}').click()")
        report.wait_for(f"{ROWS}.length")
        for index in range(report.evaluate(f"{ROWS}.length")):
            report.evaluate(f"{ROWS}[{index}].querySelector('a').click()")
            name = report.evaluate(f"{ROWS}[{index}].cells[0].innerText")
            report.wait_for(f"app.state.resultPath.endsWith('/{name}.png')")
            report.wait_for(f"{PICTURE}?.complete && {PICTURE}.src.includes('filename={name}.png')")
            assert report.evaluate(f"{PICTURE}.naturalWidth") > 500
            shown.append(name)
    assert sorted(shown) == names(workspace, "figures", "png") != []
    captions = json.loads(report.evaluate("JSON.stringify(Object.values(results))"))
    for result in captions:
        assert "Seed 3" in result["caption"] or result["name"].endswith(".html")
        assert len(result["caption"]) > 400
        assert result["labels"]["CP"] and result["labels"]["lengths"] == "exponential, corpus"


def test_tables_can_be_searched_and_sorted(report, workspace):
    report.evaluate("app.showCategory('Tables')")
    report.wait_for(f"{ROWS}.length")
    shown = [row.split()[0] for row in json.loads(
        report.evaluate(f"JSON.stringify({ROWS}.map(row => row.innerText))")
    )]  # fmt: skip
    assert sorted(shown) == names(workspace, "pages", "html")
    # The page itself, since a frame of another origin cannot be looked into.
    report.open((workspace.folder / "results/tiny/pages/metrics.html").as_uri())
    rows = "[...document.querySelectorAll('tbody tr')].filter(row => !row.hidden)"
    everything = report.evaluate(f"{rows}.length")
    report.evaluate(
        "(box => {box.value = 'corpus IMBALANCE'; box.dispatchEvent(new Event('input'))})"
        "(document.querySelector('input'))"
    )
    found = json.loads(report.evaluate(f"JSON.stringify({rows}.map(row => row.innerText))"))
    assert 0 < len(found) < everything
    assert all("corpus" in row and "imbalance" in row for row in found)
    heading = "[...document.querySelectorAll('th')].find(th => th.innerText.startsWith('value'))"
    column = report.evaluate(f"{heading}.cellIndex")
    values = f"JSON.stringify({rows}.map(row => Number(row.cells[{column}].dataset.value)))"
    for direction in (1, -1):
        report.evaluate(f"{heading}.querySelector('button').click()")
        order = json.loads(report.evaluate(values))
        assert order == sorted(order)[::direction] and len(set(order)) > 1
