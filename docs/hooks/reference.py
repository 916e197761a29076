"""The reference: one page for every public name, grouped by package, written when the site is built.

The names of a group are those at the top level that its packages define, and then the rest of their `__all__`. In all
other pages a name in backquotes becomes a link to its page.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import posixpath
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import phasegrad as pg

_FENCED = re.compile(r"(^```.*?^```|^ {4}.*?$)", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"(?<![`\[])`(?:pg\.|phasegrad\.)?([A-Za-z_][\w.]*)(\([^`]*\))?`(?![`\]])")

#: Title, what the group is for, and the packages whose names it has.
GROUPS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "networks": (
        "Networks",
        "Graphs of oscillators with their parameters: frozen values, made by a builder or edge by edge.",
        ("networks", "initial"),
    ),
    "equilibria": (
        "Equilibria",
        "Finding states, certifying them, following them; energy, force and Laplacian.",
        ("equilibria", "dynamics", "solvers"),
    ),
    "gradients": (
        "Gradients",
        "Every method with one signature, tables that compare them, and phases that a meter has read.",
        ("gradients", "measurement"),
    ),
    "objectives": (
        "Objectives",
        "What the outputs should do: costs, and the decisions that go with them.",
        ("objectives",),
    ),
    "training": (
        "Training",
        "Plans, optimisers, the training itself, and the state to continue from.",
        ("training", "optim"),
    ),
    "models": (
        "Models and estimators",
        "Trained networks with all that prediction needs, and the scikit-learn estimators.",
        ("estimators", "models"),
    ),
    "pytorch": ("PyTorch", "A layer that settles.", ("torch",)),
    "simulation": (
        "Dynamics in time",
        "Trajectories from any start, with noise or inertia, and the transition to synchrony.",
        ("simulation",),
    ),
    "datasets": ("Data sets", "Data that comes along, data in your files, and your arrays.", ("datasets",)),
    "terms": (
        "Terms of the energy",
        "What the energy is made of, the interaction between neighbours, and the base class for custom terms.",
        ("terms",),
    ),
    "ising": (
        "Ising machines",
        "Oscillators as bits: problems, the machine that anneals, and what it found.",
        ("ising",),
    ),
    "memory": (
        "Associative memory",
        "Patterns kept as stable states, and recalled from cues in which some pixels are wrong.",
        ("memory",),
    ),
    "grids": ("Power grids", "Grids as networks, and what a power engineer asks of them.", ("grids",)),
    "hardware": (
        "Hardware",
        "Chips with faults of their own, devices behind three calls, and learning on them.",
        ("hardware",),
    ),
    "circuits": ("Circuits", "Networks as netlists, run by ngspice, and their phases.", ("circuits",)),
    "lab": ("The lab", "A network to play with, in a browser.", ("laboratory",)),
}


@functools.cache
def grouped() -> dict[str, list[str]]:
    """Return the public names of every group by what follows `phasegrad.`."""
    return {group: [name for home in homes for name in _names_of(home)] for group, (_, _, homes) in GROUPS.items()}


def _names_of(home: str) -> list[str]:
    """Return the public names of a package: those at the top level first."""
    top = [name for name, place in pg._HOMES.items() if place == home]
    public = home in (*pg._MODULES, "torch")
    module = importlib.import_module(f"phasegrad.{home}")
    rest = [name for name in module.__all__ if name not in top] if public else []
    return top + [f"{home}.{name}" for name in rest]


@functools.cache
def public_names() -> dict[str, Any]:
    """Return every public object by what follows `phasegrad.`."""
    names = [name for group in grouped().values() for name in group]
    return {name: functools.reduce(getattr, name.split("."), pg) for name in names}


@functools.cache
def full_name(name: str) -> str | None:
    """Return the public name that a name stands for: itself, or the only one that ends in it."""
    if name in public_names():
        return name
    ends = [each for each in public_names() if each.rpartition(".")[2] == name]
    return ends[0] if len(ends) == 1 else None


@functools.cache
def page_of(name: str) -> str:
    """Return the path of the page of a name; on some systems files that differ in case only are one file."""
    group, names = next((group, names) for group, names in grouped().items() if name in names)
    short = name.rpartition(".")[2]
    twins = [other for other in names if other != name and other.lower() == name.lower()]
    return f"reference/{group}/{short}{'-class' if twins and short[0].isupper() else ''}.md"


def source_of(name: str, value: Any) -> str:
    """Return where the name is defined, which is never a module that has the same name as what it holds."""
    value = inspect.unwrap(value) if callable(value) else value
    home = getattr(value, "__module__", None) if callable(value) else None
    return f"{home}.{value.__qualname__}" if home else f"phasegrad.{name}"


def summary(value: Any, name: str) -> str:
    """Return the first sentence of a docstring; of plain data, its type."""
    text = inspect.getdoc(value) if callable(value) else f"Plain data: a {type(value).__name__}."
    if not text:
        raise PluginError(f"phasegrad.{name} has no docstring.")
    return " ".join(text.split("\n\n")[0].split())


def pages() -> dict[str, str]:
    """Return the text of every generated page by its path."""
    values = public_names()
    made = {"reference/index.md": _overview(values)}
    for group, names in grouped().items():
        title, words, _ = GROUPS[group]
        made[f"reference/{group}/index.md"] = f"# {title}\n\n{words}\n\n{_table(names, values, group)}"
        for name in names:
            made[page_of(name)] = _page(name, values[name])
    return made


def _page(name: str, value: Any) -> str:
    return (
        f"---\ntitle: {name}\n---\n\n::: {source_of(name, value)}\n    options:\n"
        f"      heading: phasegrad.{name}\n      toc_label: {name}\n"
    )


def _table(names: list[str], values: dict[str, Any], group: str) -> str:
    rows = [
        f"| [`{name}`]({page_of(name).removeprefix(f'reference/{group}/')}) | {summary(values[name], name)} |"
        for name in names
    ]
    return "\n".join(["| name | what it is |", "|---|---|", *rows, ""])


def _overview(values: dict[str, Any]) -> str:
    lines = [
        "# Reference",
        "",
        f"All {len(values)} public names, each with a page, an example that runs and what stands beside it. Names are "
        "given as they follow `import phasegrad as pg`: `pg.train`, `pg.datasets.vowels`. The command line has "
        "[a page of its own](commands.md).",
        "",
    ]
    for group, names in grouped().items():
        links = ", ".join(f"[`{name}`]({page_of(name).removeprefix('reference/')})" for name in names)
        lines += [f"## {GROUPS[group][0]}", "", GROUPS[group][1], "", links, ""]
    return "\n".join(lines)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the reference where the navigation leaves a place for it."""
    nav: list[Any] = ["reference/index.md", {"Command line": "reference/commands.md"}]
    for group, names in grouped().items():
        inside: list[Any] = [f"reference/{group}/index.md"]
        inside += [{name.rpartition(".")[2]: page_of(name)} for name in names]
        nav.append({GROUPS[group][0]: inside})
    config.nav = [{"Reference": nav} if entry == {"Reference": []} else entry for entry in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Link names in backquotes, the first time in every section; code and headings stay as they are."""
    if page.file.src_uri.startswith("reference/"):
        return markdown
    return linked(markdown, posixpath.dirname(page.file.src_uri))


def linked(markdown: str, folder: str = "") -> str:
    """Return the text of a page in a folder with links to the reference."""
    sections = re.split(r"(?m)^(?=#{1,3} )", markdown)
    return "".join(_linked_section(section, folder) for section in sections)


def _linked_section(text: str, folder: str) -> str:
    seen: set[str] = set()

    def link(found: re.Match[str]) -> str:
        name = full_name(found[1])
        if name is None or name in seen:
            return found[0]
        seen.add(name)
        return f"[{found[0]}]({posixpath.relpath(page_of(name), folder or '.')})"

    heading, line, rest = text.partition("\n")
    parts = _FENCED.split(rest)
    return heading + line + "".join(part if k % 2 else _NAME.sub(link, part) for k, part in enumerate(parts))
