"""Two artifacts side by side: what is matched with what, and what is said to differ."""

import pandas as pd
import pytest

from cpbalance.artifact import Artifact
from cpbalance.artifact.compare import as_text, metrics_differences, settings_differences
from cpbalance.cli import main

KEYS = {"lengths": "l", "packing": "p", "attention": "full", "cost": "time", "cp_size": 2}


def metrics(*rows):
    """A metrics table; a row is (source, value, low, high), of imbalance at CP 2."""
    columns = ["source", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns).assign(**KEYS, metric="imbalance", steps=3)


def test_rows_of_one_source_are_matched_and_published_ones_left_out():
    a = metrics(("simulated", 2.0, 1.5, 2.5), ("published:article-h100", 1.0, 1.0, 1.0))
    b = metrics(("simulated", 3.0, 2.6, 3.4), ("published:article-h100", 1.0, 1.0, 1.0))
    (row,) = metrics_differences(a, b, ("x", "y")).to_dict("records")
    assert (row["artifact_a"], row["artifact_b"]) == ("x", "y")
    assert (row["value_a"], row["value_b"], row["ratio"]) == (2.0, 3.0, 1.5)
    assert row["overlap"] == False  # noqa: E712, for it may be missing


def test_touching_intervals_overlap_and_missing_ones_say_nothing():
    a = metrics(("simulated", 2.0, 1.5, 2.5), ("measured:fa3", 1.0, None, None))
    b = metrics(("simulated", 2.8, 2.5, 3.0), ("measured:fa3", 2.0, 1.9, 2.1))
    overlap = metrics_differences(a, b, ("x", "y")).set_index("source_a")["overlap"]
    assert overlap["simulated"] == True  # noqa: E712
    assert pd.isna(overlap["measured:fa3"])


def test_one_kernel_on_each_side_is_matched_whatever_its_name():
    a, b = metrics(("measured:fa2", 4.0, 3, 5)), metrics(("measured:fa3", 2.0, 1, 3))
    (row,) = metrics_differences(a, b, ("x", "y")).to_dict("records")
    assert (row["source_a"], row["source_b"]) == ("measured:fa2", "measured:fa3")
    assert row["ratio"] == 0.5


def test_several_kernels_are_matched_by_name_only():
    a = metrics(("measured:fa2", 4.0, 3, 5), ("measured:torch_varlen", 1.0, 0.9, 1.1))
    b = metrics(("measured:fa3", 2.0, 1, 3))
    assert metrics_differences(a, b, ("x", "y")).empty


def made_with(config=None, packages=None, experiment="demo"):
    return Artifact(
        path=None,
        experiment=experiment,
        stages=(),
        config=config or {},
        run={"seed": 1},
        environment={"machine": "x86_64", "packages": packages or {}},
        sizes={},
        digests={},
        archive=None,
    )


def test_settings_that_differ_are_named_by_their_place():
    a = made_with({"cluster": {"world_size": 8, "cp_sizes": [1, 2]}}, {"torch": "2.12.0"})
    b = made_with({"cluster": {"world_size": 8, "cp_sizes": [1]}, "steps": 3}, {"torch": "2.13.0"})
    rows = settings_differences(a, b).values.tolist()
    assert rows == [
        ["config", "cluster.cp_sizes", "[1, 2]", "[1]"],
        ["config", "steps", "–", "3"],
        ["software", "torch", "2.12.0", "2.13.0"],
    ]
    assert settings_differences(a, a).empty


@pytest.mark.parametrize("same", [True, False])
def test_text_names_both_sides(same):
    a, b = made_with(), made_with() if same else made_with(experiment="other")
    text = as_text(settings_differences(a, b), metrics().assign(x=1), ("left", "right"))
    assert text.startswith("a: left\nb: right\n")
    assert ("same settings" in text) == same
    assert ("experiment: demo | other" in text) != same
    assert "no statistics in common" in text


def test_an_artifact_without_statistics_has_nothing_to_compare(request, capsys):
    path = str(request.getfixturevalue("artifact"))
    assert main(["artifact", "compare", path, path]) == 2
    assert "holds no tables/metrics.parquet" in capsys.readouterr().err
