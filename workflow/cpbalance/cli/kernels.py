"""``cpbalance kernels``: which attention kernels can run here, and why others cannot."""

import argparse

from cpbalance.kernels import KERNELS, probe_devices

HELP = "list attention kernels, available or not, and why"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command takes no arguments."""


def run(args: argparse.Namespace) -> None:
    """Print every kernel in the order in which auto prefers them."""
    probes = probe_devices()
    best = None
    for name, adapter in KERNELS.items():
        kernel = adapter()
        reason = kernel.unavailable(probes)
        if reason is None:
            found = kernel.provenance()
            version = " ".join(filter(None, (found["package"], found["version"])))
            print(f"{name:<13} available      {kernel.module} ({version})")
            best = best or name
        else:
            print(f"{name:<13} not available  {reason}")
        print(f"{'':<13} runs           {kernel.supports()}")
    print(f"{'auto':<13} is {best}" if best else f"{'auto':<13} finds none")
