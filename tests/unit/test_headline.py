"""The headline: which columns stand in it, and what its notes say."""

import pandas as pd

from cpbalance.headline import headline


def row(source, value, cp_size=1, cost="quadratic", steps=100, metric="imbalance"):
    return {
        "lengths": "x",
        "packing": "concat_split",
        "attention": "full",
        "cost": cost,
        "cp_size": cp_size,
        "source": source,
        "metric": metric,
        "value": value,
        "steps": steps,
    }


def test_one_cost_is_shown_and_measurements_are_named():
    rows = [
        row("simulated", 2.5),
        row("simulated", 1.25, cp_size=2),
        row("simulated", 9.0, cost="flops"),
        row("simulated", 9.0, metric="cv"),
        row("theory:iid", 9.0),
        row("theory:distribution", 2.625),
        row("measured:torch_cpu", 1.75, cost="time", steps=1),
        row("published:article-h100", 1.5, cost="time", steps=2),
    ]
    text = headline(pd.DataFrame(rows), "Tables: there")
    lines = text.splitlines()
    table = lines[lines.index("x · concat_split · full") + 1 :]
    assert table[0].split() == ["CP", "simulated", "theory", "article", "H100", "torch_cpu"]
    assert table[1].split() == ["1", "2.500", "2.625", "1.500", "1.750"]
    assert table[2].split() == ["2", "1.250", "-", "-", "-"]
    assert "9.000" not in text
    assert "simulated: cost quadratic" in lines
    assert "torch_cpu: measured on this machine, 1 step; see calibration.csv" in lines
    assert lines[-1] == "Tables: there"
    assert max(map(len, lines)) <= 80


def test_backward_passes_have_a_column_of_their_own():
    rows = [
        row("simulated", 2.5),
        row("measured:fa3", 1.0, cost="time", steps=2),
        row("measured:fa3", 3.0, cost="time_backward", steps=2),
    ]
    text = headline(pd.DataFrame(rows), "Tables: there")
    lines = text.splitlines()
    table = lines[lines.index("x · concat_split · full") + 1 :]
    assert table[0].split() == ["CP", "simulated", "fa3", "fa3", "backward"]
    assert table[1].split() == ["1", "2.500", "1.000", "3.000"]
