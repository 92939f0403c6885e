"""What the answers of a SLURM site mean for a profile; answers as sinfo and scontrol print them."""

import pytest

from cpbalance import slurm
from cpbalance.slurm import Request

# A site as the manual page of sinfo shows them: mixed nodes, sockets behind GPU types, no limits.
SITE = slurm.parse_sinfo(
    "batch*|up|2-00:00:00|64|257000+|(null)|icelake,ib\n"
    "gpu|up|12:00:00|96|1031000|gpu:h100:8(S:0-1),nvme:1|h100,hbm3\n"
    "gpu|up|12:00:00|64|515000|gpu:a100:4(S:0,1)|a100\n"
    "old|inact|infinite|32|128000|gpu:4|(null)\n"
)
GPU = Request("time_kernels", "gpu", 16, 64000, 120, "h100", "hbm3")


def changed(**values):
    return Request(**{**vars(GPU), **values})


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("30", 30),
        ("30:00", 30),
        ("12:00:00", 720),
        ("2-00:00:00", 2880),
        ("1-12", 2160),
        ("infinite", float("inf")),
    ],
)
def test_time_limits_are_read_in_every_form(text, minutes):
    assert slurm.parse_minutes(text) == minutes


def test_a_site_is_read_with_its_gpu_types_and_features():
    batch, h100, a100, old = SITE
    assert (batch.partition, batch.memory_mb, batch.gpu_types) == ("batch", 257000, ())
    assert (h100.gpu_types, h100.features) == (("h100",), ("h100", "hbm3"))
    assert a100.gpu_types == ("a100",)
    assert (old.gpu_types, old.up, old.minutes) == (("",), False, float("inf"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"gpu_type": "", "constraint": ""}, None),
        ({"gpu_type": "a100", "constraint": "a100"}, None),
        ({"partition": "gpus"}, ["'gpus'", "batch, gpu, old"]),
        ({"partition": "batch"}, ["batch has no GPUs", "gpu_partition"]),
        ({"partition": "old"}, ["old is not up"]),
        ({"gpu_type": "h200"}, ["'h200'", "a100, h100", "gpu_type"]),
        ({"cpus": 128}, ["128 cores", "at most 96"]),
        ({"memory_mb": 2_000_000}, ["2000000 MB", "at most 1031000"]),
        ({"gpu_type": "a100", "constraint": "", "cpus": 96}, ["96 cores", "at most 64"]),
        ({"minutes": 1000}, ["1000 minutes", "at most 720"]),
        ({"constraint": "hbm3&sxm"}, ["sxm", "hbm3"]),
    ],
)
def test_a_request_that_the_site_cannot_give_is_named_with_what_it_has(change, words):
    found = slurm.complaints(changed(**change), SITE)
    assert len(found) == (0 if words is None else 1)
    for word in words or []:
        assert word in found[0]


@pytest.mark.parametrize(
    ("command", "accounting", "kept", "interval", "word"),
    [
        ("squeue", "slurmdbd", "300 sec", 10, None),
        ("squeue", "none", "300 sec", 10, None),
        ("squeue", "none", "300 sec", 100, None),
        ("squeue", "none", "299 sec", 100, "set it to 99"),
        ("squeue", "none", "5 sec", 10, "waits for ever without accounting"),
        ("squeue", "slurmdbd", "5 sec", 10, "does not recognise a cancelled job"),
        ("sacct", "none", "300 sec", 10, "no accounting"),
        ("sacct", None, "300 sec", 10, "no accounting"),
        ("squeue", None, "5 sec", 10, "waits for ever without accounting"),
        ("sacct", "slurmdbd", "300 sec", 10, "cancelled job is not recognised"),
    ],
)
def test_a_site_that_cannot_tell_how_jobs_end_is_named(command, accounting, kept, interval, word):
    profile = {
        "slurm-status-command": command,
        "slurm-init-seconds-before-status-checks": interval,
    }
    settings = {
        # SLURM 24.11 says (null) where 22.05 says none.
        "AccountingStorageType": f"accounting_storage/{accounting}" if accounting else "(null)",
        "MinJobAge": kept,
    }
    found = slurm.polling_complaints(profile, settings)
    assert len(found) == (word is not None)
    assert word is None or word in found[0]


@pytest.mark.parametrize(
    ("resources", "options", "gpu_type"),
    [
        ({"gres": "gpu:h100:1"}, ["--gres=gpu:h100:1"], "h100"),
        ({"gres": "gpu:1"}, ["--gres=gpu:1"], ""),
        ({"gpu": 1, "gpu_model": "h100"}, ["--gpus=h100:1"], "h100"),
        ({"gpu": 1}, ["--gpus=1"], ""),
        (
            {"slurm_extra": "--exclusive --gpus-per-node=h100:1"},
            ["--exclusive", "--gpus-per-node=h100:1"],
            "h100",
        ),
        ({"slurm_extra": "--gpus-per-node=1"}, ["--gpus-per-node=1"], ""),
        ({}, [], None),
    ],
)
def test_a_profile_is_read_as_the_executor_submits_it(resources, options, gpu_type):
    profile = {
        "default-resources": {"slurm_partition": "batch", "mem_mb": "attempt * 2000"},
        "set-resources": {"time_kernels": {"slurm_partition": "gpu", "runtime": 30} | resources},
    }
    stages, timing = slurm.requests_of(profile)
    assert (stages.partition, stages.memory_mb, stages.gpu_type) == ("batch", 2000, None)
    assert (timing.partition, timing.memory_mb, timing.minutes) == ("gpu", 2000, 30)
    assert timing.gpu_type == gpu_type
    expected = ["-p", "gpu", "-t", "30", "--mem=2000", "--cpus-per-task=1", *options]
    assert timing.sbatch == expected


def test_a_partition_that_cancels_what_it_preempts_is_named():
    assert slurm.preemption_complaints("gpu", "REQUEUE") == []
    assert slurm.preemption_complaints("gpu", "OFF") == []
    (found,) = slurm.preemption_complaints("spot", "GANG,CANCEL")
    assert "spot" in found and "for ever" in found


def test_jobs_of_a_folder_are_its_own_alone():
    text = "12|/home/me/a\n7|/home/me/a\n8|/home/me/ab\n9|/home/me\n12|/home/me/a\n"
    assert slurm.jobs_of_folder(text, "/home/me/a") == ["7", "12"]
