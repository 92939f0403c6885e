"""What a paper includes: figures in the width of its columns, fonts inside, numbers as macros."""

import re
import shutil
import subprocess

import pandas as pd
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("journeys")]

INCHES = {"column": 3.4, "page": 7.0}


def test_paper_outputs(clone):
    workspace = clone()
    figures = len(list((workspace.folder / "results/tiny/figures").glob("*.pdf")))
    planned = workspace.jobs("paper")
    assert planned == {"render_paper_figures": 2 * figures, "render_latex": 1, "paper": 1}
    made = [f"results/tiny/paper/imbalance-{width}.pdf" for width in INCHES]
    numbers = "results/tiny/paper/numbers.tex"
    workspace.snakemake(*made, numbers)
    for path, inches in zip(made, INCHES.values(), strict=True):
        content = (workspace.folder / path).read_bytes()
        left, _, right, _ = map(float, re.search(rb"/MediaBox \[([^]]+)\]", content)[1].split())
        assert right - left == pytest.approx(72 * inches)
        assert b"/FontFile2" in content and b"/Type3" not in content
        if shutil.which("pdftotext"):
            command = ["pdftotext", str(workspace.folder / path), "-"]
            assert "CP degree" in subprocess.run(command, capture_output=True, text=True).stdout
    metrics = pd.read_csv(workspace.folder / "results/tiny/tables/metrics.csv")
    (value,) = metrics.query(
        "lengths == 'corpus' and cp_size == 2 and metric == 'imbalance' and source == 'simulated'"
    )["value"]
    macro = rf"\newcommand{{\ImbalanceCorpusSimulatedCpTwo}}{{{value:.3f}}}"
    assert macro in (workspace.folder / numbers).read_text().splitlines()
