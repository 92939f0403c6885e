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
DISPATCHER = "cpbalance.cli"
DATA_SUFFIXES = (".csv", ".json")


def _path(module: str) -> Path | None:
    """File of a module of this package, None for a name that is no module."""
    parts = module.split(".")[1:]
    if not parts:
        return None
    folder = PACKAGE.joinpath(*parts)
    for candidate in (folder / "__init__.py", folder.with_suffix(".py")):
        if candidate.is_file():
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


def modules_of(*roots: str) -> dict[str, Path]:
    """Modules that ``roots`` import, they and enclosing packages included, name to file."""
    found: dict[str, Path] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        path = _path(name)
        # The dispatcher only picks the stage: a new subcommand changes no result.
        if path is None or name in found or name == DISPATCHER:
            continue
        found[name] = path
        waiting.extend(_imports(path))
        waiting.append(name.rpartition(".")[0])
    return found


@cache
def code_digest(stage: str, *more: str) -> str:
    """SHA-256, 16 hex digits, over the modules of a stage's command and of ``more`` modules.

    Data files that lie beside a package's modules count with it. Raises KeyError for no such stage.
    """
    modules = modules_of(f"cpbalance.cli.{stage}", *more)
    if not modules:
        raise KeyError(stage)
    files = set(modules.values())
    for path in modules.values():
        if path.name == "__init__.py":
            files.update(p for p in path.parent.iterdir() if p.suffix in DATA_SUFFIXES)
    digest = hashlib.sha256()
    for path in sorted(files):
        name = path.relative_to(PACKAGE).as_posix()
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
