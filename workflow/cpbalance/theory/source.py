"""From a source of lengths, as configured, to what the theory takes.

Lengths are taken as independent draws from the source's distribution. Where the cost of a document
has no second moment (Pareto tails without a cap, alpha up to 4 for costs quadratic in length), or
too much of it lies beyond what one step can hold, levels 1 and 2 have no constant, and say so.
"""

import numpy as np

from cpbalance.config_lengths import Lengths, LengthsFile, Mixture, Pareto
from cpbalance.lengths.distribution import length_pmf
from cpbalance.theory.predict import LengthModel

# Share of the second moment of the cost that may lie beyond one step, unseen.
UNSEEN_SHARE = 1e-6


def length_model(
    lengths: Lengths, tokens_per_step: int, population: np.ndarray | None = None
) -> LengthModel:
    """The length model of a source; ``population``: lengths of a file, None for a family.

    The mean of a family must be in tokens. A family's distribution is tabulated up to one step's
    tokens, a file's whole.
    """
    longest = tokens_per_step if population is None else int(population.max())
    pmf = length_pmf(lengths, longest, population)
    splits = lengths.overlong == "split" and lengths.max_seq_len is not None
    note = "" if population is not None else _no_constant(lengths, pmf, splits)
    return LengthModel(pmf, lengths.max_seq_len if splits else None, note)


def order_note(lengths: Lengths) -> str:
    """What the theory leaves out of the order in which a file's documents come."""
    order = lengths.order if isinstance(lengths, LengthsFile) else "iid"
    return {
        "iid": "",
        "shuffled": "documents taken as independent draws; they are drawn without replacement",
        "as_is": "documents taken as independent draws; the file's own order may not be",
    }[order]


def _no_constant(lengths: Lengths, pmf: np.ndarray, splits: bool) -> str:
    if lengths.max_seq_len is not None and not splits:
        return ""
    # The cost of a document grows as its square, of one cut into pieces as its length.
    power = 1 if splits else 2
    parts = (
        [part.lengths for part in lengths.components] if isinstance(lengths, Mixture) else [lengths]
    )
    alphas = [part.alpha for part in parts if isinstance(part, Pareto)]
    if alphas and min(alphas) <= 2 * power:
        return (
            f"no 1/CP constant exists: Pareto lengths with alpha {min(alphas):g}, at most "
            f"{2 * power}, have costs of infinite variance without a cap"
        )
    length = np.arange(pmf.size, dtype=np.float64)
    second = pmf * length ** (2 * power)
    if second[-1] > UNSEEN_SHARE * second.sum():
        return (
            f"no number: documents longer than a step, not tabulated, carry about "
            f"{second[-1] / second.sum():.1e} of the second moment of the cost"
        )
    return ""
