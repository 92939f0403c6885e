"""Random streams that depend on what is drawn, not on who draws it or when.

Every step of every named source has its own generator, seeded by
``numpy.random.SeedSequence(seed, spawn_key=(words of SHA-256(name), step))``; so results depend
neither on cores, order, shards nor on what else is drawn.
"""

import hashlib

import numpy as np


def step_generator(seed: int, name: str, step: int) -> np.random.Generator:
    """The generator of one step of the source called ``name``."""
    words = np.frombuffer(hashlib.sha256(name.encode()).digest()[:16], dtype="<u4")
    key = (*(int(word) for word in words), step)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
