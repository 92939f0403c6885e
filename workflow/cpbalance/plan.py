"""What the workflow makes from a configuration: paths, and the arguments of every stage.

Arguments are one canonical string a job: Snakemake compares a rule's params as a set of values, so
two swapped values would go unnoticed if each were a param of its own.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from cpbalance.config import AttentionShape, Config, resolve_path
from cpbalance.config_lengths import LengthsFile
from cpbalance.errors import InputError
from cpbalance.names import (
    CALIBRATED,
    CALIBRATION_FIGURES,
    COMPARE_FIGURES,
    FAMILY_TABLE,
    FIGURE_TABLES,
    PAGE_TABLES,
    TABLE_NAMES,
    THEORY_FIGURES,
    THEORY_PACKING,
    THEORY_PAGE_TABLES,
    THEORY_TABLE_NAMES,
)
from cpbalance.shards import all_shards
from cpbalance.tables import canonical_json, file_digest

# Files that may be put together from shards, less folder and ending, and the stage that the number
# of shards belongs to.
MERGED = {
    "packs": (r"packs/.+/cp\d+", "simulate"),
    "costs": (r"costs/.+/cp\d+", "simulate"),
    "timings": (r"timings/[^/]+/[^/]+/[^/]+", "time"),
}


@dataclass(frozen=True)
class Plan:
    """Paths and arguments of one experiment; ``digests`` are the SHA-256 of files of lengths."""

    config: Config
    digests: Mapping[str, str]

    @property
    def results(self) -> str:
        """Folder of the experiment's outputs."""
        return f"results/{self.config.experiment}"

    def parts(self, stage: str) -> list[str]:
        """What the shards of a stage's file are called after its stem: "" where there is one."""
        count = getattr(self.config.shards, stage)
        if stage == "time" and self.config.timings_from is not None:
            count = 1
        return [f".shards/{shard}" for shard in all_shards(count)] if count > 1 else [""]

    @property
    def sharded(self) -> bool:
        """Whether packing and costing are split by step: a cluster's profile sets shards apart."""
        return self.config.shards.simulate > 1

    def merged(self) -> dict[str, str]:
        """Kinds of files that are put together from shards, and the pattern of their stems."""
        return {kind: stem for kind, (stem, stage) in MERGED.items() if len(self.parts(stage)) > 1}

    def shard_files(self, kind: str, stem: str) -> list[str]:
        """The shards of a file, in order."""
        return [f"{self.results}/{stem}{part}.parquet" for part in self.parts(MERGED[kind][1])]

    def lengths_files(self) -> list[str]:
        """Outputs of the sample stage."""
        return [f"{self.results}/lengths/{name}.parquet" for name in self.config.lengths]

    def _series(self) -> Iterator[tuple[str, str, int]]:
        return product(self.config.lengths, self.config.packing, self.config.cluster.cp_sizes)

    def pack_files(self) -> list[str]:
        """Outputs of the pack stage."""
        return [
            f"{self.results}/packs/{lengths}/{packing}/cp{cp_size}.parquet"
            for lengths, packing, cp_size in self._series()
        ]

    def cost_files(self) -> list[str]:
        """Outputs of the simulate stage."""
        return [
            f"{self.results}/costs/{lengths}/{packing}/{attention}/{cost}/cp{cp_size}.parquet"
            for attention, cost in product(self.config.attention, self.config.costs)
            for lengths, packing, cp_size in self._series()
        ]

    @property
    def has_theory(self) -> bool:
        """Whether packs are cut as theory assumes."""
        return THEORY_PACKING in self.config.packing

    def theory_files(self, folder: str = "theory") -> list[str]:
        """Predictions of all lengths; in ``theory/density`` their densities."""
        names = self.config.lengths if self.has_theory else ()
        return [f"{self.results}/{folder}/{name}.parquet" for name in names]

    def aggregate_files(self) -> list[str]:
        """Outputs of the aggregate stage."""
        names = (*TABLE_NAMES, *(THEORY_TABLE_NAMES if self.has_theory else ()))
        return [*self._tables(names), f"{self.results}/tables/headline.txt"]

    def family_files(self) -> list[str]:
        """Outputs of the families stage."""
        return self._tables([FAMILY_TABLE])

    def table_files(self) -> list[str]:
        """All tables, and the headline."""
        return [*self.aggregate_files(), *self.family_files()]

    def _tables(self, names: Iterable[str]) -> list[str]:
        files = product(names, ("parquet", "csv"))
        return [f"{self.results}/tables/{name}.{ending}" for name, ending in files]

    def figure_files(self) -> list[str]:
        """Outputs of the plot stage."""
        return [
            f"{self.results}/figures/{figure}.{ending}"
            for figure, ending in product(self.figures, ("pdf", "png", "csv"))
        ]

    @property
    def figures(self) -> list[str]:
        """Figures that this experiment has."""
        left_out = {*COMPARE_FIGURES, *(() if any(self._calibrated()) else CALIBRATION_FIGURES)}
        left_out.update(() if self.has_theory else THEORY_FIGURES)
        return [name for name in FIGURE_TABLES if name not in left_out]

    def _calibrated(self) -> Iterator[tuple[str, str]]:
        for kernel, run in self.config.timing.items():
            if run.calibrate:
                yield from product([kernel], run.attention)

    def timing_files(self) -> list[str]:
        """Outputs of the time stage."""
        return [
            f"{self.results}/timings/{kernel}/{attention}/{lengths}.parquet"
            for kernel, run in self.config.timing.items()
            for attention, lengths in product(run.attention, run.lengths)
        ]

    def timing_inputs(self, kernel: str, lengths: str) -> list[str]:
        """The packs that a kernel is timed on."""
        run = self.config.timing[kernel]
        return [
            f"{self.results}/packs/{lengths}/{run.packing}/cp{cp_size}.parquet"
            for cp_size in run.cp_sizes or self.config.cluster.cp_sizes
        ]

    def calibration_files(self, ending: str) -> list[str]:
        """Outputs of the calibrate stage: .json the models, .parquet the fits."""
        return [self.calibration_file(*key, ending) for key in self._calibrated()]

    def calibration_file(self, kernel: str, attention: str, ending: str = "json") -> str:
        """The calibration of a kernel on one attention layer."""
        return f"{self.results}/calibration/{kernel}/{attention}.{ending}"

    def calibration_inputs(self, kernel: str, attention: str) -> dict[str, list[str]]:
        """Timings to calibrate from, and the packs they were taken on."""
        names = self.config.timing[kernel].lengths
        return {
            "timings": [f"{self.results}/timings/{kernel}/{attention}/{n}.parquet" for n in names],
            "packs": [path for name in names for path in self.timing_inputs(kernel, name)],
        }

    @property
    def calibrated_costs(self) -> list[str]:
        """Costs that a calibration gives."""
        return [cost for cost in self.config.costs if cost.startswith(CALIBRATED)]

    @property
    def counted_costs(self) -> list[str]:
        """Costs that follow from the packs alone."""
        return [cost for cost in self.config.costs if not cost.startswith(CALIBRATED)]

    def cost_inputs(self, attention: str, cost: str) -> list[str]:
        """The calibration that a cost stands for, if it is one."""
        if not cost.startswith(CALIBRATED):
            return []
        return [self.calibration_file(cost.removeprefix(CALIBRATED), attention)]

    @property
    def pages(self) -> list[str]:
        """Tables that the report of this experiment shows."""
        return [*PAGE_TABLES, *(THEORY_PAGE_TABLES if self.has_theory else ())]

    def page_files(self) -> list[str]:
        """Tables as pages of the report."""
        return [f"{self.results}/pages/{table}.html" for table in self.pages]

    def report_labels(self) -> dict[str, str]:
        """What every result of the report covers, for its labels."""
        return {
            "lengths": ", ".join(self.config.lengths),
            "CP": ", ".join(map(str, self.config.cluster.cp_sizes)),
        }

    def _lengths_arguments(self, lengths: str) -> dict[str, object]:
        source = self.config.lengths[lengths]
        arguments: dict[str, object] = {
            "name": lengths,
            "lengths": canonical_json(source.model_dump(exclude_none=True)),
        }
        if isinstance(source, LengthsFile):
            arguments["digest"] = self.digests[lengths]
        return arguments

    def sample_arguments(self, lengths: str) -> str:
        """Arguments of ``cpbalance sample`` but for its output."""
        cluster = self.config.cluster
        return _join(
            {
                **self._lengths_arguments(lengths),
                "tokens-per-gpu": cluster.tokens_per_gpu,
                "tokens-per-step": cluster.tokens_per_step,
                "steps": self.config.steps,
                "seed": self.config.seed,
            }
        )

    def theory_inputs(self) -> list[str]:
        """The calibrations that costs stand for."""
        pairs = product(self.config.attention, self.config.costs)
        return [path for pair in pairs for path in self.cost_inputs(*pair)]

    def theory_arguments(self, lengths: str) -> str:
        """Arguments of ``cpbalance theory`` but for its outputs."""
        cluster = self.config.cluster
        shapes = {name: shape.model_dump() for name, shape in self.config.attention.items()}
        calibrations = {
            f"{attention}/{cost}": path
            for attention, cost in product(self.config.attention, self.config.costs)
            for path in self.cost_inputs(attention, cost)
        }
        arguments = {
            **self._lengths_arguments(lengths),
            "world-size": cluster.world_size,
            "tp-size": cluster.tp_size,
            "tokens-per-gpu": cluster.tokens_per_gpu,
            "attentions": canonical_json(shapes),
            "calibrations": canonical_json(calibrations),
        }
        cp_sizes = " ".join(map(str, cluster.cp_sizes))
        costs = shlex.join(self.config.costs)
        return f"{_join(arguments)} --cp-sizes {cp_sizes} --costs {costs}"

    def families_arguments(self) -> str:
        """Arguments of ``cpbalance families`` but for its output."""
        theory = self.config.theory
        cvs = " ".join(map(str, theory.normal_cvs))
        numbers = {"packs": theory.monte_carlo_packs, "seed": self.config.seed}
        return f"--normal-cvs {cvs} {_join(numbers)}"

    def pack_arguments(self, packing: str, cp_size: str | int, part: str = "") -> str:
        """Arguments of ``cpbalance pack`` but for its files."""
        cluster = self.config.cluster
        arguments = {
            "packing": packing,
            "world-size": cluster.world_size,
            "tp-size": cluster.tp_size,
            "cp-size": cp_size,
            "tokens-per-gpu": cluster.tokens_per_gpu,
        }
        if part:
            arguments["shard"] = part.rpartition("/")[2]
        return _join(arguments)

    def simulate_arguments(self, attention: str, cost: str) -> str:
        """Arguments of ``cpbalance simulate`` but for its files."""
        arguments = {"cost": cost}
        for path in self.cost_inputs(attention, cost):
            arguments["calibration"] = path
        return f"{self.attention_arguments(attention)} {_join(arguments)}"

    def time_arguments(self, kernel: str, attention: str, part: str = "") -> str:
        """Arguments of ``cpbalance time`` but for its files."""
        run = self.config.timing[kernel]
        arguments: dict[str, object] = {
            "kernel": kernel,
            "dtype": run.dtype,
            "direction": run.direction,
            "steps": run.steps,
            "width": run.width,
            "budget": run.budget_s,
            "passes": run.passes,
            "seed": self.config.seed,
        }
        for key, value in (
            ("timed-heads", run.timed_heads),
            ("expect-device", run.expected_device),
            ("shard", part.rpartition("/")[2] or None),
        ):
            if value is not None:
                arguments[key] = value
        flags = [
            f"--{key.replace('_', '-')}"
            for key in ("warm_cache", "strict_device")
            if getattr(run, key)
        ]
        return " ".join([self.attention_arguments(attention), _join(arguments), *flags])

    def attention_arguments(self, attention: str) -> str:
        """Arguments that describe one attention layer."""
        shape: AttentionShape = self.config.attention[attention]
        mask = "--causal" if shape.causal else "--full"
        sizes = {"q-heads": shape.q_heads, "kv-heads": shape.kv_heads, "head-dim": shape.head_dim}
        return f"{_join({'attention-name': attention, **sizes})} {mask}"

    def aggregate_arguments(self) -> str:
        """Arguments of ``cpbalance aggregate`` but for its files."""
        return _join(
            {
                "references": canonical_json(self.config.references),
                "confidence": self.config.statistics.confidence,
                "bootstrap": self.config.statistics.bootstrap,
            }
        )


def _join(arguments: Mapping[str, object]) -> str:
    words = [word for key, value in arguments.items() for word in (f"--{key}", str(value))]
    return shlex.join(words)


def make_plan(config: Config) -> Plan:
    """The plan of a configuration; raises InputError where a file of lengths is missing.

    What draws from an artifact needs no lengths.
    """
    digests = {}
    for name, source in config.lengths.items():
        if isinstance(source, LengthsFile) and config.artifact is None:
            path = resolve_path(source.file)
            if not path.is_file():
                raise InputError(
                    f"config: lengths.{name}.file is {source.file!r}: no such file; give a path "
                    f"relative to the working directory"
                )
            digests[name] = file_digest(path)
    return Plan(config, digests)
