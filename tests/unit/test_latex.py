"""LaTeX for papers: every number has one name, every text is escaped, the files compile."""

import shutil
import subprocess

import pandas as pd
import pytest

from cpbalance import latex
from cpbalance.errors import InputError

SERIES = {"packing": "concat_split", "attention": "full", "cost": "quadratic"}


def metrics(*rows):
    """A metrics table of imbalance; a row is (lengths, source, CP, value, low, high)."""
    columns = ["lengths", "source", "cp_size", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns).assign(**SERIES, metric="imbalance", steps=3)


SLOPES = pd.DataFrame(
    {
        "lengths": ["exponential"],
        "source": ["simulated"],
        "metric": ["variance"],
        "slope": [-0.884],
        "low": [-0.93],
        "high": [-0.84],
        "expected": [-1.0],
    }
).assign(**SERIES)
TWO = metrics(
    ("exponential", "simulated", 1, 2.5357, 2.5, 2.6),
    ("exponential", "simulated", 16, 0.3362, 0.3, 0.4),
    ("exponential", "measured:torch_cpu", 1, 1.8, None, None),
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("imbalance linux-6.1-code cp 16", "ImbalanceLinuxSixOneCodeCpOneSix"),
        ("max_over_min", "MaxOverMin"),
        ("h100-fa3", "HOneZeroZeroFaThree"),
        ("wlb 128K", "WlbOneTwoEightK"),
    ],
)
def test_macro_names_hold_letters_only(text, name):
    assert latex.camel(text) == name and name.isalpha()


def test_every_number_is_a_macro():
    lines = latex.macros(TWO, SLOPES).splitlines()
    assert lines == [
        r"\newcommand{\ImbalanceExponentialSimulatedCpOne}{2.536}",
        r"\newcommand{\ImbalanceExponentialSimulatedCpOneSix}{0.336}",
        r"\newcommand{\ImbalanceExponentialMeasuredTorchCpuCpOne}{1.800}",
        r"\newcommand{\VarianceSlopeExponentialSimulated}{\ensuremath{-}0.88}",
    ]


def test_names_tell_costs_apart_where_a_source_has_several():
    other = TWO.assign(cost="causal_pairs", value=1.0)
    text = latex.macros(pd.concat([TWO, other]), SLOPES)
    assert r"{\ImbalanceExponentialQuadraticSimulatedCpOne}{2.536}" in text
    assert r"{\ImbalanceExponentialCausalPairsSimulatedCpOne}{1.000}" in text


def test_two_numbers_of_one_name_are_refused():
    clash = metrics(("a-b", "simulated", 1, 1, 1, 1), ("a_b", "simulated", 1, 2, 2, 2))
    with pytest.raises(InputError, match="ImbalanceABSimulatedCpOne"):
        latex.macros(clash, SLOPES)


def test_imbalance_has_a_row_a_degree_and_a_column_a_source():
    headings = {"simulated": "simulated", "theory": "theory", "measured:torch_cpu": "torch_cpu"}
    lines = [line.strip() for line in latex.imbalance_table(TWO, headings).splitlines()]
    assert r"lengths & CP & simulated & torch\_cpu \\" in lines
    assert r"exponential & 1 & 2.536 [2.500, 2.600] & 1.800 \\" in lines
    assert r"exponential & 16 & 0.336 [0.300, 0.400] & -- \\" in lines


def test_exponents_name_the_layer_where_there_are_several():
    layers = [SLOPES.assign(attention=name) for name in ("full", "causal")]
    text = latex.slopes_table(pd.concat(layers))
    assert "& attention &" in text and "& causal &" in text
    assert "attention" not in latex.slopes_table(layers[0])


def test_special_characters_are_escaped():
    assert latex.escape("50%_of #1 & {~^\\}") == (
        r"50\%\_of \#1 \& \{\textasciitilde{}\textasciicircum{}\textbackslash{}\}"
    )


def test_the_files_compile(tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed: apt-get install texlive-latex-recommended")
    comparison = TWO[TWO["source"] == "simulated"].assign(
        reference="article-model", reference_value=2.5, z=-0.3
    )
    texts = {
        "numbers": latex.macros(TWO, SLOPES),
        "imbalance": latex.imbalance_table(TWO, {"simulated": "50% & more_"}),
        "exponents": latex.slopes_table(SLOPES),
        "published": latex.comparison_table(comparison),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.tex").write_text(text)
    (tmp_path / "paper.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs}\input{numbers}\begin{document}"
        r"\ImbalanceExponentialSimulatedCpOneSix{} and $x^{\VarianceSlopeExponentialSimulated}$"
        r"\input{imbalance}\input{exponents}\input{published}\end{document}"
    )
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
