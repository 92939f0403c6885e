"""What the workflow makes from a configuration: paths, and the arguments of every stage.

Arguments are one canonical string a job: Snakemake compares a rule's params as a set of values, so
two swapped values would go unnoticed if each were a param of its own.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from cpbalance.config import AttentionShape, Config, LengthsFile, resolve_path
from cpbalance.errors import InputError
from cpbalance.names import FIGURE_TABLES, TABLE_NAMES
from cpbalance.shards import all_shards
from cpbalance.tables import canonical_json, file_digest

# Files that may be put together from shards, less folder and ending, and the stage that the number
# of shards belongs to.
MERGED = {"packs": (r"packs/.+/cp\d+", "simulate"), "costs": (r"costs/.+/cp\d+", "simulate")}


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

    def table_files(self) -> list[str]:
        """Outputs of the aggregate stage."""
        names = [f"{table}.{ending}" for table in TABLE_NAMES for ending in ("parquet", "csv")]
        return [f"{self.results}/tables/{name}" for name in (*names, "headline.txt")]

    def figure_files(self) -> list[str]:
        """Outputs of the plot stage."""
        return [
            f"{self.results}/figures/{figure}.{ending}"
            for figure, ending in product(FIGURE_TABLES, ("pdf", "png", "csv"))
        ]

    def sample_arguments(self, lengths: str) -> str:
        """Arguments of ``cpbalance sample`` but for its output."""
        source = self.config.lengths[lengths]
        cluster = self.config.cluster
        arguments = {
            "name": lengths,
            "lengths": canonical_json(source.model_dump(exclude_none=True)),
            "tokens-per-gpu": cluster.tokens_per_gpu,
            "tokens-per-step": cluster.tokens_per_step,
            "steps": self.config.steps,
            "seed": self.config.seed,
        }
        if isinstance(source, LengthsFile):
            arguments["digest"] = self.digests[lengths]
        return _join(arguments)

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
        return f"{self.attention_arguments(attention)} {_join({'cost': cost})}"

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

    def artifact_files(self) -> list[str]:
        """What the artifact holds: all tables, and the large stages that were asked for."""
        large = {
            "lengths": self.lengths_files,
            "packs": self.pack_files,
            "costs": self.cost_files,
        }
        chosen = [path for stage in self.config.export.stages for path in large[stage]()]
        return [*self.table_files(), *chosen]

    def artifact_arguments(self) -> str:
        """Arguments of ``cpbalance artifact export`` but for its files."""
        return _join(
            {
                "experiment": self.config.experiment,
                "config": self._resolved(),
                "command": "snakemake --cores all artifact --configfile config.json",
                "license": self.config.export.license,
            }
        )

    def check_arguments(self) -> str:
        """Arguments of ``cpbalance artifact verify`` but for its files."""
        return _join({"experiment": self.config.experiment, "made-with": self._resolved()})

    def import_arguments(self) -> str:
        """Arguments of ``cpbalance artifact extract`` that name the tables."""
        return shlex.join(
            ["--only", *(p.removeprefix(f"{self.results}/") for p in self.table_files())]
        )

    def _resolved(self) -> str:
        """The configuration that makes the run again: all keys but where to draw from."""
        return canonical_json(self.config.model_dump(mode="json", exclude={"artifact", "compare"}))


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
