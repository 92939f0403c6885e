"""``cpbalance preflight``: whether timing could start here, without timing anything.

The same checks as at the start of ``cpbalance time``, on packs that need not exist yet: try a GPU
node with it before the queue.
"""

import argparse
import logging
from pathlib import Path

from cpbalance.attention import Attention
from cpbalance.cli.attention_arguments import add_attention_arguments
from cpbalance.cli.job_checks import check_writable, expect_device
from cpbalance.errors import InputError
from cpbalance.kernels import find_kernel
from cpbalance.kernels.base import BACKWARD, DTYPES, FORWARD
from cpbalance.timing.device import open_device
from cpbalance.timing.workload import check_memory, timed_heads

HELP = "whether timing could start here: device, kernel, memory, output folder"
logger = logging.getLogger("cpbalance")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("--kernel", required=True, help="name of a kernel, or auto")
    add_attention_arguments(parser)
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16")
    parser.add_argument("--timed-heads", type=int, metavar="N")
    parser.add_argument("--direction", choices=(FORWARD, BACKWARD, "both"), default=FORWARD)
    parser.add_argument("--tokens-per-gpu", type=int, required=True)
    parser.add_argument("--cp-sizes", type=int, nargs="+", required=True)
    parser.add_argument("--expect-device", metavar="NAME", help="name of the device expected here")
    parser.add_argument("--strict-device", action="store_true", help="refuse another device")
    parser.add_argument("--output-dir", type=Path, default=Path("results"))


def run(args: argparse.Namespace) -> None:
    """Say that all is well, or raise with the first thing that is not."""
    check_writable(args.output_dir)
    if args.tokens_per_gpu < 1:
        raise InputError(f"--tokens-per-gpu is {args.tokens_per_gpu}: give at least 1")
    attention = Attention(args.q_heads, args.kv_heads, args.head_dim, args.causal, args.dtype)
    directions = (FORWARD, BACKWARD) if args.direction == "both" else (args.direction,)
    heads = {cp: timed_heads(attention, cp, args.timed_heads) for cp in args.cp_sizes}
    kernel = find_kernel(args.kernel, attention, directions)
    device = open_device(kernel.device)
    expect_device(device, args.expect_device, args.strict_device)
    tokens = {cp: cp * args.tokens_per_gpu for cp in args.cp_sizes}
    check_memory(device, tokens, heads, attention, directions)
    logger.info(
        "ready: kernel %s of %s on %s, %.1f GiB free, %s can be written",
        *(kernel.name, kernel.module, device.name, device.free_memory() / 2**30, args.output_dir),
    )
