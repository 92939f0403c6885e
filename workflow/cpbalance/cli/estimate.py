"""``cpbalance estimate``: what timing an experiment will cost, before anything is submitted."""

import argparse
from pathlib import Path

from cpbalance.cli.sample import load_population
from cpbalance.config import parse_config
from cpbalance.errors import InputError
from cpbalance.estimate import CALL_S, MODEL, PASSES, START_S, timing_costs

HELP = "GPU-minutes that the timings of an experiment will take"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of this command."""
    parser.add_argument("--configfile", type=Path, required=True, help="the experiment")


def run(args: argparse.Namespace) -> None:
    """Print a line a file of timings, and the sum."""
    import yaml

    if not args.configfile.is_file():
        raise InputError(f"{args.configfile}: no such file; give the experiment's configuration")
    try:
        values = yaml.safe_load(args.configfile.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{args.configfile}: not readable as YAML: {reason}") from None
    config = parse_config(values)
    populations = {}
    for name in {name for run in config.timing.values() for name in run.lengths}:
        population, _ = load_population(config.lengths[name])
        if population is not None:
            populations[name] = population
    costs = timing_costs(config, populations)
    width = max(len(cost.name) for cost in costs)
    print(f"{'timing':<{width}}  jobs  calls a pass  GPU-minutes")
    for cost in costs:
        least = "?" if cost.least is None else f"{cost.least:.0f}"
        print(f"{cost.name:<{width}}  {cost.jobs:>4}  {cost.calls:>12}  {least} to {cost.most:.0f}")
    known = [cost.least for cost in costs if cost.least is not None]
    least = f"{sum(known):.0f}" if len(known) == len(costs) else "?"
    most = sum(cost.most for cost in costs)
    print(f"{sum(c.jobs for c in costs)} GPU jobs, {least} to {most:.0f} GPU-minutes in all.")
    print(
        f"Least: {PASSES} passes, the fewest that settle a pack, with call times of the model "
        f"{MODEL}.\nMost: the whole budget. Assumed, not measured: {1e3 * CALL_S:.0f} ms around a "
        f"call, {START_S:.0f} s around each job."
    )
