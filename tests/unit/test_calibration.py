import csv
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from timing_helpers import run_time, write_packs

from cpbalance.attention import attention_pairs
from cpbalance.calibration import (
    Calls,
    Features,
    Fitter,
    calibrate,
    nonnegative_least_squares,
    predicted_seconds,
)
from cpbalance.cli import main
from cpbalance.errors import InputError
from cpbalance.kernel_time import TERMS, KernelTime, fitted_model
from cpbalance.stage_schemas import COSTS
from cpbalance.table_schemas import CALIBRATION_FIT, THEORY, THEORY_DENSITY
from cpbalance.tables import read_provenance, read_table
from cpbalance.tiles import ALTERNATIVES, EXACT, Tile, known_tile, tile_pairs, tiles_to_try


def counted_tiles(length, tile, causal):
    """Pairs of whole tiles, by looking at every tile."""
    pairs = 0
    for row in range(0, length, tile.queries):
        end = min(row + tile.queries, length) if causal else length
        pairs += len(range(0, end, tile.keys)) * tile.queries * tile.keys
    return pairs


@given(st.integers(1, 900), st.integers(1, 200), st.integers(1, 200), st.booleans())
def test_tile_pairs_count_the_tiles_that_hold_any_pair(length, queries, keys, causal):
    tile = Tile(queries, keys)
    assert tile_pairs([length], tile, causal)[0] == counted_tiles(length, tile, causal)


@given(st.lists(st.integers(1, 5000), min_size=1), st.booleans())
def test_tiles_of_one_pair_are_the_pairs(lengths, causal):
    assert (tile_pairs(lengths, EXACT, causal) == attention_pairs(lengths, causal)).all()
    whole = tile_pairs(lengths, Tile(128, 80), causal)
    assert (whole >= attention_pairs(lengths, causal)).all()


@given(st.integers(0, 10_000))
def test_least_squares_agree_with_scipy(seed):
    generator = np.random.default_rng(seed)
    matrix = generator.standard_normal((20, 4))
    target = matrix @ generator.standard_normal(4) + 0.1 * generator.standard_normal(20)
    ours = nonnegative_least_squares(matrix.T @ matrix, matrix.T @ target)
    np.testing.assert_allclose(ours, nnls(matrix, target)[0], atol=1e-8)


def random_calls(seed=0, count=60, noise=0.0, coefficients=None, tile=EXACT, causal=True):
    """Calls of a kernel that follows the model, with lognormal noise."""
    generator = np.random.default_rng(seed)
    segments = [generator.integers(16, 4000, generator.integers(1, 30)) for _ in range(count)]
    heads = generator.choice([1, 2, 8, 64], count)
    calls = Calls(segments, heads, np.ones(count), np.arange(count), 128, causal)
    seconds = predicted_seconds(KernelTime(coefficients, tile), calls)
    seconds = seconds * np.exp(noise * generator.standard_normal(count))
    return Calls(segments, heads, seconds, np.arange(count), 128, causal)


TRUTH = {"fixed": 5e-5, "segment": 4e-8, "token": 2e-10, "flop": 1.5e-15}


def test_coefficients_of_an_exact_model_are_found():
    result = calibrate(random_calls(coefficients=TRUTH), [EXACT], None)
    for term in TERMS:
        assert result.model.coefficients[term] == pytest.approx(TRUTH[term], rel=1e-6)
    assert result.worst_error < 1e-6


def test_terms_that_do_not_matter_are_left_out():
    truth = {"fixed": 5e-5, "flop": 1.5e-15}
    result = calibrate(random_calls(coefficients=truth, noise=0.01), [EXACT], None)
    assert set(result.model.coefficients) == {"fixed", "flop"}


@pytest.mark.parametrize("tile", [Tile(128, 80), Tile(192, 192), EXACT])
def test_the_data_choose_the_tile(tile):
    calls = random_calls(coefficients=TRUTH, tile=tile, noise=0.003, causal=False)
    assert calibrate(calls, ALTERNATIVES, None).model.tile == tile


@pytest.mark.parametrize("tile", [EXACT, Tile(128, 128)])
def test_coefficients_are_never_negative(tile):
    calls = random_calls(coefficients={"flop": 1.5e-15}, noise=0.3)
    fitter = Fitter(calls, [tile])
    every = np.ones(len(fitter.packs), dtype=bool)
    assert (fitter.fit(tile, TERMS, every) >= 0).all()
    # Where nothing held them, some would be.
    rows = Features(calls).columns(tile) / calls.seconds[:, None]
    assert np.linalg.lstsq(rows / np.linalg.norm(rows, axis=0), np.ones(len(rows)))[0].min() < 0


def test_held_out_errors_are_of_packs_that_the_fit_has_not_seen():
    calls = random_calls(coefficients=TRUTH)
    spoiled = calls.seconds.copy()
    spoiled[7] *= 1.5
    worse = Calls(calls.segments, calls.q_heads, spoiled, calls.pack, 128, True)
    result = calibrate(worse, [EXACT], None)
    # The fit without pack 7 does not know that it is spoiled.
    assert result.held_out[7] == pytest.approx(1 / 1.5 - 1, abs=1e-3)


def test_too_few_packs_are_refused():
    with pytest.raises(InputError, match="calibration has 5 packs: it needs at least 6"):
        calibrate(random_calls(count=5, coefficients=TRUTH), [EXACT], None)


def test_known_tiles_are_those_of_the_sources():
    assert known_tile("fa3", 128, causal=False) == Tile(128, 176)
    assert known_tile("fa3", 128, causal=True) == Tile(128, 128)
    assert known_tile("fa3", 64, causal=True) == Tile(192, 128)
    assert known_tile("torch_cpu", 128, causal=True) is None
    for kernel in ("fa3", "fa2"):
        assert known_tile(kernel, 128, causal=False) in tiles_to_try(kernel)


def test_measured_h100_calls_are_predicted_for_all_head_splits(shared_dir):
    """44 measured calls: errors of every pack, held out in all four head splits together."""
    path = shared_dir / "data" / "h100-varlen-forward.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 44 and {int(r["head_shards"]) for r in rows} == {1, 2, 4, 8}
    calls = Calls(
        segments=[np.full(int(r["num_seqs"]), int(r["seq_len"])) for r in rows],
        q_heads=np.array([int(r["q_heads"]) for r in rows]),
        seconds=np.array([float(r["time_ms"]) for r in rows]) * 1e-3,
        pack=np.array([int(r["seq_len"]) for r in rows]),
        head_dim=128,
        causal=True,
    )
    result = calibrate(calls, ALTERNATIVES, known_tile("fa2", 128, causal=True))
    assert result.median_error < 0.03
    assert result.worst_error < 0.10
    # The model that knows query-key pairs alone is an order of magnitude worse.
    assert np.median(np.abs(result.quadratic)) > 10 * result.median_error
    # Peak near 370 TFLOP/s, read off the longest segments.
    assert 340e12 < 1 / result.model.coefficients["flop"] < 400e12


@pytest.fixture
def timed(tmp_path):
    """Twelve small packs of CP 1 and 2, timed on this CPU."""
    pytest.importorskip("torch", reason="the kernels are torch's")
    generator = np.random.default_rng(0)

    def packs(tokens, count):
        for pack in range(count):
            cuts = np.sort(generator.choice(np.arange(1, tokens), 3, replace=False))
            yield 0, pack, np.diff([0, *cuts, tokens]).tolist()

    files = [
        write_packs(tmp_path / "cp1.parquet", 1, packs(256, 8), tokens_per_gpu=256),
        write_packs(tmp_path / "cp2.parquet", 2, packs(512, 4), tokens_per_gpu=256),
    ]
    assert run_time(files, tmp_path / "timings.parquet", steps=1, direction="both") == 0
    return tmp_path, files


def run_calibrate(folder, files, timings=("timings.parquet",)):
    return main(
        ["calibrate", "--timings", *(str(folder / name) for name in timings), "--packs"]
        + [str(file) for file in files]
        + ["--table", str(folder / "fit.parquet"), "--output", str(folder / "torch_cpu.json")]
    )


def test_calibrate_writes_model_errors_and_table(timed):
    folder, files = timed
    assert run_calibrate(folder, files) == 0
    found = json.loads((folder / "torch_cpu.json").read_text())
    fitted = found["directions"]["forward"]
    assert set(found["directions"]) == {"forward", "backward"}
    assert fitted["segment_loop"] and fitted["packs"] == 12
    assert all(value >= 0 for value in fitted["coefficients"].values())
    assert fitted["valid"]["pack_tokens"] == [256, 512]
    table = read_table(folder / "fit.parquet", CALIBRATION_FIT)
    forward = table.filter(np.array(table["direction"].to_pylist()) == "forward")
    assert forward.num_rows == 12
    error = np.abs(forward["held_out_error"].to_numpy())
    assert fitted["held_out"]["median"] == pytest.approx(np.median(error))
    assert (forward["predicted"].to_numpy() > 0).all()
    model = fitted_model(found, "file")
    assert model.coefficients == fitted["coefficients"]


def test_a_simulated_time_says_what_it_follows_from(timed, capsys):
    folder, files = timed
    assert run_calibrate(folder, files) == 0
    output = folder / "costs.parquet"
    words = ["simulate", "--packs", str(files[1]), "--q-heads", "8", "--kv-heads", "8"]
    words += ["--head-dim", "16", "--causal", "--cost", "calibrated:torch_cpu"]
    words += ["--calibration", str(folder / "torch_cpu.json"), "--output", str(output)]
    assert main(words) == 0
    # Timed with 4 heads at CP 1 and 2 at CP 2; a rank of this layer has 4.
    assert "extrapolation" not in capsys.readouterr().err
    provenance = read_provenance(output, COSTS)
    assert provenance["cost_unit"] == "ms"
    assert provenance["calibration"]["kernel"] == "torch_cpu"
    assert provenance["calibration"]["valid"]["q_heads"] == [2, 4]
    words[4] = words[6] = "64"
    assert main(words) == 0
    said = capsys.readouterr().err
    assert "was fitted to 2 to 4 query heads a call; 32 are an extrapolation" in said


def test_a_predicted_time_says_what_it_follows_from(timed, capsys):
    folder, files = timed
    assert run_calibrate(folder, files) == 0
    layer = {"q_heads": 8, "kv_heads": 8, "head_dim": 16, "causal": True}
    path = str(folder / "torch_cpu.json")
    words = [
        "theory",
        "--name",
        "x",
        "--lengths",
        '{"family":"exponential","mean":16,"max_seq_len":64}',
    ]
    words += ["--world-size", "4", "--cp-sizes", "1", "2", "--tokens-per-gpu", "64"]
    words += ["--attentions", json.dumps({"layer": layer})]
    words += ["--calibrations", json.dumps({"layer/calibrated:torch_cpu": path})]
    words += ["--costs", "quadratic", "calibrated:torch_cpu"]
    words += ["--output", str(folder / "x.parquet"), "--density", str(folder / "d.parquet")]
    assert main(words) == 0
    # Timed with 4 heads at CP 1 and 2 at CP 2; a rank of this layer has 8 and 4.
    said = capsys.readouterr().err
    assert said.count("extrapolation") == 1 and "4 query heads a call; 8 are" in said
    for name, schema in (("x", THEORY), ("d", THEORY_DENSITY)):
        provenance = read_provenance(folder / f"{name}.parquet", schema)
        assert provenance["costs"] == ["quadratic", "calibrated:torch_cpu"]
        (facts,) = provenance["calibrations"].values()
        assert facts["kernel"] == "torch_cpu" and facts["valid"]["q_heads"] == [2, 4]
        assert str(folder) not in json.dumps(provenance)


def test_calibrate_refuses_what_does_not_belong_together(timed, capsys):
    folder, files = timed
    other = write_packs(folder / "x" / "cp1.parquet", 1, [(0, 0, [256])], tokens_per_gpu=256)
    assert run_calibrate(folder, files[:1]) == 2
    assert "cp_size [1, 2] that are not all among --packs" in capsys.readouterr().err
    assert run_calibrate(folder, [other, files[1]]) == 2
    assert "was taken on other packs" in capsys.readouterr().err
    assert run_time(files, folder / "full.parquet", steps=1, causal=None, full=True) == 0
    capsys.readouterr()
    assert run_calibrate(folder, files, ("timings.parquet", "full.parquet")) == 2
    assert "was timed with another attention than" in capsys.readouterr().err


def test_a_calibration_of_another_make_is_refused():
    with pytest.raises(InputError, match=r"x.json: is no calibration/1 document"):
        fitted_model({"schema": "calibration/0"}, "x.json")
    with pytest.raises(InputError, match="has no backward model, only forward"):
        fitted_model(
            {"schema": "calibration/1", "directions": {"forward": {}}}, "x.json", "backward"
        )
