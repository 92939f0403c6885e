"""Command-line arguments that describe an attention layer, shared by the stages that take one."""

import argparse

from cpbalance.attention import Attention


def add_attention_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments that describe an attention layer."""
    parser.add_argument("--attention-name", default="attention", help="label of the layer")
    parser.add_argument("--q-heads", type=int, required=True)
    parser.add_argument("--kv-heads", type=int, required=True)
    parser.add_argument("--head-dim", type=int, required=True)
    mask = parser.add_mutually_exclusive_group(required=True)
    mask.add_argument("--causal", dest="causal", action="store_true")
    mask.add_argument("--full", dest="causal", action="store_false")


def attention_of(args: argparse.Namespace) -> Attention:
    """The layer that the arguments describe; raises :class:`~cpbalance.errors.InputError`."""
    return Attention(args.q_heads, args.kv_heads, args.head_dim, args.causal)
