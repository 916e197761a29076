"""The hooks that build the site, as modules."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOOKS = ROOT / "docs" / "hooks"


def hook(name):
    """Return one of the hooks; skip where the packages that build the site are missing."""
    pytest.importorskip("mkdocs", reason="the site needs mkdocs: pip install --group docs")
    module = f"phasegrad_site_{name}"
    if module not in sys.modules:
        spec = importlib.util.spec_from_file_location(module, HOOKS / f"{name}.py")
        sys.modules[module] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[module])
    return sys.modules[module]
