"""What a SLURM site offers against what a profile asks for; what SLURM's own commands print.

The executor asks for what stands in the profile, and a site that cannot give it, or cannot tell
when a job has ended, shows this late or never: a job that no node can run waits for ever, and a
query of states that a site does not keep hangs without a word. Here the answers of ``sinfo``,
``scontrol`` and ``sacctmgr`` are held against the profile before anything is submitted. References
are the manual pages of SLURM 22.05 to 24.11.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SINFO_FORMAT = "%P|%a|%l|%c|%m|%G|%f"
SQUEUE_FORMAT = "%A|%Z"
# The executor looks after this many intervals at the latest, so a finished job has to be kept so
# long (it turns to sacct by itself where MinJobAge is shorter).
INTERVALS_KEPT = 3


@dataclass(frozen=True)
class Request:
    """What one kind of job asks for; memory in MB, time in minutes, empty for not asked."""

    name: str
    partition: str = ""
    cpus: int = 1
    memory_mb: int = 0
    minutes: int = 0
    gpu_type: str | None = None  # None: no GPU; "": any GPU
    constraint: str = ""
    account: str = ""
    qos: str = ""
    options: tuple[str, ...] = ()

    @property
    def sbatch(self) -> list[str]:
        """The options of ``sbatch`` that say so."""
        words = {"-p": self.partition, "-A": self.account, "-C": self.constraint}
        words["-t"] = str(self.minutes or "")
        given = [part for flag, value in words.items() if value for part in (flag, value)]
        given += [f"--qos={self.qos}"] if self.qos else []
        given += [f"--mem={self.memory_mb}"] if self.memory_mb else []
        return [*given, f"--cpus-per-task={self.cpus}", *self.options]


@dataclass(frozen=True)
class NodeGroup:
    """One line of ``sinfo``: alike nodes of one partition."""

    partition: str
    up: bool
    minutes: float
    cpus: int
    memory_mb: int
    gpu_types: tuple[str, ...]
    features: tuple[str, ...]


def requests_of(profile: Mapping[str, Any]) -> list[Request]:
    """The jobs that a profile submits: one for its default resources, one a rule of its own."""
    default = dict(profile.get("default-resources") or {})
    found = [_request("CPU stages", default)]
    for rule, resources in (profile.get("set-resources") or {}).items():
        found.append(_request(rule, default | dict(resources)))
    return found


def _request(name: str, resources: Mapping[str, Any]) -> Request:
    options: list[str] = []
    gpu_type = None
    if gres := resources.get("gres"):
        options.append(f"--gres={gres}")
        parts = str(gres).split(":")
        gpu_type = parts[1] if len(parts) == 3 else ""
    if count := resources.get("gpu"):
        gpu_type = str(resources.get("gpu_model") or "")
        options.append(f"--gpus={gpu_type}:{count}" if gpu_type else f"--gpus={count}")
    for word in str(resources.get("slurm_extra") or "").split():
        options.append(word)
        if word.startswith("--gpus-per-node="):
            kind, colon, _ = word.partition("=")[2].partition(":")
            gpu_type = kind if colon else ""
    return Request(
        name=name,
        partition=str(resources.get("slurm_partition") or ""),
        cpus=int(resources.get("cpus_per_task") or 1),
        memory_mb=first_attempt(resources.get("mem_mb")),
        minutes=first_attempt(resources.get("runtime")),
        gpu_type=gpu_type,
        constraint=str(resources.get("constraint") or ""),
        account=str(resources.get("slurm_account") or ""),
        qos=str(resources.get("qos") or ""),
        options=tuple(options),
    )


def first_attempt(value: Any) -> int:
    """A number of the profile on the first try: ``4``, ``"4"`` or ``"attempt * 4"``; 0 if none."""
    match = re.fullmatch(r"(?:attempt \* )?(\d+)", str(value or 0))
    return int(match[1]) if match else 0


def parse_minutes(text: str) -> float:
    """Minutes of ``minutes``, ``hours:minutes:seconds`` or with ``days-`` in front."""
    if text in ("infinite", "UNLIMITED"):
        return float("inf")
    days, dash, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    if dash:
        hours, minutes = [*parts, 0][:2]
    elif len(parts) == 3:
        hours, minutes = parts[:2]
    else:
        hours, minutes = 0, parts[0]
    return int(days or 0) * 1440 + hours * 60 + minutes


def parse_sinfo(text: str) -> list[NodeGroup]:
    """Lines of ``sinfo -h -e -o '%P|%a|%l|%c|%m|%G|%f'``."""
    groups = []
    for line in text.splitlines():
        partition, state, limit, cpus, memory, gres, features = line.split("|")
        groups.append(
            NodeGroup(
                partition=partition.rstrip("*"),
                up=state == "up",
                minutes=parse_minutes(limit),
                cpus=int(cpus.rstrip("+")),
                memory_mb=int(memory.rstrip("+")),
                gpu_types=_gpu_types(gres),
                features=tuple(features.split(",")),
            )
        )
    return groups


def _gpu_types(gres: str) -> tuple[str, ...]:
    """Types of ``gpu:h100:8(S:0-1),nvme:1``; "" for GPUs without one."""
    devices = [part.split("(")[0].split(":") for part in re.split(r",(?![^(]*\))", gres)]
    return tuple(d[1] if len(d) == 3 else "" for d in devices if d[0] == "gpu")


def parse_settings(text: str) -> dict[str, str]:
    """``Name = value`` lines of ``scontrol show config``."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def complaints(request: Request, site: Sequence[NodeGroup]) -> list[str]:
    """What a site cannot give of ``request``; each names the setting, what it is, what is there."""
    partitions = sorted({group.partition for group in site})
    here = [group for group in site if group.partition == request.partition]
    if not request.partition:
        return []
    if not here:
        return [
            f"{request.name}: partition is {request.partition!r}; this site has "
            f"{', '.join(partitions)}"
        ]
    if not any(group.up for group in here):
        return [f"{request.name}: partition {request.partition} is not up; ask the site why"]
    found = []
    if request.gpu_type is not None:
        types = sorted({kind for group in here for kind in group.gpu_types})
        if not types:
            return [f"{request.name}: partition {request.partition} has no GPUs; set gpu_partition"]
        if request.gpu_type and request.gpu_type not in types:
            shown = ", ".join(kind or "untyped GPUs" for kind in types)
            return [
                f"{request.name}: GPU type is {request.gpu_type!r}; partition {request.partition} "
                f"has {shown}; set gpu_type"
            ]
        kind = request.gpu_type
        here = [g for g in here if (kind in g.gpu_types if kind else g.gpu_types)]
    limits = (
        ("cores", request.cpus, max(group.cpus for group in here)),
        ("MB of memory", request.memory_mb, max(group.memory_mb for group in here)),
        ("minutes", request.minutes, max(group.minutes for group in here)),
    )
    for what, asked, most in limits:
        if asked > most:
            found.append(
                f"{request.name}: asks for {asked} {what}, partition {request.partition} gives at "
                f"most {most:.0f}"
            )
    wanted = set(re.findall(r"[\w.-]+", request.constraint))
    features = {feature for group in here for feature in group.features}
    if missing := sorted(wanted - features):
        found.append(
            f"{request.name}: constraint {request.constraint!r} names {', '.join(missing)}; nodes "
            f"of {request.partition} have {', '.join(sorted(features))}"
        )
    return found


def keeps_accounting(settings: Mapping[str, str]) -> bool:
    """Whether a site writes down its jobs; one that does not says ``…/none`` or ``(null)``."""
    kind = settings.get("AccountingStorageType", "")
    return "/" in kind and not kind.endswith("/none")


def polling_complaints(profile: Mapping[str, Any], settings: Mapping[str, str]) -> list[str]:
    """Why the executor would not learn how its jobs end at this site, or learn it wrongly."""
    found = []
    accounting = keeps_accounting(settings)
    command = profile.get("slurm-status-command", "sacct")
    interval = int(profile.get("slurm-init-seconds-before-status-checks", 40))
    kept = int(re.match(r"\d*", settings.get("MinJobAge", "")).group() or 0)  # type: ignore[union-attr]
    if command == "sacct" and not accounting:
        found.append(
            "slurm-status-command is sacct, but this site keeps no accounting: the workflow would "
            "wait for ever; set it to squeue"
        )
    if command == "sacct" and accounting:
        found.append(
            "slurm-status-command is sacct: a cancelled job is not recognised and the workflow "
            "would wait for it for ever; set it to squeue"
        )
    if command == "squeue" and kept < INTERVALS_KEPT * interval:
        remedy = (
            "the executor turns to sacct then, which does not recognise a cancelled job"
            if accounting
            else "the executor turns to sacct then, which waits for ever without accounting"
        )
        found.append(
            f"MinJobAge is {kept} s at this site, under {INTERVALS_KEPT} times "
            f"slurm-init-seconds-before-status-checks ({interval}): {remedy}; set it to "
            f"{max(1, kept // INTERVALS_KEPT)} or ask the site for a longer MinJobAge"
        )
    return found


def preemption_complaints(partition: str, mode: str) -> list[str]:
    """Why a preempted job would not go on by itself."""
    if mode.split(",")[-1] != "CANCEL":
        return []
    return [
        f"partition {partition} cancels preempted jobs, and the executor waits for such a job for "
        f"ever: choose another partition, or stop Snakemake when it speaks of a preemption and run "
        f"`make slurm`"
    ]


def jobs_of_folder(text: str, folder: str) -> list[str]:
    """Ids of the jobs that were submitted from ``folder``, from ``squeue -h -o '%A|%Z'``."""
    pairs = (line.partition("|") for line in text.splitlines())
    return sorted({job for job, _, where in pairs if where == folder}, key=int)
