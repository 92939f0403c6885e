"""The stream of a step as a renewal process: where documents begin and how packs start.

A step's stream begins at a document boundary and is cut at every multiple of B tokens. With u(t)
the probability that a document begins at token t, u = 1/(1 − P(z)) as a power series, the pack
that begins at token jB begins a tokens into a document of l > a tokens with probability
u(jB − a)·p(l). Far from the start u is 1/E[L] and the first segment of a pack is the residual of
the stationary process, P(first = l) = P(L ≥ l)/E[L]; near it, and for documents longer than a few
packs, it is not, and the sum over packs is made as it stands. Source: Feller, "An Introduction to
Probability Theory and Its Applications", vol. 1, ch. XIII.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cpbalance.theory.lengths import Floats, split_cost

# Beyond this many tokens (or cells) nothing is tabulated, only extended.
MAX_TABLE = 2**21
# The density has settled where it stays this close to its limit, relative to it.
SETTLED = 1e-9


# Up to so many phases of documents in pieces are told apart; a phase has at least this weight.
MAX_PHASES, NO_WEIGHT = 64, 1e-12


@dataclass(frozen=True)
class Starts:
    """How the packs of a step start: its first one, and, where there are more, the mean other.

    ``runs``: a list of runs for each of the two. ``weights``: :func:`age_weights` of the others,
    None for one group. ``swing``: how unsettled the renewal density was where taken as settled.
    """

    runs: "list[list[Run]]"
    weights: Floats | None = None
    swing: float = 0.0


@dataclass(frozen=True)
class Run:
    """One way for a pack to start, with its probability.

    ``first[s]`` is the probability of this way and of s tokens in its first run (s = 0 is unused);
    ``cost[s]`` what s tokens of that run cost. Then comes a document boundary, or, where ``rest``
    is given, the last t tokens of a document, ``rest[t]`` their distribution.
    """

    first: Floats
    cost: Floats
    rest: Floats | None = None


def fft_size(count: int) -> int:
    """A size for a transform of at least ``count`` points: 2ᵏ or 3·2ᵏ."""
    power = 1 << max(1, (count - 1).bit_length())
    return 3 * power // 4 if 3 * power // 4 >= count and power >= 4 else power


def correlate(weights: Floats, values: Floats) -> Floats:
    """Σₐ weights[a]·values[a + r] for r = 0 … len(values) − 1, with non-negative inputs."""
    size = fft_size(weights.size + values.size)
    spectrum = np.conj(np.fft.rfft(weights, size)) * np.fft.rfft(values, size)
    return np.maximum(np.fft.irfft(spectrum, size)[: values.size], 0.0)


def renewal_density(pmf: Floats, tokens: int, known: Floats | None = None) -> Floats:
    """P(a document begins at token t), t = 0 … ``tokens``, of a stream that begins with one.

    The power series 1/(1 − Σ p(l)·zˡ) by Newton's iteration, each pass doubling its length, from
    the terms already ``known``.
    """
    series = -pmf[: tokens + 1].copy()
    series[0] += 1.0
    inverse = np.array([1.0 / series[0]]) if known is None else known
    while inverse.size <= tokens:
        count = min(2 * inverse.size, tokens + 1)
        size = fft_size(count + inverse.size)
        spectrum = np.fft.rfft(inverse, size)
        error = np.fft.irfft(np.fft.rfft(series[:count], size) * spectrum, size)[:count]
        error[: inverse.size] = 0.0
        step = np.fft.irfft(np.fft.rfft(error, size) * spectrum, size)[inverse.size : count]
        inverse = np.concatenate([inverse, np.maximum(-step, 0.0)])
    return inverse[: tokens + 1]


class Renewals:
    """The renewal density of one length distribution, tabulated to where it has settled."""

    def __init__(self, pmf: Floats) -> None:
        self.pmf = pmf
        self.limit = 1.0 / float(pmf @ np.arange(pmf.size))
        self._table = np.ones(1)

    def settled(self, tokens: int) -> tuple[Floats, float]:
        """u(t) from t = 0 to where it has settled, at most to ``tokens``.

        Returns it and by how much its last stretch still swings about its limit, relative to it.
        """
        count = max(min(tokens, 4 * self.pmf.size), min(self._table.size - 1, tokens))
        while True:
            self._table = renewal_density(self.pmf, max(count, self._table.size - 1), self._table)
            if count == tokens:
                return self._table[: tokens + 1], 0.0
            swing = float(np.abs(self._table[-self.pmf.size :] / self.limit - 1).max())
            if swing < SETTLED or count >= MAX_TABLE:
                return self._table, swing
            count = min(tokens, 2 * count)

    def up_to(self, tokens: int) -> Floats:
        """u(t) for t = 0 … ``tokens``, its limit where it has settled."""
        table, _ = self.settled(tokens)
        return np.append(table, np.full(tokens + 1 - table.size, self.limit))


def age_weights(renewals: Renewals, pack_tokens: int, groups: int) -> tuple[Floats, float]:
    """Mean over the packs 1 … G − 1 of a step of u(jB − a), for ages a = 0 … a_max.

    The oldest document of a step begins with it, so a ≤ jB. Times p(l), l > a, it is the
    probability that a pack begins a tokens into a document of l tokens. Returns it and the swing
    of :meth:`Renewals.settled`.
    """
    density, swing = renewals.settled((groups - 1) * pack_tokens)
    oldest = min(renewals.pmf.size - 1, (groups - 1) * pack_tokens)
    weights = np.zeros(oldest + 1)
    for pack in range(1, groups):
        begin = pack * pack_tokens
        if begin - oldest >= density.size:
            weights += (groups - pack) * renewals.limit
            break
        ages = min(oldest, begin) + 1
        unknown = min(ages, max(0, begin - density.size + 1))
        weights[:unknown] += renewals.limit
        weights[unknown:ages] += density[begin - ages + 1 : begin - unknown + 1][::-1]
    return weights / (groups - 1), swing


def residual(weights: Floats, pmf: Floats) -> Floats:
    """P(r tokens of a document are left at the start of a pack), r = 0 … L_max, for given ages."""
    left = correlate(weights, pmf)
    left[0] = 0.0
    return left / left.sum()


def starts_of_step(
    renewals: Renewals, cost: Floats, pack_tokens: int, groups: int, piece_tokens: int | None = None
) -> Starts:
    """How the packs of a step start; ``cost``: cost of a segment, shape of the pmf."""
    pmf = renewals.pmf
    document = split_cost(cost, piece_tokens)
    first = [Run(pmf, document)]
    if groups == 1:
        return Starts([first])
    weights, swing = age_weights(renewals, pack_tokens, groups)
    if piece_tokens is None or pmf.size - 1 <= piece_tokens:
        others = [Run(residual(weights, pmf), cost)]
    else:
        others = _piece_starts(weights, pmf, cost, pack_tokens, groups, piece_tokens)
    return Starts([first, others], weights, swing)


def _piece_starts(
    weights: Floats, pmf: Floats, cost: Floats, pack_tokens: int, groups: int, piece: int
) -> list[Run]:
    """Starts inside documents that are cut into pieces.

    A pack that begins a tokens into a document of l has min(piece − a mod piece, l − a) tokens of
    the present piece left. If that is not the last one, t = l − (⌊a/piece⌋ + 1)·piece tokens of the
    document follow. Where only some phases a mod piece occur, each is a run of its own. Otherwise
    the ages of one piece are taken as equally likely, but for the documents that begin the step,
    whose pieces lie in step with the packs: what is left of the piece is then uniform, and t
    independent of it.
    """
    size = -(-max(pmf.size, weights.size) // piece) * piece
    lengths = np.pad(pmf[1:], (0, size + 1 - pmf.size)).reshape(-1, piece)  # 1 … piece, …
    ages = np.pad(weights, (0, size - weights.size)).reshape(-1, piece)  # 0 … piece − 1, …
    last = np.zeros(piece + 1)
    for length, age in zip(lengths, ages, strict=True):
        last[1:] += correlate(age, length)
    runs = [Run(last, cost)]
    for profile, per_piece in _phases(ages, pack_tokens, groups):
        begins = np.zeros(size)
        begins[::piece] = per_piece
        # t tokens follow the piece that ends (m + 1)·piece tokens into the document.
        rest = correlate(begins, pmf[piece:])
        rest[0] = 0.0
        if (share := rest.sum()) > 0:
            runs.append(Run(share * profile, cost, rest / share))
    return runs


def _phases(ages: Floats, pack_tokens: int, groups: int) -> Iterator[tuple[Floats, Floats]]:
    """Laws of the tokens left of a piece (piece + 1,), and weights by piece (pieces,), of each."""
    piece = ages.shape[1]
    present = np.flatnonzero(ages.sum(axis=0) > NO_WEIGHT)
    if present.size <= MAX_PHASES:
        for phase in present:
            yield np.eye(1, piece + 1, piece - phase)[0], ages[:, phase]
        return
    aligned = np.zeros(len(ages))
    if pack_tokens % piece == 0:
        begins = np.arange(1, groups) * (pack_tokens // piece)
        aligned[begins[begins < len(ages)]] = 1 / (groups - 1)
        aligned = np.minimum(aligned, ages[:, 0])
    yield np.eye(1, piece + 1, piece)[0], aligned
    level = np.full(piece + 1, 1 / piece)
    level[0] = 0.0
    yield level, ages.sum(axis=1) - aligned
