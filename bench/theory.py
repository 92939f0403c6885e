"""Theory beside the simulation that gives the same accuracy, and its cost at both sizes.

All four levels for every CP degree of one distribution, in a process of its own. The simulation is
the library's own sampling, packing and costing, with as many steps as bring the standard error of
its imbalance, averaged over the degrees, down to the error given.
"""

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
from pydantic import TypeAdapter

from cpbalance.config_lengths import Lengths
from cpbalance.lengths import make_sampler
from cpbalance.packing import pack_documents

CP_SIZES = (1, 2, 4, 8, 16, 32, 64)
WORLD = 128
TARGETS = (0.01, 0.001)
PILOT_STEPS = 40
# (label, tokens a device, length distribution)
CASES = (
    ("S = 8192", 8192, {"family": "exponential", "mean": 1024, "max_seq_len": 8192}),
    ("S = 131072, cap 128K", 131072, {"family": "lognormal", "mean": 4096, "cv": 2.5,
                                      "max_seq_len": 131072}),
)  # fmt: skip
PREDICT = """
import json, resource, sys, time
from pydantic import TypeAdapter
from cpbalance.config_lengths import Lengths
from cpbalance.theory.predict import predict
from cpbalance.theory.source import length_model
tokens, source = int(sys.argv[1]), TypeAdapter(Lengths).validate_json(sys.argv[2])
sizes = json.loads(sys.argv[3])
costs = {s: (lambda n, s=s: n**2.0 / s, 0.0) for s in sizes}
start = time.process_time()
model = length_model(source, 128 * tokens)
rows = predict(model, costs, tokens, {s: 128 // s for s in sizes})
seconds = time.process_time() - start
error = max(row.relative_error for row in rows)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([seconds, peak, error]))
"""


def _theory(tokens: int, source: dict) -> tuple[float, float, float]:
    """CPU seconds, peak MiB of the process, and the largest numerical error."""
    arguments = [str(tokens), json.dumps(source), json.dumps(CP_SIZES)]
    done = subprocess.run(
        [sys.executable, "-c", PREDICT, *arguments], capture_output=True, text=True, check=True
    )
    return tuple(json.loads(done.stdout))


def _simulation(tokens: int, source: dict) -> tuple[float, float]:
    """CPU seconds a step, all CP degrees, and the relative spread of an imbalance."""
    lengths = TypeAdapter(Lengths).validate_python(source)
    sampler = make_sampler("bench", lengths, tokens, WORLD * tokens, 0)
    spreads = {cp_size: [] for cp_size in CP_SIZES}
    start = time.process_time()
    for step in range(PILOT_STEPS):
        documents = sampler.documents(step)
        for cp_size, spread in spreads.items():
            groups = WORLD // cp_size
            packed = pack_documents(
                "concat_split", documents, np.array([len(documents)]), tokens * cp_size, groups
            )
            cost = np.bincount(packed.pack, packed.segment_tokens.astype(float) ** 2, groups)
            spread.append(float(np.ptp(cost) / cost.mean()))
    seconds = (time.process_time() - start) / PILOT_STEPS
    relative = [np.std(v, ddof=1) / np.mean(v) for v in spreads.values()]
    return seconds, float(np.mean(relative))


def run() -> pd.DataFrame:
    """One row a case and error; the ratio is simulated seconds over predicted ones."""
    rows = []
    for label, tokens, source in CASES:
        predicted, peak, error = _theory(tokens, source)
        per_step, spread = _simulation(tokens, source)
        for target in TARGETS:
            steps = (spread / target) ** 2
            rows.append(
                {
                    "case": label,
                    "theory s": predicted,
                    "theory MiB": peak,
                    "numerical error": error,
                    "to error": target,
                    "steps": steps,
                    "simulation s": per_step * steps,
                    "simulation / theory": per_step * steps / predicted,
                }
            )
    return pd.DataFrame(rows)
