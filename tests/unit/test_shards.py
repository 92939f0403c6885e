"""Shards of a run: they share out the steps, and put together they are what one run writes."""

import itertools
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpbalance.cli import main
from cpbalance.errors import InputError
from cpbalance.shards import Shard, all_shards, parse_shard
from cpbalance.stage_schemas import TIMINGS
from cpbalance.tables import STEPS_PER_ROW_GROUP, table_writer

STEPS = 3 * STEPS_PER_ROW_GROUP + 20
ATTENTION = ["--q-heads", "8", "--kv-heads", "8", "--head-dim", "64", "--full"]


@given(units=st.integers(0, 300), count=st.integers(1, 60))
def test_shards_share_out_all_units_once_in_order_and_evenly(units, count):
    shares = [shard.share(units) for shard in all_shards(count)]
    assert list(itertools.chain(*shares)) == list(range(units))
    sizes = [len(share) for share in shares]
    assert max(sizes) - min(sizes) <= 1


@given(count=st.integers(1, 50), data=st.data())
def test_a_shard_reads_back_from_its_name(count, data):
    shard = Shard(data.draw(st.integers(1, count)), count)
    assert parse_shard(str(shard)) == shard


@pytest.mark.parametrize("text", ["", "1", "0-of-4", "5-of-4", "-1-of-4", "1-of-0", "1 of 4"])
def test_a_bad_name_is_refused_with_what_is_valid(text):
    with pytest.raises(InputError, match="K-of-N"):
        parse_shard(text)


def run(*argv: object) -> None:
    assert main([str(word) for word in argv]) == 0


@pytest.fixture(scope="module")
def lengths(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("lengths") / "lengths.parquet"
    family = '{"family":"exponential","mean":64.0,"max_seq_len":512}'
    run(
        *("sample", "--name", "exponential", "--lengths", family, "--tokens-per-gpu", 512),
        *("--tokens-per-step", 4096, "--steps", STEPS, "--seed", 3, "--output", path),
    )
    return path


def pack(lengths: Path, output: Path, *more: object) -> Path:
    run(
        *("pack", "--lengths", lengths, "--packing", "concat_split", "--world-size", 8),
        *("--cp-size", 2, "--tokens-per-gpu", 512, *more, "--output", output),
    )
    return output


def simulate(packs: Path, output: Path) -> Path:
    run("simulate", "--packs", packs, *ATTENTION, "--cost", "quadratic", "--output", output)
    return output


def merge(schema: str, shards: list[Path], output: Path) -> Path:
    run("merge", "--schema", schema, "--shards", *shards, "--output", output)
    return output


# More shards than row groups too: some are empty then.
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_merged_shards_have_the_bytes_of_a_run_that_was_not_split(lengths, tmp_path, count):
    whole = pack(lengths, tmp_path / "packs.parquet")
    costs = simulate(whole, tmp_path / "costs.parquet")
    packed = [
        pack(lengths, tmp_path / f"packs-{shard}.parquet", "--shard", shard)
        for shard in all_shards(count)
    ]
    costed = [
        simulate(path, path.with_name(path.name.replace("packs", "costs"))) for path in packed
    ]
    assert merge("packs", packed, tmp_path / "p.parquet").read_bytes() == whole.read_bytes()
    assert merge("costs", costed, tmp_path / "c.parquet").read_bytes() == costs.read_bytes()


def test_shards_that_do_not_belong_together_are_refused(lengths, tmp_path, capsys):
    first, second, third = (
        pack(lengths, tmp_path / f"{shard}.parquet", "--shard", shard) for shard in all_shards(3)
    )
    other = tmp_path / "other.parquet"
    run(
        *("pack", "--lengths", lengths, "--packing", "concat_split", "--world-size", 8),
        *("--cp-size", 4, "--tokens-per-gpu", 512, "--shard", "2-of-3", "--output", other),
    )
    output = tmp_path / "merged.parquet"
    output.write_bytes(b"earlier result")
    for shards, complaint in (
        ([first, third], "goes on with step"),
        ([second, third], "step 0 is next"),
        ([first, second, second], "goes on with step"),
        ([first, other, third], "was made otherwise"),
        ([first, tmp_path / "absent.parquet"], "no such file"),
    ):
        words = ["merge", "--schema", "packs", "--output", output, "--shards", *shards]
        assert main([str(word) for word in words]) == 2
        lines = capsys.readouterr().err.strip().splitlines()
        assert len(lines) == 1 and complaint in lines[0]
        assert output.read_bytes() == b"earlier result"


@given(data=st.data())
def test_merged_timings_have_the_bytes_of_one_file_however_they_were_split(tmp_path_factory, data):
    """Rows and runs of four steps in one file, and the same split at any steps."""
    folder = tmp_path_factory.mktemp("timings")
    count = data.draw(st.integers(1, 4))
    settings = {"stage": "time", "kernel": {"name": "torch_cpu"}}
    runs = [{"steps": [s.start, s.stop]} for s in (k.share(4) for k in all_shards(count))]

    def write(path: Path, steps: range, runs: list[dict]) -> Path:
        with table_writer(path, TIMINGS, settings | {"runs": runs}) as writer:
            for step in steps:
                writer.write(timing_rows(step))
        return path

    whole = write(folder / "whole.parquet", range(4), runs)
    shards = [
        write(folder / f"{shard}.parquet", shard.share(4), [run])
        for shard, run in zip(all_shards(count), runs, strict=True)
    ]
    assert merge("timings", shards, folder / "m.parquet").read_bytes() == whole.read_bytes()


def timing_rows(step: int) -> dict[str, list]:
    """Two made-up calls of a step, a value of every column, none where a CPU has none."""
    kinds = {pa.string(): "pack", pa.bool_(): False, pa.float64(): 1e-3 * (step + 1)}
    rows = {
        name: [None if dtype == pa.float32() else kinds.get(dtype, 7)] * 2
        for name, (dtype, _) in TIMINGS.columns.items()
    }
    return rows | {"step": [step, step], "order": [2 * step, 2 * step + 1]}
