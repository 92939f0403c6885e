"""Level 3: exact moments of the cost of a pack, for any length distribution.

Let V_k(b) be the k-th raw moment of the cost of b tokens that start at a document boundary:

V_k(b) = Σ_{l<b} p(l)·Σ_j C(k,j)·h(l)ʲ·V_{k−j}(b−l) + P(L ≥ b)·h(b)ᵏ,  V_0 = 1.

The same step, applied once more with the law of the first run, gives the pack. Two things make it
fast and exact. The tokens of a pack are fixed, so h is replaced by Y(l) = h(l) − r·l with
r = E[h]/E[L], which shifts the pack by r·B and removes the cancellation between V_2 and V_1²; and
the recursion is a renewal equation, so V_k = u * (what is left without its j = 0 term), by FFT,
with u the renewal density. As E[Y] = 0, V_1, V_2 and V_3 become straight in b, and are extended.
Source: renewal equation, Feller vol. 1, ch. XIII; the straight lines, Smith (1955).
"""

from dataclasses import dataclass

import numpy as np

from cpbalance.theory.iid import Moments, moments_of
from cpbalance.theory.lengths import Floats, at_least
from cpbalance.theory.stream import MAX_TABLE, Renewals, Run, correlate, fft_size

# The curves are extended where they stay this close to a line, relative to their largest value.
STRAIGHT = 1e-6
BINOMIAL = ((1,), (1, 1), (1, 2, 1), (1, 3, 3, 1))


@dataclass(frozen=True)
class Curves:
    """V_0 … V_3 of Y, tabulated for b = 0 … n and straight beyond.

    ``values``: shape (4, n + 1), with V_k(0) = 0 for every k, since no segment follows a cut.
    ``slopes``: shape (4,). ``bend``: how far the last stretch is from straight, relative.
    """

    values: Floats
    slopes: Floats
    bend: float

    def window(self, low: int, high: int) -> Floats:
        """V_0 … V_3 at b = low … high, shape (4, high − low + 1); zero for b ≤ 0."""
        at = np.arange(low, high + 1)
        last = self.values.shape[1] - 1
        inside = self.values[:, np.clip(at, 0, last)]
        return inside + self.slopes[:, None] * np.maximum(at - last, 0)


def cost_curves(renewals: Renewals, excess: Floats, tokens: int) -> Curves:
    """V_0 … V_3 of ``excess`` (Y, shape of the pmf) for up to ``tokens`` tokens.

    Tabulated to where the curves are straight, at most ``tokens``.
    """
    stretch = renewals.pmf.size
    # One below a power of 2, so that a product of two tables fills its transform.
    count = min(tokens, (1 << (6 * stretch).bit_length()) - 1)
    while True:
        values = _tabulate(renewals, excess, count)
        if count == tokens:
            return Curves(values, np.zeros(4), 0.0)
        slopes, bend = _straightness(values, stretch)
        if bend < STRAIGHT or count >= MAX_TABLE:
            return Curves(values, slopes, bend)
        count = min(tokens, 2 * count + 1)


def _tabulate(renewals: Renewals, excess: Floats, count: int) -> Floats:
    pmf = renewals.pmf
    size = fft_size(2 * count + 1)
    used = min(pmf.size, count + 1)
    spectra = [np.fft.rfft(pmf[:used] * excess[:used] ** j, size) for j in (1, 2, 3)]
    density = np.fft.rfft(renewals.up_to(count), size)
    beyond = at_least(pmf)[:used]

    values = np.zeros((4, count + 1))
    values[0, 1:] = 1.0
    done = [np.fft.rfft(values[0], size)]
    for k in (1, 2, 3):
        source = sum(BINOMIAL[k][j] * spectra[j - 1] * done[k - j] for j in range(1, k + 1))
        source = np.fft.irfft(source, size)[: count + 1]
        source[:used] += beyond * excess[:used] ** k
        source[0] = 0.0
        values[k] = np.fft.irfft(density * np.fft.rfft(source, size), size)[: count + 1]
        values[k, 0] = 0.0
        if k < 3:
            done.append(np.fft.rfft(values[k], size))
    return values


def _straightness(values: Floats, stretch: int) -> tuple[Floats, float]:
    """Slopes over the last half, and the largest deviation from them in the last stretch."""
    last = values.shape[1] - 1
    half = last - last // 2
    slopes = (values[:, last] - values[:, last - half]) / half
    slopes[:2] = 0.0
    at = np.arange(max(1, last - max(stretch, half)), last + 1)
    line = values[:, last, None] + slopes[:, None] * (at - last)
    scale = np.abs(values[:, 1:]).max(axis=1, keepdims=True)
    scale[1] = np.sqrt(scale[2])  # V_1 matters as a part of V_2
    deviation = np.abs(values[:, at] - line) / np.where(scale > 0, scale, 1.0)
    return slopes, float(deviation.max())


def prepend(first: Floats, excess: Floats, curves: Curves, low: int, high: int) -> Floats:
    """Moments of b tokens, b = low … high, that start with a run and go on as ``curves``.

    M_k(b) = Σ_{s<b} first(s)·Σ_j C(k,j)·Y(s)ʲ·V_{k−j}(b−s) + P(first ≥ b)·Y(b)ᵏ, shape
    (4, high − low + 1).
    """
    longest = first.size - 1
    at = np.arange(low, high + 1)
    place = np.minimum(at, longest)
    beyond = np.where(at <= longest, at_least(first)[place], 0.0)
    overflow = np.where(at <= longest, excess[place], 0.0)
    used = min(longest, high)  # longer runs end beyond every b asked for
    window = curves.window(low - used, high)
    powers = np.stack([first[: used + 1] * excess[: used + 1] ** j for j in range(4)])
    if low == high:
        # One b only: products[j, k] = Σₛ powers[j, s]·V_k(b − s).
        products = (powers @ window[:, ::-1].T)[..., None]
    else:
        products = _valid_convolutions(powers, window)
    moments = [
        sum(BINOMIAL[k][j] * products[j, k - j] for j in range(k + 1)) + beyond * overflow**k
        for k in range(4)
    ]
    return np.stack(moments)


def _valid_convolutions(kernels: Floats, windows: Floats) -> Floats:
    """Σₛ kernels[j, s]·windows[k, i + n − s], n the last s, for each i where all of it is known."""
    last = kernels.shape[1] - 1
    count = windows.shape[1] - last
    size = fft_size(windows.shape[1] + last)
    products = np.zeros((4, 4, count))
    kernel_spectra = [np.fft.rfft(kernel, size) for kernel in kernels]
    for k, window in enumerate(windows):
        spectrum = np.fft.rfft(window, size)
        for j in range(4 - k):
            whole = np.fft.irfft(kernel_spectra[j] * spectrum, size)
            products[j, k] = whole[last : last + count]
    return products


def raw_moments(
    runs: list[Run], document: Floats, rate: float, curves: Curves, pack_tokens: int
) -> Floats:
    """Raw moments 0 … 3 of Σ Y over a pack that starts in one of ``runs``, shape (4,).

    ``document``: cost of the first l tokens of a document; ``rate``: r.
    """
    total = np.zeros(4)
    for run in runs:
        excess = run.cost - rate * np.arange(run.cost.size)
        following = curves
        if run.rest is not None:
            low = max(1, pack_tokens - run.first.size + 1)
            tail = document - rate * np.arange(document.size)
            values = prepend(run.rest, tail[: run.rest.size], curves, low, pack_tokens)
            following = _Shifted(values, low)
        total += prepend(run.first, excess[: run.first.size], following, pack_tokens, pack_tokens)[
            :, 0
        ]
    return total


@dataclass(frozen=True)
class _Shifted:
    """Curves known from ``low`` on only, asked for nothing below it but b ≤ 0."""

    values: Floats
    low: int

    def window(self, low: int, high: int) -> Floats:
        """As :meth:`Curves.window`."""
        at = np.arange(low, high + 1)
        known = self.values[:, np.clip(at - self.low, 0, self.values.shape[1] - 1)]
        return np.where(at >= self.low, known, 0.0)


def central(raw: Floats, shift: float) -> Moments:
    """Moments of a variable with raw moments ``raw`` (0 … 3), moved by ``shift``."""
    first, second, third = raw[1:] / raw[0]
    variance = second - first**2
    return moments_of(first + shift, variance, third - 3 * first * second + 2 * first**3)


def neighbour_correlation(
    pmf: Floats, excess: Floats, curves: Curves, weights: Floats, pack_tokens: int
) -> float:
    """Correlation of the costs of two neighbouring packs of one step.

    Given the document that their cut falls into, a tokens from its start and r from its end, the
    two are independent, and read outwards from the cut both are the same: with m(x) the mean of Y
    over a pack that begins with the last x tokens of a document, E[T·T'] = Σₐ w(a)·m(a)·Σᵣ
    p(a + r)·m(r). ``weights``: those of the ages a, :func:`cpbalance.theory.stream.age_weights`.
    """
    longest = pmf.size - 1
    inside = min(pack_tokens, pmf.size)
    mean = np.full(pmf.size, excess[pack_tokens] if pack_tokens <= longest else 0.0)
    rest = curves.window(pack_tokens - inside + 1, pack_tokens)[:, ::-1]
    mean[:inside] = excess[:inside] + rest[1]
    square = np.full(pmf.size, mean[-1] ** 2)
    square[:inside] = excess[:inside] ** 2 + 2 * excess[:inside] * rest[1] + rest[2]
    ages = weights.size
    left = correlate(weights, pmf)  # P(r tokens left), r ≥ 1
    left[0] = 0.0
    past = weights * np.append(at_least(pmf), 0.0)[1 : ages + 1]  # P(a tokens gone)
    size = fft_size(2 * pmf.size)
    ahead = np.conj(np.fft.rfft(np.append(0.0, mean[1:]), size)) * np.fft.rfft(pmf, size)
    ahead = np.fft.irfft(ahead, size)[:ages]  # Σᵣ p(a + r)·m(r)
    total = past.sum()
    product = (weights * mean[:ages]) @ ahead / total
    average = left @ mean / total
    covariance = product - average * (past @ mean[:ages]) / total
    variance = left @ square / total - average**2
    return float(covariance / variance) if variance > 1e-20 * (left @ square) else float("nan")
