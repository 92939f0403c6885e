"""Lengths: families against their own distribution, files in every format, caps and orders."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from cpbalance.cli.sample import parse_lengths
from cpbalance.errors import InputError
from cpbalance.lengths import make_sampler
from cpbalance.lengths.caps import apply_cap
from cpbalance.lengths.distribution import length_pmf
from cpbalance.lengths.families import draw_lengths
from cpbalance.lengths.files import read_lengths
from cpbalance.streams import step_generator

FAMILIES = {
    "exponential": {"family": "exponential", "mean": 100},
    "normal": {"family": "normal", "mean": 100, "cv": 0.25},
    "wide normal": {"family": "normal", "mean": 100, "cv": 1.0, "min_tokens": 5},
    "lognormal": {"family": "lognormal", "mean": 100, "cv": 1.5},
    "pareto": {"family": "pareto", "mean": 100, "alpha": 2.5},
    "uniform": {"family": "uniform", "mean": 100, "spread": 0.5},
    "constant": {"family": "constant", "mean": 100},
    "mixture": {
        "family": "mixture",
        "components": [
            {"weight": 3, "lengths": {"family": "constant", "mean": 20}},
            {"weight": 1, "lengths": {"family": "exponential", "mean": 300, "min_tokens": 10}},
        ],
    },
}


def source(**keys):
    return parse_lengths(json.dumps(keys)).with_mean(8192)


def sampler(lengths, tokens_per_step=10_000, name="s", seed=0, population=None):
    return make_sampler(name, lengths, 8192, tokens_per_step, seed, population)


@pytest.mark.parametrize("name", FAMILIES)
def test_draws_follow_the_mass_function(name):
    """Chi-square of 200,000 draws over cells of at least 50 expected; mean within 5 errors."""
    lengths = source(**FAMILIES[name], max_seq_len=400)
    pmf = length_pmf(lengths, 400)
    assert pmf.sum() == pytest.approx(1, abs=1e-12) and pmf[0] == 0 and (pmf >= 0).all()
    count = 200_000
    drawn = apply_cap(draw_lengths(lengths, step_generator(7, name, 0), count), 400, "truncate")
    observed = np.bincount(drawn, minlength=401)
    assert not observed[pmf == 0].any()
    # Neighbouring lengths share a cell until 50 draws are expected in it.
    cell = np.cumsum(pmf)[pmf > 0] * count // 50
    seen_at, expected_at = observed[pmf > 0], pmf[pmf > 0] * count
    cells = [(seen_at[cell == c].sum(), expected_at[cell == c].sum()) for c in np.unique(cell)]
    seen, expected = np.array(cells).T
    if len(seen) > 1:
        assert stats.chisquare(seen, expected).pvalue > 1e-4
    mean = pmf @ np.arange(401)
    error = np.sqrt(pmf @ (np.arange(401) - mean) ** 2 / count)
    assert abs(drawn.mean() - mean) <= 5 * error


@pytest.mark.parametrize(
    ("keys", "mean", "cv"),
    [
        ({"family": "exponential"}, 1024, 1.0),
        ({"family": "normal", "cv": 0.25}, 1024, 0.25),
        ({"family": "lognormal", "cv": 2.0}, 1024, 2.0),
        ({"family": "uniform", "spread": 1.0}, 1024, 1 / 3**0.5),
        # A Pareto with alpha 4.5 has cv 1/sqrt(alpha (alpha - 2)).
        ({"family": "pareto", "alpha": 4.5}, 1024, 1 / (4.5 * 2.5) ** 0.5),
    ],
)
def test_families_have_the_mean_and_cv_they_are_given(keys, mean, cv):
    """Mean and CV of the mass function; rounding down takes half a token off the mean."""
    lengths = source(**keys, mean_fraction=mean / 8192)
    longest = 2_000_000
    pmf = length_pmf(lengths, longest)
    values = np.arange(longest + 1)
    found = pmf @ values
    assert found == pytest.approx(mean - 0.5, rel=2e-3)
    assert np.sqrt(pmf @ (values - found) ** 2) / found == pytest.approx(cv, rel=0.02)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=30), st.integers(1, 5000))
def test_split_conserves_tokens_and_truncate_documents(lengths, cap):
    documents = np.array(lengths, dtype=np.int64)
    split = apply_cap(documents, cap, "split")
    assert split.sum() == documents.sum() and split.max() <= cap and split.min() >= 1
    assert len(split) == sum(-(-length // cap) for length in lengths)
    cut = apply_cap(documents, cap, "truncate")
    assert len(cut) == len(documents) and (cut == np.minimum(documents, cap)).all()
    assert apply_cap(documents, None, "truncate") is documents


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("overlong", ["truncate", "split"])
def test_a_step_holds_its_tokens_and_nothing_starts_beyond_it(name, overlong):
    lengths = source(**FAMILIES[name], max_seq_len=150, overlong=overlong)
    steps = sampler(lengths)
    for step in range(5):
        documents = steps.documents(step)
        assert documents.dtype == np.int64
        assert documents.sum() >= 10_000 > documents[:-1].sum()
        assert documents.min() >= 1 and documents.max() <= 150


def test_streams_depend_on_seed_name_and_step_only():
    lengths = source(family="exponential", mean=100)
    first = sampler(lengths).documents(3)
    assert np.array_equal(sampler(lengths).documents(3), first)
    later = sampler(lengths)
    for step in (5, 0, 4):
        later.documents(step)
    assert np.array_equal(later.documents(3), first)
    for other in (
        sampler(lengths, seed=1).documents(3),
        sampler(lengths, name="t").documents(3),
        sampler(lengths).documents(2),
    ):
        assert not np.array_equal(other[:20], first[:20])


def test_a_heavy_tail_without_cap_fills_steps_in_bounded_memory():
    lengths = source(family="pareto", mean=100, alpha=1.05, max_seq_len=7, overlong="split")
    for step in range(20):
        documents = sampler(lengths, tokens_per_step=1000).documents(step)
        assert documents.max() <= 7 and documents.sum() >= 1000


# --- orders of a file ---


def file_source(order, **keys):
    return source(family="file", file="unread.txt", order=order, **keys)


POPULATION = np.arange(1, 101, dtype=np.int64)  # 5050 tokens, every length once


def test_as_is_goes_through_the_file_and_starts_each_step_with_a_new_document():
    steps = sampler(file_source("as_is"), tokens_per_step=1000, population=POPULATION)
    taken = np.concatenate([steps.documents(step) for step in range(4)])
    assert np.array_equal(taken, POPULATION[: len(taken)])


def test_as_is_refuses_steps_that_the_file_does_not_hold():
    steps = sampler(file_source("as_is"), tokens_per_step=1000, population=POPULATION)
    with pytest.raises(InputError, match=r"5050 tokens, enough for 4 steps .*shuffled"):
        steps.documents(4)
    with pytest.raises(InputError, match="enough for 0 steps"):
        sampler(file_source("as_is"), 6000, population=POPULATION).documents(0)


def test_shuffled_uses_no_document_twice_before_all_are_used():
    steps = sampler(file_source("shuffled"), tokens_per_step=9000, population=POPULATION)
    documents = steps.documents(0)
    assert sorted(documents[:100]) == POPULATION.tolist()
    assert len(np.unique(documents[100:])) == len(documents[100:])
    assert not np.array_equal(documents[:100], POPULATION)


def test_iid_draws_follow_the_file():
    population = np.repeat(np.array([10, 20, 30], dtype=np.int64), [5, 3, 2])
    steps = sampler(file_source("iid"), tokens_per_step=10**6, population=population)
    share = np.bincount(steps.documents(0), minlength=31)[[10, 20, 30]]
    assert stats.chisquare(share, share.sum() * np.array([0.5, 0.3, 0.2])).pvalue > 1e-4


def test_the_mass_function_of_a_file_is_its_histogram():
    pmf = length_pmf(file_source("iid", max_seq_len=3), 10, np.array([1, 2, 2, 9]))
    assert pmf.tolist() == [0, 0.25, 0.5, 0.25]


# --- formats ---

VALUES = [5, 0, 17, 123456]


def write(path, values=VALUES, column="num_tokens", second=False):
    table = pa.table({column: values} | ({"other": values} if second else {}))
    match path.suffixes:
        case [".parquet"]:
            pq.write_table(table, path)
        case [".feather"]:
            pyarrow.feather.write_feather(table, path, compression="zstd")
        case [".arrow"]:
            pyarrow.feather.write_feather(table, path, compression="uncompressed")
        case [".csv"]:
            pyarrow.csv.write_csv(table, path)
        case [".csv", ".gz"]:
            with gzip.open(path, "wb") as file:
                pyarrow.csv.write_csv(table, file)
        case [".csv", ".zst"]:
            with pa.output_stream(str(path), compression="zstd") as file:
                pyarrow.csv.write_csv(table, file)
        case [".npy"]:
            np.save(path, np.array(values))
        case [".txt"]:
            path.write_text("".join(f"{value}\n" for value in values))
        case [".txt", ".gz"]:
            path.write_bytes(gzip.compress("".join(f"{v}\n" for v in values).encode()))
        case [".txt", ".zst"]:
            with pa.output_stream(str(path), compression="zstd") as file:
                file.write("".join(f"{value}\n" for value in values).encode())
    return path


ENDINGS = [".parquet", ".feather", ".arrow", ".npy"]
ENDINGS += [text + packed for text in (".csv", ".txt") for packed in ("", ".gz", ".zst")]


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_reads_the_same_and_counts_empty_documents(tmp_path, ending):
    lengths, dropped = read_lengths(write(tmp_path / f"lengths{ending}"))
    assert lengths.tolist() == [5, 17, 123456] and lengths.dtype == np.int64 and dropped == 1


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv"])
def test_a_column_is_named_where_there_are_several(tmp_path, ending):
    path = write(tmp_path / f"lengths{ending}", second=True)
    assert read_lengths(path, "other")[0].tolist() == [5, 17, 123456]
    with pytest.raises(InputError, match=r"has columns \['num_tokens', 'other'\]"):
        read_lengths(path)
    with pytest.raises(InputError, match=r"no column 'length'; it has"):
        read_lengths(path, "length")


def test_whole_numbers_stored_as_floats_are_taken(tmp_path):
    path = write(tmp_path / "lengths.parquet", [1.0, 2.0])
    assert read_lengths(path)[0].tolist() == [1, 2]


@given(st.binary(min_size=1, max_size=200), st.sampled_from(ENDINGS))
def test_arbitrary_bytes_give_lengths_or_one_line(tmp_path_factory, content, ending):
    path = tmp_path_factory.mktemp("bytes") / f"lengths{ending}"
    path.write_bytes(content)
    try:
        lengths, _ = read_lengths(path)
    except InputError as error:
        assert "\n" not in str(error) and str(path) in str(error)
    else:
        assert (lengths >= 1).all()


def test_shipped_corpora_are_what_their_source_says(shared_dir):
    """Counts, means and maxima as published with the data."""
    for name, documents, mean, longest in (
        ("code", 55_405, 7_622, 8.9e6),
        ("docs", 5_128, 1_569, 83_702),
    ):
        path = f"resources/linux-6.1-{name}-lengths.parquet"
        shipped, dropped = read_lengths(path)
        original, _ = read_lengths(shared_dir / "data" / f"linux-6.1-{name}-lengths.parquet")
        assert np.array_equal(shipped, original)
        assert len(shipped) + dropped == documents
        assert shipped.sum() / documents == pytest.approx(mean, rel=1e-3)
        assert shipped.max() == pytest.approx(longest, rel=0.01)
