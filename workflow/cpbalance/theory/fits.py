"""What three moments alone say about extremes: a gamma law with the same mean, variance, skewness.

The Pearson type III law, T = m + σ·(Γ(k) − k)/√k with k = 4/skewness², turned round for negative
skewness. It stands beside level 4 to show what a fit costs: packs of bounded documents have shapes
that no three moments fix.
"""

import numpy as np

from cpbalance.theory.extremes import Extremes, PackLaw, expected_extremes, normal_extremes
from cpbalance.theory.iid import Moments

POINTS = 4096
# Below this skewness the gamma law is the normal one to the digits shown.
NEARLY_NORMAL = 1e-3


def gamma_extremes(moments: Moments, groups: int) -> Extremes:
    """Extremes of G independent costs under the gamma law of these moments."""
    from scipy.special import gammainc

    deviation = moments.variance**0.5
    if abs(moments.skewness) < NEARLY_NORMAL or not deviation:
        return normal_extremes(moments.mean, deviation, groups)
    shape = 4 / moments.skewness**2
    # In units of the gamma's scale: from its end at 0 to where 1 − F is below 1e-16.
    edges = np.linspace(0, shape + 9 * shape**0.5 + 40, POINTS + 1)
    mass = np.maximum(np.diff(gammainc(shape, edges)), 0.0)
    centred = ((edges[1:] + edges[:-1]) / 2 - shape) / shape**0.5
    sign = np.sign(moments.skewness)
    values = moments.mean + deviation * sign * centred
    order = slice(None) if sign > 0 else slice(None, None, -1)
    return expected_extremes(values[order], [PackLaw(mass[order] / mass.sum(), groups)])
