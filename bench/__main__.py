"""Run benchmarks: all of them, or those named on the command line."""

import importlib
import pkgutil
import sys
from pathlib import Path


def main() -> None:
    """Run each module's ``run`` and print the table it returns."""
    known = sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]))
    known = [name for name in known if not name.startswith("_")]
    asked = sys.argv[1:] or known
    unknown = set(asked) - set(known)
    if unknown:
        sys.exit(f"bench: no benchmark {sorted(unknown)}; there are {known}")
    for name in asked:
        module = importlib.import_module(f"bench.{name}")
        print(f"\n== {name}: {module.__doc__.splitlines()[0]}", flush=True)
        print(module.run().to_string(index=False, float_format="{:.3g}".format), flush=True)


if __name__ == "__main__":
    main()
