"""Digest of the code that a stage runs, so that an edited library makes Snakemake rerun it.

Snakemake does not see the modules that a shell command imports. Each rule therefore carries the
SHA-256 of the ``cpbalance`` modules that its stage imports, found by following import statements
(those inside functions too), without importing anything.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent


def _path(module: str) -> Path | None:
    """File of a module of this package, None for a name that is no module."""
    relative = Path(*module.split(".")[1:])
    for candidate in (PACKAGE / relative / "__init__.py", PACKAGE / relative.with_suffix(".py")):
        if module != "cpbalance" and candidate.is_file():
            return candidate
    return None


@cache
def _imports(path: Path) -> frozenset[str]:
    """Names below ``cpbalance`` that a file imports, modules and attributes alike."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(name for name in names if name.startswith("cpbalance."))


def modules_of(root: str) -> dict[str, Path]:
    """Modules that ``root`` imports, itself and enclosing packages included, name to file."""
    found: dict[str, Path] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        path = _path(name)
        if path is None or name in found:
            continue
        found[name] = path
        waiting.extend(_imports(path))
        waiting.append(name.rpartition(".")[0])
    return found


@cache
def code_digest(stage: str) -> str:
    """SHA-256, 16 hex digits, over the modules of the stage's command; raises KeyError if none."""
    # The dispatcher only picks the stage: a new subcommand changes no result.
    modules = {k: v for k, v in modules_of(f"cpbalance.cli.{stage}").items() if k != "cpbalance.cli"}
    if not modules:
        raise KeyError(stage)
    digest = hashlib.sha256()
    for name in sorted(modules):
        digest.update(f"{name}\0".encode() + modules[name].read_bytes() + b"\0")
    return digest.hexdigest()[:16]
