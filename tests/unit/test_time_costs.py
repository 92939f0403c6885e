import json

import numpy as np
import pandas as pd
import pytest

from cpbalance import presets
from cpbalance.attention import Attention
from cpbalance.calibration import Calls, Fitter
from cpbalance.cli.calibration_arguments import load_calibration
from cpbalance.config import parse_config
from cpbalance.costs import cost_model
from cpbalance.errors import InputError
from cpbalance.kernel_time import KernelTime
from cpbalance.measured import calibration_table, measured_series
from cpbalance.plan import make_plan
from cpbalance.table_schemas import CALIBRATION
from cpbalance.tiles import EXACT, Tile
from cpbalance.timing.plan import Target
from cpbalance.timing.summary import PackTime

FULL = Attention(q_heads=64, kv_heads=64, head_dim=128, causal=False)


def test_a_call_costs_fixed_segments_tokens_and_flops():
    model = KernelTime({"fixed": 1e-3, "segment": 2e-6, "token": 3e-9, "flop": 5e-12}, EXACT)
    cost = cost_model("calibrated:fa3", FULL, 16, model)
    assert cost.unit == "ms" and cost.fixed == 1.0
    # 4 query heads on each of 16 ranks.
    seconds = 2e-6 * 4 + 3e-9 * 4 * 100 + 5e-12 * 4 * 128 * 4 * 100**2
    np.testing.assert_allclose(cost.segment(np.array([100])), 1e3 * seconds)


def test_a_segment_loop_pays_its_segments_once_for_all_heads():
    model = KernelTime({"segment": 2e-6}, EXACT, segment_loop=True)
    assert cost_model("calibrated:torch_cpu", FULL, 1, model).segment(np.array([7])) == [2e-3]


@pytest.mark.parametrize("causal", [False, True])
def test_the_preset_is_the_fit_to_the_papers_speeds(causal):
    model = presets.preset("h100-fa3", 128, causal)
    lengths = presets.SEGMENT_TOKENS
    calls = Calls(
        segments=[np.full(presets.POINT_TOKENS // length, length) for length in lengths],
        q_heads=np.full(len(lengths), presets.POINT_HEADS),
        seconds=np.array(presets.paper_seconds(causal)),
        pack=np.arange(len(lengths)),
        head_dim=128,
        causal=causal,
    )
    fitter = Fitter(calls, [model.tile])
    fitted = fitter.fit(model.tile, tuple(model.coefficients), np.ones(len(lengths), dtype=bool))
    found = [model.coefficients.get(term, 0.0) for term in ("fixed", "segment", "token", "flop")]
    np.testing.assert_allclose(found, fitted, rtol=1e-3, atol=1e-30)
    # Within what a chart can be read to.
    assert np.abs(fitter.errors(model.tile, np.array(found))).max() < 0.02


def test_the_preset_dilutes_the_imbalance_of_the_quadratic_model():
    packs = [np.full(64, 128), np.full(8, 1024), np.full(1, 8192)]

    def imbalance(name):
        cost = cost_model(name, FULL, 1)
        total = np.array([cost.fixed + cost.segment(pack).sum() for pack in packs])
        return (total.max() - total.min()) / total.mean()

    assert imbalance("h100-fa3") < imbalance("quadratic")


@pytest.mark.parametrize(
    ("name", "attention", "calibration", "message"),
    [
        ("calibrated:fa3", FULL, None, "cost is calibrated:fa3: give --calibration"),
        ("quadratic", FULL, KernelTime({}, EXACT), "--calibration is for calibrated:KERNEL only"),
        ("h100-fa3", Attention(8, 8, 64, False), None, "cost h100-fa3 is for head_dim 128, not 64"),
    ],
)
def test_time_costs_without_a_model_are_refused(name, attention, calibration, message):
    with pytest.raises(InputError, match=message):
        cost_model(name, attention, 1, calibration)


def document(**changes):
    forward = {"coefficients": {"flop": 1e-12}, "tile": [128, 64], "segment_loop": False}
    found = {
        "schema": "calibration/1",
        "attention": {"head_dim": 128, "causal": False},
        "directions": {"forward": forward},
    }
    return found | changes


def test_a_calibration_is_read_from_its_file(tmp_path):
    path = tmp_path / "fa2.json"
    path.write_text(json.dumps(document()))
    assert load_calibration(path, FULL) == KernelTime({"flop": 1e-12}, Tile(128, 64))
    assert load_calibration(None, FULL) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file; make it with cpbalance calibrate"),
        ("{", "is not JSON"),
        (json.dumps({"schema": "other"}), "is no calibration/1 document"),
        (
            json.dumps(document(attention={"head_dim": 64, "causal": False})),
            "was fitted with head_dim 64, the attention has 128",
        ),
    ],
)
def test_a_calibration_of_no_use_is_refused(tmp_path, text, message):
    path = tmp_path / "x.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_calibration(path, FULL)


def test_time_of_a_rank_is_named_an_extrapolation_where_heads_were_left_out():
    provenance = {
        "directions": ["forward"],
        "attention": {"name": "full"},
        "kernel": {"name": "torch_cpu"},
        "source": {"packing": "concat_split", "source": {"name": "demo"}},
    }

    def times(q_heads):
        return {
            Target(8, step, pack, "forward"): PackTime(
                0.001 * (1 + pack), np.nan, np.nan, 3, q_heads, 8, 64, 2
            )
            for step in (0, 1)
            for pack in (0, 1, 2)
        }

    ((series, cp_size, cost),) = measured_series(provenance, times(8))
    assert series["cost"] == "time" and series["source"] == "measured:torch_cpu"
    assert cp_size == 8 and cost.tolist() == [[1.0, 2.0, 3.0]] * 2
    ((series, _, cost),) = measured_series(provenance, times(2))
    assert series["cost"] == "time_extrapolated"
    assert cost[0].tolist() == [4.0, 8.0, 12.0]


def test_calibration_table_compares_imbalances_step_by_step():
    keys = {"kernel": "fa3", "attention": "full", "lengths": "demo", "direction": "forward"}
    frame = pd.DataFrame(
        {
            **keys,
            "cp_size": 2,
            "step": [0, 0, 1, 1],
            "measured": [1.0, 3.0, 2.0, 2.0],
            "predicted": [1.5, 2.5, 2.0, 2.0],
            "held_out_error": [0.5, -0.25, 0.0, 0.1],
            "quadratic_error": [1.0, 1.0, -1.0, 0.0],
        }
    )
    (row,) = calibration_table(frame).to_dict("records")
    assert list(row) == list(CALIBRATION.columns)
    assert row["measured_imbalance"] == 0.5 and row["predicted_imbalance"] == 0.25
    assert row["relative_difference"] == 1.0
    assert row["steps"] == 2 and row["packs"] == 4 and row["worst_error"] == 0.5


def config(**changes):
    timing = {"lengths": ["demo"], "attention": ["full"], **changes.pop("run", {})}
    return {
        "experiment": "demo",
        "steps": 4,
        "cluster": {"world_size": 8, "cp_sizes": [1, 2], "tokens_per_gpu": 256},
        "attention": {"full": {"q_heads": 8, "kv_heads": 8}},
        "lengths": {"demo": {"family": "exponential", "mean": 64}},
        "timing": {"torch_cpu": timing},
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run": {"lengths": ["other"]}}, "timing.torch_cpu.lengths names 'other'"),
        ({"run": {"attention": ["gqa"]}}, "timing.torch_cpu.attention names 'gqa'"),
        ({"run": {"cp_sizes": [4]}}, "timing.torch_cpu.cp_sizes names 4"),
        ({"run": {"steps": 5}}, r"timing.torch_cpu.steps \(5\) must be at most steps \(4\)"),
        ({"run": {"strict_device": True}}, "name the device with expected_device"),
        ({"run": {"width": 0}}, "timing.torch_cpu.width is 0"),
        ({"run": {"budget": 3}}, "unknown key timing.torch_cpu.budget; did you mean budget_s"),
        ({"timing": {"fa9": {}}}, "fa9"),
        ({"shards": {"time": 2}}, r"shards.time \(2\) must be at most timing.torch_cpu.steps"),
        ({"costs": ["calibrated:fa3"]}, "needs timing.fa3 with calibrate: true"),
        (
            {"costs": ["calibrated:torch_cpu"], "run": {"calibrate": False}},
            "needs timing.torch_cpu with calibrate: true",
        ),
        (
            {"costs": ["calibrated:torch_cpu"], "run": {"direction": "backward"}},
            "timing.torch_cpu.direction is backward: use forward or both",
        ),
        ({"run": {"lengths": ["demo", "demo"]}}, "timing.torch_cpu.lengths.*twice"),
        ({"run": {"attention": ["full", "full"]}}, "timing.torch_cpu.attention.*twice"),
        ({"run": {"cp_sizes": [2, 1, 2]}}, "timing.torch_cpu.cp_sizes.*twice"),
        (
            {"costs": ["h100-fa3"], "attention": {"full": {"head_dim": 64}}},
            "cost h100-fa3 is for head_dim 128; attention 'full' has 64",
        ),
    ],
)
def test_bad_timing_settings_name_the_key(changes, message):
    with pytest.raises(InputError, match=message) as raised:
        parse_config(config(**changes))
    assert "\n" not in str(raised.value)


def test_plan_of_a_calibrated_cost_needs_its_calibration():
    plan = make_plan(parse_config(config(costs=["quadratic", "calibrated:torch_cpu"])))
    assert plan.cost_inputs("full", "quadratic") == []
    (path,) = plan.cost_inputs("full", "calibrated:torch_cpu")
    assert path in plan.calibration_files("json")
    assert f"--calibration {path}" in plan.simulate_arguments("full", "calibrated:torch_cpu")
    assert plan.timing_files() == ["results/demo/timings/torch_cpu/full/demo.parquet"]
    assert plan.calibration_inputs("torch_cpu", "full") == {
        "timings": plan.timing_files(),
        "packs": plan.pack_files(),
    }


def test_figures_of_calibrations_need_one():
    assert "calibration_fit" in make_plan(parse_config(config())).figures
    assert "calibration_fit" not in make_plan(parse_config(config(timing={}))).figures
