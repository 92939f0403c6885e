"""GPU-minutes predicted before anything is submitted."""

import pytest
import yaml

from cpbalance.attention import Attention
from cpbalance.cli import main
from cpbalance.config import parse_config
from cpbalance.costs import cost_model
from cpbalance.errors import InputError
from cpbalance.estimate import CALL_S, PASSES, START_S, timing_costs

EXPERIMENT = {
    "experiment": "estimate",
    "steps": 10,
    "cluster": {"world_size": 8, "cp_sizes": [1, 2, 8], "tokens_per_gpu": 4096},
    "attention": {"layer": {"q_heads": 32, "kv_heads": 8, "head_dim": 128, "causal": True}},
    "lengths": {"even": {"family": "constant", "mean": 1024}},
    "timing": {
        "fa3": {"lengths": ["even"], "attention": ["layer"], "steps": 4, "budget_s": 600.0},
    },
    "shards": {"time": 2},
}


def changed(**timing):
    run = EXPERIMENT["timing"]["fa3"] | timing
    return parse_config(EXPERIMENT | {"timing": {"fa3": run}})


def test_even_documents_cost_what_the_model_says_of_one_pack():
    """Every pack of CP·4096 tokens holds 4·CP documents of 1,024 tokens: no chance in it."""
    (cost,) = timing_costs(changed(), {})
    attention = Attention(32, 8, 128, True)
    seconds, calls = 0.0, 0
    for cp_size, packs in ((1, 8), (2, 4), (8, 1)):
        model = cost_model("h100-fa3", attention, cp_size)
        pack_ms = model.fixed + 4 * cp_size * float(model.segment(1024))
        seconds += 4 * packs * 1e-3 * pack_ms
        calls += 4 * packs
    assert (cost.name, cost.jobs, cost.calls) == ("fa3/layer/even", 2, calls)
    expected = PASSES * (seconds + calls * CALL_S) + 2 * START_S
    assert cost.least == pytest.approx(expected / 60, rel=1e-9)
    assert cost.most == pytest.approx((2 * 600 + 2 * START_S) / 60)


def test_the_budget_bounds_the_least_too():
    (cost,) = timing_costs(changed(budget_s=1e-6), {})
    assert cost.least == pytest.approx(cost.most)


@pytest.mark.parametrize("change", [{"direction": "both"}, {"direction": "backward"}])
def test_without_a_model_only_the_most_is_known(change):
    (cost,) = timing_costs(changed(**change), {})
    assert cost.least is None and cost.most > 0


def test_twice_the_directions_are_twice_the_calls():
    (forward,), (both,) = (timing_costs(changed(direction=d), {}) for d in ("forward", "both"))
    assert both.calls == 2 * forward.calls


def test_an_experiment_without_gpu_is_named():
    config = EXPERIMENT | {"timing": {"torch_cpu": EXPERIMENT["timing"]["fa3"]}}
    with pytest.raises(InputError, match="no kernel on a GPU"):
        timing_costs(parse_config(config), {})


def test_the_command_prints_every_timing_and_the_sum(tmp_path, capsys):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(EXPERIMENT))
    assert main(["estimate", "--configfile", str(path)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].startswith("fa3/layer/even")
    assert "2 GPU jobs" in printed[2] and "GPU-minutes" in printed[2]
    assert main(["estimate", "--configfile", str(tmp_path / "absent.yaml")]) == 2
    assert "no such file" in capsys.readouterr().err
