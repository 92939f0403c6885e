"""Packing: laws for any lengths and any budget, and equality with the plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpbalance.errors import InputError
from cpbalance.packing import POLICIES, pack_documents
from tests.plain import fill_batches


@st.composite
def workloads(draw):
    """Documents of some steps, each step holding at least its packs' tokens."""
    pack_tokens = draw(st.integers(1, 60))
    packs = draw(st.integers(1, 6))
    steps = []
    for _ in range(draw(st.integers(1, 4))):
        documents = draw(st.lists(st.integers(1, 90), min_size=1, max_size=30))
        missing = pack_tokens * packs - sum(documents)
        while missing > 0:
            documents.append(draw(st.integers(1, 90)))
            missing -= documents[-1]
        steps.append(documents)
    return steps, pack_tokens, packs


def pack(policy, steps, pack_tokens, packs):
    documents = np.concatenate([np.array(step, dtype=np.int64) for step in steps])
    counts = np.array([len(step) for step in steps])
    return pack_documents(policy, documents, counts, pack_tokens, packs)


@pytest.mark.parametrize("policy", POLICIES)
@given(workloads())
def test_tokens_are_conserved_and_every_pack_holds_its_budget(policy, workload):
    steps, pack_tokens, packs = workload
    segments = pack(policy, steps, pack_tokens, packs)
    held = np.zeros((len(steps), packs), dtype=np.int64)
    np.add.at(held, (segments.step, segments.pack), segments.segment_tokens)
    assert (held == pack_tokens).all()
    assert (segments.segment_tokens >= 1).all()
    order = segments.step.astype(np.int64) * packs + segments.pack
    assert (np.diff(order) >= 0).all()


@given(workloads())
def test_concat_split_equals_the_plain_loops(workload):
    steps, pack_tokens, packs = workload
    segments = pack("concat_split", steps, pack_tokens, packs)
    for index, documents in enumerate(steps):
        expected = fill_batches(documents, pack_tokens, packs)
        for number, batch in enumerate(expected):
            mine = segments.segment_tokens[(segments.step == index) & (segments.pack == number)]
            assert mine.tolist() == batch


@given(workloads(), st.sampled_from([1, 2, 3]))
def test_concat_split_lays_documents_end_to_end_whatever_the_degree(workload, cp_size):
    """Undoing the cuts gives the documents back, at every CP degree the same ones."""
    steps, tokens, groups = workload
    segments = pack("concat_split", steps, tokens * cp_size, groups // cp_size or 1) if (
        groups % cp_size == 0
    ) else pack("concat_split", steps, tokens, groups)  # fmt: skip
    for index, documents in enumerate(steps):
        ends = np.cumsum(segments.segment_tokens[segments.step == index].astype(np.int64))
        step_tokens = tokens * groups
        document_ends = np.cumsum(documents)
        inside = document_ends[document_ends <= step_tokens]
        assert set(inside) <= set(ends)
        cuts = set(ends) - set(inside)
        budget = tokens * cp_size if groups % cp_size == 0 else tokens
        assert all(cut % budget == 0 for cut in cuts)
        assert ends[-1] == step_tokens


@settings(max_examples=30)
@given(workloads())
def test_steps_do_not_see_each_other(workload):
    steps, pack_tokens, packs = workload
    together = pack("concat_split", steps, pack_tokens, packs)
    for index, documents in enumerate(steps):
        alone = pack("concat_split", [documents], pack_tokens, packs)
        chosen = together.step == index
        assert together.segment_tokens[chosen].tolist() == alone.segment_tokens.tolist()
        assert together.pack[chosen].tolist() == alone.pack.tolist()


def test_a_step_with_too_few_tokens_is_named():
    with pytest.raises(InputError, match=r"step 1 has 5 tokens, its packs need 8"):
        pack("concat_split", [[9], [5]], 4, 2)


def test_an_unknown_policy_is_refused_with_the_valid_ones():
    with pytest.raises(InputError, match=r"packing is 'first_fit': use one of concat_split"):
        pack("first_fit", [[9]], 4, 2)


def test_an_empty_document_is_refused():
    with pytest.raises(InputError, match="a document has 0 tokens"):
        pack("concat_split", [[9, 0]], 4, 2)
