"""Artifacts: the same inputs give the same bytes, and nothing hostile or damaged gets through."""

import hashlib
import json
import random
import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from cpbalance import tables
from cpbalance.artifact import format as fmt
from cpbalance.artifact import open_artifact
from cpbalance.cli import main
from cpbalance.stage_schemas import COSTS


def contents(path):
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def test_holds_what_the_run_wrote_and_how(artifact, run_folder):
    members = contents(artifact)
    for path in run_folder.rglob("*.parquet"):
        assert members[path.relative_to(run_folder).as_posix()] == path.read_bytes()
    run = json.loads(members["run.json"])
    assert (run["seed"], run["command"]) == (7, "snakemake all")
    assert {"sample", "pack", "simulate", "artifact"} <= set(run["code"])
    assert json.loads(members["config.json"]) == {"experiment": "demo", "seed": 7}
    assert json.loads(members["environment.json"])["packages"]["numpy"]
    lines = dict(line.split("  ")[::-1] for line in members[fmt.MANIFEST].decode().splitlines())
    assert lines == {
        name: hashlib.sha256(content).hexdigest()
        for name, content in members.items()
        if name != fmt.MANIFEST
    }


def test_same_inputs_same_bytes(export_artifact, artifact, run_folder, tmp_path):
    copy = tmp_path / "elsewhere" / "demo"
    shutil.copytree(run_folder, copy)
    for path in copy.rglob("*"):
        path.chmod(0o700)
    assert export_artifact(copy, tmp_path / "again.crate.zip") == 0
    assert (tmp_path / "again.crate.zip").read_bytes() == artifact.read_bytes()


def test_source_date_epoch_dates_the_crate(export_artifact, run_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert export_artifact(run_folder, tmp_path / "a.crate.zip") == 0
    crate = json.loads(contents(tmp_path / "a.crate.zip")[fmt.CRATE])
    root = next(entity for entity in crate["@graph"] if entity["@id"] == "./")
    assert root["datePublished"] == "2023-11-14T22:13:20+00:00"


def test_extract_gives_back_every_file(artifact, run_folder, tmp_path):
    assert main(["artifact", "extract", str(artifact), "--to", str(tmp_path / "out")]) == 0
    for path in run_folder.rglob("*"):
        twin = tmp_path / "out" / path.relative_to(run_folder)
        assert twin.is_dir() if path.is_dir() else twin.read_bytes() == path.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out"]


def test_extract_takes_a_stage_and_spares_what_differs(artifact, tmp_path, capsys):
    mine = tmp_path / "calibration" / "cpu.json"
    mine.parent.mkdir()
    mine.write_text("mine")
    command = ["artifact", "extract", str(artifact), "--to", str(tmp_path)]
    assert main([*command, "--only", "lengths", "calibration"]) == 2
    assert "exists and differs" in capsys.readouterr().err
    assert mine.read_text() == "mine" and not (tmp_path / "lengths").exists()
    assert main([*command, "--force", "--only", "calibration"]) == 0
    assert mine.read_text() == '{"fixed": 1.0}'
    assert main([*command, "--only", "tables/metrics.parquet"]) == 2
    assert "holds no tables/metrics.parquet" in capsys.readouterr().err


def test_show_says_what_is_inside(artifact, capsys):
    assert main(["artifact", "show", str(artifact)]) == 0
    shown = capsys.readouterr().out
    assert "experiment   demo" in shown and "costs/demo/cp1.parquet" in shown
    assert main(["artifact", "show", "--config", str(artifact)]) == 0
    assert json.loads(capsys.readouterr().out) == {"experiment": "demo", "seed": 7}


# -- what must be refused -------------------------------------------------------------------------


def rebuild(path, members, sums=True, method=zipfile.ZIP_STORED):
    """Write a zip with these members, with a manifest that fits them unless told not to."""
    members = dict(members)
    if sums:
        digests = {
            n: hashlib.sha256(c).hexdigest() for n, c in members.items() if n != fmt.MANIFEST
        }
        members[fmt.MANIFEST] = fmt.manifest_text(digests).encode()
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def added(name, content=b"x"):
    return lambda path, members: rebuild(path, {**members, name: content})


def truncated(path, members):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def not_a_zip(path, members):
    path.write_bytes(b"experiment,value\n1,2\n" * 20)


def changed_byte(path, members):
    data = path.read_bytes()
    at = data.index(members["costs/demo/cp1.parquet"]) + 20
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def changed_with_its_checksum(path, members):
    name = "calibration/cpu.json"
    rebuild(path, {**members, name: b'{"fixed": 2.0}'}, sums=False)


def manifest_lists_more(path, members):
    del members["calibration/cpu.json"]
    rebuild(path, members, sums=False)


def manifest_lists_less(path, members):
    rebuild(path, {**members, "tables/more.csv": b"a\n1\n"}, sums=False)


def manifest_garbled(path, members):
    rebuild(path, {**members, fmt.MANIFEST: b"sha256 of nothing\n"}, sums=False)


def manifest_repeats(path, members):
    text = members[fmt.MANIFEST]
    rebuild(path, {**members, fmt.MANIFEST: text + text}, sums=False)


def without(name):
    return lambda path, members: rebuild(path, {k: v for k, v in members.items() if k != name})


def special(mode, name="tables/link.csv"):
    def make(path, members):
        rebuild(path, members)
        info = zipfile.ZipInfo(name)
        info.create_system, info.external_attr = 3, mode << 16
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(info, b"/etc/passwd")

    return make


@pytest.mark.filterwarnings("ignore:Duplicate name")
def twice(path, members):
    rebuild(path, members)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("calibration/cpu.json", b"{}")


def encrypted(path, members):
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)


def cut_at_nul(path, members):
    rebuild(path, {**members, "tables/a.csv?.png": b"x"})
    path.write_bytes(path.read_bytes().replace(b"a.csv?.png", b"a.csv\0.png"))


def other_method(path, members):
    rebuild(path, members, method=zipfile.ZIP_LZMA)


def lying_size(path, members):
    """A member whose header says 10 bytes but that inflates to a million."""
    rebuild(path, {**members, "tables/bomb.csv": b"0" * 1_000_000}, method=zipfile.ZIP_DEFLATED)
    data = path.read_bytes().replace((1_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    path.write_bytes(data)


def bomb(path, members):
    rebuild(path, {**members, "tables/bomb.csv": b"0" * 3_000_000}, method=zipfile.ZIP_DEFLATED)


def descriptor(**changes):
    def make(path, members):
        value = {**json.loads(members[fmt.DESCRIPTOR]), **changes}
        rebuild(path, {**members, fmt.DESCRIPTOR: json.dumps(value).encode()})

    return make


def newer_with_unknown_stages(path, members):
    descriptor(version=fmt.VERSION + 1, stages=["holograms"])(path, members)
    rebuild(path, {**contents(path), "holograms/a.parquet": b"?"})


def table(schema, columns, member="costs/demo/cp1.parquet"):
    def make(path, members):
        target = path.with_suffix(".table")
        tables.write_table(target, schema, columns, {})
        content = target.read_bytes()
        target.unlink()
        rebuild(path, {**members, member: content})

    return make


LACKING = tables.Schema(
    "costs", 1, {k: v for k, v in COSTS.columns.items() if k != "attention_pairs"}
)
NEWER = tables.Schema("costs", 2, COSTS.columns)
ROW = {"step": [0], "pack": [0], "attention_pairs": [1], "cost": [1.0]}

HOSTILE = {
    "truncated": (truncated, "truncated, or not a zip"),
    "not a zip": (not_a_zip, "truncated, or not a zip"),
    "changed byte": (changed_byte, "member costs/demo/cp1.parquet is damaged"),
    "changed with its checksum": (changed_with_its_checksum, "member calibration/cpu.json has SHA"),
    "manifest lists more": (manifest_lists_more, "lacks calibration/cpu.json, which the manifest"),
    "manifest lists less": (manifest_lists_less, "holds tables/more.csv, which the manifest does"),
    "manifest garbled": (manifest_garbled, "line 1 of manifest-sha256.txt is not"),
    "manifest repeats": (manifest_repeats, "again"),
    "no manifest": (
        lambda path, m: rebuild(
            path, {k: v for k, v in m.items() if k != fmt.MANIFEST}, sums=False
        ),
        "holds no manifest-sha256.txt",
    ),
    "absolute path": (added("/tables/a.csv"), "'/tables/a.csv' is an absolute path"),
    "drive letter": (added("C:/tables/a.csv"), "an absolute path"),
    "climbs": (added("tables/../../a.csv"), "climbs with '..'"),
    "climbs by backslash": (added("tables\\..\\..\\a.csv"), "climbs with '..'"),
    "backslash": (added("tables\\a.csv"), "not a plain file name"),
    "empty part": (added("tables//a.csv"), "not a plain file name"),
    "hidden": (added("tables/.a.csv"), "not a plain file name"),
    "folder": (added("tables/"), "not a plain file name"),
    "not ASCII": (added("tables/ä.csv"), "not a plain file name"),
    "cut at NUL": (cut_at_nul, "not a plain file name"),
    "no stage": (added("evil/a.csv"), "member evil/a.csv is in no stage"),
    "file at the top": (added("setup.py"), "member setup.py is in no stage"),
    "symbolic link": (special(stat.S_IFLNK | 0o777), "is a link"),
    "device": (special(stat.S_IFCHR | 0o666), "is not a regular file"),
    "duplicate": (twice, "'calibration/cpu.json' is in the zip twice"),
    "duplicate but for case": (added("Calibration/cpu.json"), "in the zip twice"),
    "encrypted": (encrypted, "is encrypted"),
    "other method": (other_method, "compressed by method 14"),
    "inflates past the limit": (bomb, "inflates past the limit"),
    "lies about its size": (lying_size, "member tables/bomb.csv"),
    "newer format": (
        descriptor(version=fmt.VERSION + 1),
        "has format version 2, but this cpbalance",
    ),
    "newer format, new stages": (newer_with_unknown_stages, "has format version 2"),
    "other format": (descriptor(format="zip"), "names format 'zip'"),
    "version no number": (descriptor(version=True), "version True"),
    "no experiment": (descriptor(experiment=None), "lacks its experiment"),
    "other experiment": (descriptor(experiment="other"), "holds experiment 'other', but 'demo'"),
    "no descriptor": (without(fmt.DESCRIPTOR), "holds no artifact.json"),
    "descriptor not JSON": (added(fmt.DESCRIPTOR, b"{"), "artifact.json is not JSON"),
    "descriptor no object": (added(fmt.DESCRIPTOR, b"[]"), "artifact.json is not a JSON object"),
    "descriptor not UTF-8": (added(fmt.DESCRIPTOR, b"\xff"), "artifact.json is not UTF-8"),
    "config not JSON": (added(fmt.CONFIG, b"experiment: demo"), "config.json is not JSON"),
    "no config": (without(fmt.CONFIG), "holds no config.json"),
    "table lacks a column": (
        table(LACKING, {k: v for k, v in ROW.items() if k != "attention_pairs"}),
        "costs/demo/cp1.parquet: has columns ['step', 'pack', 'cost']",
    ),
    "table of a newer schema": (table(NEWER, ROW), "holds schema costs/2"),
    "table of another kind": (
        table(COSTS, ROW, "lengths/demo.parquet"),
        "lengths/demo.parquet: holds schema costs/1",
    ),
    "table no Parquet": (added("costs/demo/cp1.parquet"), "not a readable Parquet file"),
    "table unknown": (table(COSTS, ROW, "tables/odd.parquet"), "tables/odd.parquet"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_refused_before_anything_is_written(case, artifact, tmp_path, capsys):
    make, message = HOSTILE[case]
    path = tmp_path / "hostile.crate.zip"
    shutil.copy(artifact, path)
    make(path, contents(artifact))
    finished = tmp_path / "results" / "calibration" / "cpu.json"
    finished.parent.mkdir(parents=True)
    finished.write_text("finished")
    options = [str(path), "--experiment", "demo", "--limit-gib", str(2e6 / 2**30)]
    for action in (["verify"], ["extract", "--force", "--to", str(tmp_path / "results")]):
        assert main(["artifact", action[0], *options, *action[1:]]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and message in error
    assert finished.read_text() == "finished"
    assert {p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file()} == {
        Path("hostile.crate.zip"),
        Path("results/calibration/cpu.json"),
    }


def test_no_artifact_there(tmp_path, capsys):
    assert main(["artifact", "verify", str(tmp_path / "none.zip")]) == 2
    assert "no such file" in capsys.readouterr().err


def test_any_flipped_bit_is_refused_or_changes_no_content(artifact, tmp_path):
    """Bytes that are no content (times, modes) may change; content may not, wherever it is hit."""
    data, sound = artifact.read_bytes(), contents(artifact)
    path = tmp_path / "flipped.crate.zip"
    generator = random.Random(0)
    refused = 0
    for _ in range(400):
        at, bit = generator.randrange(len(data)), generator.randrange(8)
        path.write_bytes(data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :])
        try:
            with open_artifact(path, "demo") as opened:
                assert {name: opened.read(name) for name in opened.sizes} == sound
        except tables.InputError:
            refused += 1
    assert refused > 300


@pytest.mark.parametrize(
    ("member", "message"),
    [("figures/a.csv", "in no stage"), ("tables/a.exe", "of a kind"), ("tables/a b.csv", "plain")],
)
def test_export_refuses_what_a_reader_would(export_artifact, member, message, tmp_path, capsys):
    (tmp_path / member).parent.mkdir()
    (tmp_path / member).write_text("x")
    assert export_artifact(tmp_path, tmp_path / "out" / "a.crate.zip") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_config_keeps_its_order(run_folder, tmp_path):
    """Panels and rows stand in the order of the configuration, so a run made again needs it."""
    config = '{"experiment": "demo", "lengths": {"b": 1, "a": 2}, "costs": []}'
    command = ["artifact", "export", "--root", str(run_folder), "--experiment", "demo"]
    command += ["--command", "x", "--output", str(tmp_path / "a.crate.zip"), "--config", config]
    assert main([*command, str(run_folder / "calibration/cpu.json")]) == 0
    found = json.loads(contents(tmp_path / "a.crate.zip")["config.json"])
    assert list(found) == ["experiment", "lengths", "costs"] and list(found["lengths"]) == [
        "b",
        "a",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "--limit-gib", "0"], "--limit-gib is 0.0"),
        (["verify", "--limit-gib", "inf"], "--limit-gib is inf"),
        (["verify", "--limit-gib", "nan"], "--limit-gib is nan"),
        (["verify", "--made-with", "{"], "--made-with is not JSON"),
        (["verify", "--made-with", "[]"], "--made-with is not a JSON object"),
        (["verify", "--made-with", '{"experiment":"demo","seed":8}'], "made with another seed"),
        (["verify", "--made-with", '{"experiment":"demo"}'], "made with another seed"),
    ],
)
def test_bad_arguments_get_one_line(arguments, message, artifact, capsys):
    assert main(["artifact", *arguments, str(artifact)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and message in error


def test_a_checked_copy_is_the_file(artifact, tmp_path):
    copy = tmp_path / "new" / "copy.zip"
    settings = '{"seed":7,"experiment":"demo"}'
    command = ["artifact", "verify", "--made-with", settings, "--copy", str(copy), str(artifact)]
    assert main(command) == 0
    assert copy.read_bytes() == artifact.read_bytes()


def test_a_date_that_is_none_is_refused(export_artifact, run_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    assert export_artifact(run_folder, tmp_path / "a.crate.zip") == 2
    assert "SOURCE_DATE_EPOCH is 'yesterday'" in capsys.readouterr().err
