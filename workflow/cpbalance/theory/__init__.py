"""What packs cost and how unevenly, from a length distribution and without simulating.

Four levels, each sharper than the one before: :mod:`.iid` (the article's theorem), :mod:`.renewal`
(a fixed token budget), :mod:`.moments` (exact moments of packs cut from a stream) and
:mod:`.distribution` (the whole law of a pack's cost). :mod:`.extremes` turns a law into the
expected slowest and fastest of G groups, and :mod:`.predict` runs all of it.

Everywhere a ``pmf`` is an array with ``pmf[l] = P(num_tokens = l)`` for l = 0 … L_max and
``pmf[0] = 0``; a ``cost`` is an array of the same length with the cost of a segment of l tokens on
one rank. The derivations are in ``docs/theory.md``.
"""
