"""Bad input: one clear line that names key, value and remedy, and finished results left alone."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from cpbalance.cli import main

pytestmark = pytest.mark.xdist_group("journeys")

FILE = "tiny-lengths.txt"


def setting(path, value):
    """A change of the configuration: the value at a dotted path, or its removal for None."""

    def change(config):
        *parents, last = path.split(".")
        for key in parents:
            config = config[key]
        if value is None:
            del config[last]
        else:
            config[last] = value

    return change


EXPONENTIAL = "lengths.exponential"

# What is wrong -> (change of the configuration, what the line must say).
CONFIGURATIONS = {
    "unknown key": (setting("stpes", 3), ["unknown key stpes", "did you mean steps"]),
    "unknown key, nested": (
        setting("cluster.cp_size", [1]),
        ["unknown key cluster.cp_size", "cp_sizes"],
    ),
    "unknown key of a family": (
        setting(f"{EXPONENTIAL}.sigma", 3),
        ["unknown key lengths.exponential.sigma", "valid: ", "mean_fraction"],
    ),
    "unknown family": (
        setting(f"{EXPONENTIAL}.family", "gamma"),
        ["lengths.exponential", "gamma", "exponential"],
    ),
    "no such attention key": (setting("attention.full.heads", 3), ["attention.full.heads"]),
    "missing experiment": (setting("experiment", None), ["experiment", "required"]),
    "experiment is a path": (setting("experiment", "../x"), ["experiment", "../x"]),
    "cp does not divide the devices": (
        setting("cluster.cp_sizes", [3]),
        ["cp_size 3 must divide world_size", "[1, 2, 4, 8]"],
    ),
    "cp does not divide the heads": (
        setting("attention.full", {"q_heads": 6, "kv_heads": 6, "head_dim": 8, "causal": True}),
        ["cp_size 8 must divide q_heads (6)"],
    ),
    "cp named twice": (setting("cluster.cp_sizes", [1, 1]), ["cluster.cp_sizes", "1 stands there"]),
    "cost named twice": (
        setting("costs", ["flops", "flops"]),
        ["costs", "'flops' stands there twice"],
    ),
    "no cp": (setting("cluster.cp_sizes", []), ["cluster.cp_sizes", "at least 1"]),
    "tp does not divide the devices": (setting("cluster.tp_size", 3), ["tp_size (3) must divide"]),
    "kv heads do not divide": (setting("attention.full.kv_heads", 3), ["kv_heads (3) must divide"]),
    "zero steps": (setting("steps", 0), ["steps is 0", "greater than or equal to 1"]),
    "fractional steps": (setting("steps", 2.5), ["steps is 2.5", "integer"]),
    "negative seed": (setting("seed", -1), ["seed is -1"]),
    "zero tokens a device": (setting("cluster.tokens_per_gpu", 0), ["tokens_per_gpu is 0"]),
    "pack too long": (setting("cluster.tokens_per_gpu", 2**30), ["it must have under 2^31"]),
    "negative mean": (setting(f"{EXPONENTIAL}.mean_fraction", -1.0), ["mean_fraction is -1.0"]),
    "mean that is not a number": (
        setting(f"{EXPONENTIAL}.mean_fraction", float("nan")),
        ["mean_fraction is nan"],
    ),
    "text for a mean": (setting(f"{EXPONENTIAL}.mean_fraction", "long"), ["'long'", "number"]),
    "two means": (setting(f"{EXPONENTIAL}.mean", 50), ["exactly one of mean and mean_fraction"]),
    "no mean": (setting(f"{EXPONENTIAL}.mean_fraction", None), ["exactly one of mean"]),
    "cap under 1": (setting(f"{EXPONENTIAL}.max_seq_len", 0), ["max_seq_len is 0"]),
    "cap under the shortest": (
        setting(f"{EXPONENTIAL}.min_tokens", 600),
        ["max_seq_len (512) is under min_tokens (600)"],
    ),
    "tail without a mean": (
        setting(EXPONENTIAL, {"family": "pareto", "mean": 9, "alpha": 1.0}),
        ["lengths.exponential.alpha is 1.0", "greater than 1"],
    ),
    "cap inside a mixture": (
        setting(
            EXPONENTIAL,
            {
                "family": "mixture",
                "components": [
                    {"weight": 1, "lengths": {"family": "constant", "mean": 5, "max_seq_len": 3}}
                ],
            },
        ),
        ["components.0", "max_seq_len belongs to the mixture"],
    ),
    "no lengths": (setting("lengths", {}), ["lengths", "at least 1"]),
    "lengths with a slash": (setting("lengths", {"a/b": {"file": FILE}}), ["a/b"]),
    "missing file": (
        setting("lengths.corpus.file", "absent.parquet"),
        ["lengths.corpus.file is 'absent.parquet'", "no such file"],
    ),
    "unknown order": (setting("lengths.corpus.order", "random"), ["'random'", "shuffled"]),
    "unknown cost": (setting("costs", ["cubic"]), ["cubic", "quadratic"]),
    "unknown packing": (setting("packing", ["first_fit"]), ["first_fit", "concat_split"]),
    "reference in another setting": (
        setting("references", {"exponential": "exponential"}),
        ["world_size 128", "leave them out"],
    ),
    "reference to no lengths": (setting("references", {"x": "normal"}), ["'x'", "corpus"]),
    "interval of everything": (setting("statistics", {"confidence": 1}), ["confidence is 1"]),
}


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_bad_configuration_is_one_line(case):
    """The message, as the workflow prints it (the next test shows that it does)."""
    from cpbalance.config import parse_config
    from cpbalance.errors import InputError
    from cpbalance.plan import make_plan

    change, expected = CONFIGURATIONS[case]
    config = tiny_config()
    change(config)
    with pytest.raises(InputError) as caught:
        make_plan(parse_config(config))
    line = str(caught.value)
    assert "\n" not in line and line.startswith("config: ")
    for part in expected:
        assert part in line, line


@pytest.mark.parametrize("case", ["unknown key", "cp does not divide the devices", "missing file"])
def test_the_workflow_prints_the_line_and_leaves_results_alone(finished, tmp_path, case):
    change, expected = CONFIGURATIONS[case]
    config = tiny_config()
    change(config)
    bad = tmp_path / "bad.yaml"
    bad.write_text(yaml.safe_dump(config))
    before = finished.digests()
    done = finished.snakemake(config=str(bad), check=False)
    assert done.returncode != 0
    assert all(part in done.stderr for part in expected)
    assert "Traceback" not in done.stderr
    assert finished.digests() == before


def tiny_config():
    repository = Path(__file__).resolve().parents[2]
    config = yaml.safe_load((repository / "tests" / "data" / "tiny.yaml").read_text())
    config["lengths"]["corpus"]["file"] = str(repository / "tests" / "data" / FILE)
    return config


# --- files of lengths, through the command line ---


def parquet(path, values, **columns):
    pq.write_table(pa.table({"num_tokens": values} | columns), path)


# What is wrong -> (file name, how to write it, more keys, what the line must say).
FILES = {
    "negative": ("l.txt", lambda p: p.write_text("5\n-3\n"), {}, ["entry 2 is -3"]),
    "fractional": ("l.csv", lambda p: p.write_text("n\n5\n2.5\n"), {}, ["entry 2 is 2.5"]),
    "not a number": ("l.txt", lambda p: p.write_text("5\nmany\n"), {}, ["entry 2 is 'many'"]),
    "NaN": ("l.npy", lambda p: np.save(p, [1.0, np.nan]), {}, ["entry 2 is nan"]),
    "infinite": ("l.npy", lambda p: np.save(p, [np.inf]), {}, ["entry 1 is inf"]),
    "missing entry": ("l.parquet", lambda p: parquet(p, [1, None]), {}, ["entry 2 is missing"]),
    "empty line": ("l.txt", lambda p: p.write_text("5\n\n6\n"), {}, ["entry 2 is missing"]),
    "empty file": ("l.txt", lambda p: p.write_text(""), {}, ["the file is empty"]),
    "no rows": ("l.parquet", lambda p: parquet(p, pa.array([], pa.int32())), {}, ["no lengths"]),
    "all empty documents": ("l.txt", lambda p: p.write_text("0\n0\n"), {}, ["have no tokens"]),
    "text that is called Parquet": (
        "l.parquet",
        lambda p: p.write_text("5\n6\n"),
        {},
        ["not a readable .parquet file"],
    ),
    "text that is called npy": (
        "l.npy",
        lambda p: p.write_text("5\n6\n"),
        {},
        ["not a readable .npy file"],
    ),
    "text that is called gzip": (
        "l.txt.gz",
        lambda p: p.write_text("5\n6\n"),
        {},
        ["not a readable .txt file"],
    ),
    "pickle in an npy": (
        "l.npy",
        lambda p: np.save(p, np.array([{}], dtype=object), allow_pickle=True),
        {},
        ["not a readable .npy file"],
    ),
    "two dimensions": ("l.npy", lambda p: np.save(p, [[1, 2]]), {}, ["shape (1, 2)"]),
    "truth values": ("l.parquet", lambda p: parquet(p, [True]), {}, ["of type bool"]),
    "unknown ending": ("l.json", lambda p: p.write_text("[1]"), {}, [".parquet, .feather"]),
    "missing column": (
        "l.parquet",
        lambda p: parquet(p, [1]),
        {"column": "length"},
        ["no column 'length'", "num_tokens"],
    ),
    "column not named": (
        "l.parquet",
        lambda p: parquet(p, [1], other=[2]),
        {},
        ["has columns ['num_tokens', 'other']", "key column"],
    ),
    "column of a text file": (
        "l.txt",
        lambda p: p.write_text("5\n"),
        {"column": "n"},
        ["has no columns"],
    ),
    "too few tokens in order as_is": (
        "l.txt",
        lambda p: p.write_text("5\n6\n"),
        {"order": "as_is"},
        ["has 11 tokens, enough for 0 steps", "shuffled"],
    ),
    "gone": ("absent.txt", lambda p: None, {}, ["no such file"]),
}


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_is_one_line_and_leaves_results_alone(case, tmp_path, caplog, capfd):
    name, write, keys, expected = FILES[case]
    path = tmp_path / name
    write(path)
    output = tmp_path / "out.parquet"
    output.write_bytes(b"finished earlier")
    sizes = ["--tokens-per-gpu", "64", "--tokens-per-step", "64", "--steps", "1", "--seed", "0"]
    source = json.dumps({"file": str(path), **keys})
    status = main(["sample", "--name", "x", *sizes, "--lengths", source, "--output", str(output)])
    assert status == 2
    lines = capfd.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("cpbalance sample: error: ")
    for part in (str(path), *expected):
        assert part in lines[0], lines[0]
    assert output.read_bytes() == b"finished earlier"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        {name, "out.parquet"} & _names(tmp_path)
    )


def _names(folder):
    return {path.name for path in folder.iterdir()}


# --- the other commands ---


@pytest.fixture(scope="module")
def stage_files(finished):
    return finished.folder / "results" / "tiny"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pack --lengths {costs} --packing concat_split --world-size 8 --cp-size 1 "
         "--tokens-per-gpu 512", ["holds schema costs/1", "lengths/1 is needed"]),
        ("pack --lengths {lengths} --packing concat_split --world-size 8 --cp-size 3 "
         "--tokens-per-gpu 512", ["must divide --world-size 8"]),
        ("pack --lengths {lengths} --packing best_fit --world-size 8 --cp-size 1 "
         "--tokens-per-gpu 512", ["'best_fit'", "concat_split"]),
        ("pack --lengths {lengths} --packing concat_split --world-size 8 --cp-size 1 "
         "--tokens-per-gpu 0", ["--tokens-per-gpu is 0"]),
        ("pack --lengths {lengths} --packing concat_split --world-size 80 --cp-size 1 "
         "--tokens-per-gpu 512", ["its packs need 40960"]),
        ("pack --lengths {absent} --packing concat_split --world-size 8 --cp-size 1 "
         "--tokens-per-gpu 512", ["no such file"]),
        ("pack --lengths {broken} --packing concat_split --world-size 8 --cp-size 1 "
         "--tokens-per-gpu 512", ["not a readable Parquet file"]),
        ("simulate --packs {packs} --q-heads 8 --kv-heads 3 --head-dim 8 --full --cost quadratic",
         ["kv_heads is 3"]),
        ("simulate --packs {packs} --q-heads 9 --kv-heads 9 --head-dim 8 --full --cost quadratic",
         ["cp_size is 2", "divide q_heads (9)"]),
        ("simulate --packs {packs} --q-heads 8 --kv-heads 8 --head-dim 8 --full --cost cubic",
         ["'cubic'", "quadratic"]),
        ("plot nothing --tables {packs}", ["'nothing'", "imbalance"]),
        ("plot variance --tables {metrics}", ["needs the table slopes"]),
    ],
)  # fmt: skip
def test_bad_arguments_are_one_line(command, expected, stage_files, tmp_path, capfd):
    broken = tmp_path / "broken.parquet"
    whole = stage_files / "lengths/exponential.parquet"
    broken.write_bytes(whole.read_bytes()[:-100])
    output = tmp_path / "out.png"
    paths = {
        "lengths": whole,
        "packs": stage_files / "packs/exponential/concat_split/cp2.parquet",
        "costs": stage_files / "costs/exponential/concat_split/full/quadratic/cp2.parquet",
        "metrics": stage_files / "tables/metrics.parquet",
        "absent": tmp_path / "absent.parquet",
        "broken": broken,
    }
    assert main([*command.format(**paths).split(), "--output", str(output)]) == 2
    lines = capfd.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and "error: " in lines[0]
    for part in expected:
        assert part in lines[0], lines[0]
    assert not output.exists()


def test_a_failing_rule_shows_the_line_and_keeps_the_rest(finished, tmp_path):
    """A corpus too short for its order: its job fails, the line is shown, other results stay."""
    folder = tmp_path / "copy"
    shutil.copytree(finished.folder, folder, symlinks=True)
    config = yaml.safe_load((folder / "tiny.yaml").read_text())
    config["lengths"]["corpus"] |= {"order": "as_is", "max_seq_len": 20, "overlong": "truncate"}
    (folder / "tiny.yaml").write_text(yaml.safe_dump(config))
    before = hashlib.sha256(
        (folder / "results/tiny/lengths/exponential.parquet").read_bytes()
    ).hexdigest()
    done = subprocess.run(
        ["timeout", "-s", "KILL", "120", "snakemake", "--configfile", "tiny.yaml", "--cores", "2",
         "--keep-going"],
        cwd=folder, env=finished.environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode != 0
    assert "use order shuffled or iid" in done.stderr
    after = (folder / "results/tiny/lengths/exponential.parquet").read_bytes()
    assert hashlib.sha256(after).hexdigest() == before
    log = (folder / "logs/sample_lengths/corpus.log").read_text()
    assert log.splitlines()[-1].startswith("cpbalance sample: error: ")


def test_help_names_every_command():
    listed = subprocess.run(
        [sys.executable, "-m", "cpbalance", "--help"], capture_output=True, text=True, check=True
    ).stdout
    for command in ("sample", "pack", "simulate", "aggregate", "plot"):
        assert command in listed
