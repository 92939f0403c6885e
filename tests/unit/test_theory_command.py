"""``cpbalance theory`` and ``families`` from the command line, and theory in the tidy tables."""

import json

import numpy as np
import pandas as pd
import pytest

from cpbalance.aggregate import Costs
from cpbalance.aggregate_theory import neighbours_table, theory_rows, validation_table
from cpbalance.cli import main
from cpbalance.metrics import METRICS, step_statistics
from cpbalance.table_schemas import EXPONENTIAL_NORMAL, THEORY, THEORY_DENSITY
from cpbalance.tables import read_table

LAYERS = {"full": {"q_heads": 8, "kv_heads": 8, "head_dim": 64, "causal": False}}
LENGTHS = {"family": "exponential", "mean": 64, "max_seq_len": 512}
SERIES = {"lengths": "x", "packing": "concat_split", "attention": "full", "cost": "quadratic"}


def predict(folder, lengths=LENGTHS, **changes):
    options = {
        "name": "x",
        "lengths": json.dumps(lengths),
        "world-size": 8,
        "cp-sizes": [1, 2, 8],
        "tokens-per-gpu": 512,
        "attentions": json.dumps(LAYERS),
        "costs": ["quadratic", "flops"],
        "output": folder / "x.parquet",
        "density": folder / "density.parquet",
    }
    words = ["theory"]
    for key, value in (options | {k.replace("_", "-"): v for k, v in changes.items()}).items():
        words += [f"--{key}", *map(str, value if isinstance(value, list) else [value])]
    return main(words)


def read(folder):
    return read_table(folder / "x.parquet", THEORY).to_pandas()


@pytest.fixture(scope="module")
def predicted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theory")
    assert predict(folder) == 0
    return folder


def test_a_row_for_each_layer_cost_degree_and_level(predicted):
    frame = read(predicted)
    assert len(frame) == 2 * 3 * 4
    assert frame.groupby(["cost", "cp_size"])["level"].nunique().eq(4).all()
    assert (frame["groups"] == 8 / frame["cp_size"]).all()
    alone = frame[frame["cp_size"] == 8]
    assert alone["imbalance"].abs().max() < 1e-6


def test_costs_in_proportion_have_the_same_relative_predictions(predicted):
    frame = read(predicted).set_index(["cost", "cp_size", "level"]).sort_index()
    for column in ("cv", "skewness", "imbalance", "max_over_mean"):
        assert frame.loc["quadratic", column].to_numpy() == pytest.approx(
            frame.loc["flops", column].to_numpy(), rel=1e-6, abs=1e-6, nan_ok=True
        )


def test_densities_are_densities(predicted):
    frame = read_table(predicted / "density.parquet", THEORY_DENSITY).to_pandas()
    for _, part in frame.groupby(["cost", "cp_size"]):
        total = np.trapezoid(part["density"], part["relative_cost"])
        mean = np.trapezoid(part["density"] * part["relative_cost"], part["relative_cost"])
        assert total == pytest.approx(1, abs=0.02)
        assert mean == pytest.approx(1, abs=0.03)


def test_the_same_arguments_make_the_same_bytes(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        assert predict(folder, cp_sizes=[2], costs=["quadratic"]) == 0
    for name in ("x.parquet", "density.parquet"):
        one, other = ((folder / name).read_bytes() for folder in folders)
        assert one == other


def test_a_missing_constant_is_null_with_a_note(tmp_path):
    pareto = {"family": "pareto", "mean": 64, "alpha": 3}
    assert predict(tmp_path, pareto, costs=["quadratic"]) == 0
    frame = read(tmp_path).set_index("level")
    assert frame.loc["iid", "variance"].isna().all()
    assert frame.loc["renewal", "note"].str.contains("no 1/CP constant exists").all()
    assert frame.loc["distribution", "imbalance"].notna().all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cp_sizes": [3]}, "--cp-sizes has 3: it must divide"),
        ({"tp_size": 3}, "--tp-size is 3: it must divide"),
        ({"attentions": "{"}, "--attentions is not JSON"),
        ({"costs": ["cubic"]}, "cost is 'cubic'"),
        ({"tokens_per_gpu": 0}, "--tokens-per-gpu is 0"),
        ({"lengths": '{"family": "weibull"}'}, "--lengths"),
    ],
)
def test_bad_input_is_one_line_and_status_2(tmp_path, capsys, changes, message):
    assert predict(tmp_path, **changes) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "x.parquet").exists()


def test_families_writes_a_row_for_each_spread_and_kind_of_pack(tmp_path):
    words = "families --normal-cvs 1 0.5 --packs 200 --seed 1 --output"
    assert main([*words.split(), str(tmp_path / "f.parquet")]) == 0
    frame = read_table(tmp_path / "f.parquet", EXPONENTIAL_NORMAL).to_pandas()
    assert frame.groupby("pack")["ratio"].apply(list).to_dict() == {
        "documents": pytest.approx([20 / 6, 20 / 1.125]),
        "tokens": pytest.approx([4, 8 / (0.25 * 1.0625)]),
    }
    assert (tmp_path / "f.csv").is_file()


def test_predictions_join_the_tidy_table_by_source(predicted):
    rows = theory_rows(read(predicted))
    assert set(rows["source"]) == {"theory:iid", "theory:renewal", "theory:distribution"}
    assert set(rows["metric"]) == set(METRICS)
    assert rows["value"].notna().all() and rows["low"].isna().all()
    assert not rows.duplicated(["cost", "source", "cp_size", "metric"]).any()


def test_validation_is_the_difference_in_standard_errors(predicted):
    theory = read(predicted)
    generator = np.random.default_rng(0)
    statistics = step_statistics([generator.gamma(4, 1e4, (400, 4))])
    series = SERIES | {"source": "simulated"}
    item = Costs.from_statistics(series, 2, statistics, 200)
    table = validation_table([item], theory)
    row = table[(table["level"] == "distribution") & (table["metric"] == "mean")].iloc[0]
    assert row["predicted"] / row["simulated"] - 1 == pytest.approx(row["relative_error"])
    assert row["z"] * row["standard_error"] == pytest.approx(row["predicted"] - row["simulated"])
    assert row["standard_error"] == pytest.approx(
        np.sqrt(statistics.per_step[:, 0].var() / 400), rel=0.2
    )


def test_neighbours_that_share_are_correlated_until_they_are_shuffled(predicted):
    generator = np.random.default_rng(1)
    own = 10 + generator.normal(size=(2000, 9))
    cost = own[:, 1:] + own[:, :-1]  # correlation of neighbours: one half
    table = neighbours_table(SERIES, 1, cost, read(predicted)).set_index("quantity")
    near = table.loc["correlation"]
    assert abs(near["simulated"] - 0.5) < 4 * near["standard_error"] < 0.1
    far = table.loc["shuffled_correlation"]
    assert abs(far["simulated"]) < 4 * far["standard_error"]
    assert len(neighbours_table(SERIES, 1, cost[:, :2], read(predicted))) == 0


def test_predicted_correlation_is_that_of_drawn_steps():
    """Documents as long as three packs: neighbours share them."""
    from cpbalance.theory.predict import LengthModel
    from cpbalance.theory.predict import predict as predict_rows

    generator = np.random.default_rng(5)
    pmf = np.zeros(193)
    pmf[[8, 192]] = 0.9, 0.1
    row = predict_rows(
        LengthModel(pmf), {1: (lambda n: n**2.0, 0.0)}, 64, {1: 16}, levels=("moments",)
    )[0]
    steps = []
    for _ in range(1500):
        lengths = generator.choice([8, 192], size=160, p=[0.9, 0.1])
        ends = np.union1d(np.cumsum(lengths), np.arange(64, 1025, 64))
        ends = ends[ends <= 1024]
        cost = np.zeros(16)
        np.add.at(cost, (ends - 1) // 64, np.diff(ends, prepend=0) ** 2.0)
        steps.append(cost)
    table = neighbours_table(SERIES, 1, np.array(steps), pd.DataFrame(columns=[*THEORY.columns]))
    found = table.set_index("quantity").loc["correlation"]
    assert row.neighbour_correlation == pytest.approx(
        found["simulated"], abs=4 * found["standard_error"] + 0.02
    )
    assert row.neighbour_correlation > 0.15
