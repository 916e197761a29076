"""The reference: one page for every public name, grouped, written when the site is built.

A group lists its names as they follow `phasegrad.`; a name that no group lists, or that a group lists twice, stops the
build, and so does a name that there is not. In all other pages a name in backquotes becomes a link to its page.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import posixpath
import re
from types import ModuleType
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import phasegrad as pg
from phasegrad.gradients import METHODS

#: Modules whose public names have a page; their `__all__` says which those are.
MODULES = (
    "", "networks", "initial", "terms", "dynamics", "solvers", "simulation", "gradients", "measurement", "objectives",
    "training", "optim", "datasets", "datasets.grids", "hardware", "circuits", "torch", "power", "ising", "memory",
)  # fmt: skip

_FENCED = re.compile(r"(^```.*?^```|^ {4}.*?$)", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"(?<![`\[])`(?:pg\.|phasegrad\.)?([A-Za-z_][\w.]*)(\([^`]*\))?`(?![`\]])")

#: Title, what the group is for, names.
GROUPS: dict[str, tuple[str, str, str]] = {
    "networks": (
        "Networks",
        "Graphs of oscillators with their parameters: frozen values, made by a builder or edge by edge.",
        "Network layered networks.signed_layers layers Dense Convolution networks.Layout networks.Link "
        "networks.random_network networks.complete networks.ring networks.lattice "
        "networks.small_world networks.random_regular networks.erdos_renyi networks.mean_field "
        "networks.cycle_chain networks.from_matrix networks.to_matrix from_networkx networks.to_networkx",
    ),
    "starts": (
        "Initial frequencies",
        "Where training of natural frequencies begins.",
        "initial.spectral_frequencies initial.random_frequencies initial.output_frequencies "
        "initial.multi_start_frequencies",
    ),
    "terms": (
        "Terms of the energy",
        "What the energy is made of, the interaction between neighbours, and the base for terms of your own.",
        "terms.Term terms.NodeField terms.Parameter terms.Stiffness terms.Interaction terms.Sine terms.OddSeries",
    ),
    "equilibria": (
        "Equilibria",
        "Finding states, certifying them, following them; energy, force and Laplacian.",
        "find_equilibrium find_equilibria critical_scale Equilibrium Status training.Settling solvers.Newton "
        "solvers.GradientFlow dynamics.energy dynamics.force dynamics.laplacian Nudge",
    ),
    "time": (
        "Dynamics in time",
        "Trajectories from any start, with noise or inertia, and the transition to synchrony.",
        "simulate Trajectory simulation.transition simulation.simulate_amplitudes",
    ),
    "gradients": (
        "Gradients",
        "Every way to the gradient with one signature, tables that compare them, and the choice of the nudge.",
        " ".join(name if name in pg.__all__ else f"gradients.{name}" for name in METHODS)
        + " check_gradients gradients.suggest_beta Gradient gradients.GradientWarning",
    ),
    "measuring": (
        "Measuring",
        "Phases that a meter read, and what a gradient made of them is worth.",
        "measurement.Readout measurement.plan_measurement gradients.gradient_from_phases",
    ),
    "objectives": (
        "Objectives",
        "What the outputs should do: costs, and the decisions that go with them.",
        "Cost PhaseTargets objectives.ClassObjective objectives.NearestTarget objectives.PaperPair "
        "CosineCrossEntropy objectives.OneHotPhases objectives.OutputDifferences "
        "objectives.PeriodicDistance",
    ),
    "training": (
        "Training",
        "Plans, the training itself, its history, and the state to go on from.",
        "train Plan optim.Adam "
        "optim.Momentum optim.CosineDecay optim.Constant optim.Staircase Training training.TrainingState "
        "training.TrainingWarning",
    ),
    "models": (
        "Models and estimators",
        "Trained networks with all that prediction needs, and the scikit-learn estimators.",
        "OscillatorClassifier OscillatorRegressor Model",
    ),
    "lab": ("The lab", "A network to play with, in a browser.", "lab"),
    "pytorch": ("PyTorch", "A layer that settles.", "torch.PhaseNetwork torch.SettlingWarning"),
    "datasets": (
        "Data sets",
        "Data that comes along, data in your files, and your arrays.",
        "datasets.from_arrays datasets.Dataset datasets.Scaling datasets.vowels datasets.load_vowel_table "
        "datasets.fm "
        "datasets.xor datasets.classic datasets.CLASSICS datasets.digits datasets.mnist datasets.fashion_mnist "
        "datasets.cifar10 datasets.IMAGES datasets.Shifts",
    ),
    "ising": (
        "Ising machines",
        "Oscillators as bits: problems, the machine that anneals, and what it found.",
        "ising.Problem ising.solve ising.Solutions ising.simulated_annealing",
    ),
    "power": (
        "Power grids",
        "Grids as networks, and what a power engineer asks of them.",
        "datasets.grids.load datasets.grids.from_case datasets.grids.CASES datasets.Grid power.analyse "
        "power.GridAnalysis power.Relief",
    ),
    "memory": (
        "Associative memory",
        "Patterns kept as stable states, and recalled from cues in which some pixels are wrong.",
        "memory.Memory memory.Recall memory.States memory.hebbian memory.pseudo_inverse memory.learn memory.Flips "
        "memory.capacity memory.Capacity memory.corrupt memory.letters",
    ),
    "hardware": (
        "Hardware",
        "Chips with faults of their own, devices behind three calls, and learning on them.",
        "hardware.Device hardware.OnDevice hardware.DeviceError hardware.Hardware hardware.preset hardware.presets "
        "hardware.Chip hardware.Ensemble hardware.error_budget hardware.Budget hardware.Entry hardware.learn_with "
        "hardware.advised hardware.task hardware.Task hardware.TASKS hardware.FAULTS hardware.TOGETHER",
    ),
    "circuits": (
        "Circuits",
        "Networks as netlists, run by ngspice, and their phases.",
        "circuits.Circuit circuits.Components circuits.Rings circuits.write_netlist circuits.Netlist circuits.Bridge "
        "circuits.Injection circuits.ngspice circuits.has_ngspice circuits.ngspice_version circuits.Waveforms "
        "circuits.lock circuits.Locked circuits.phase_history circuits.settling_cycles circuits.crossing_frequency "
        "circuits.averaging_shift circuits.fit_interaction circuits.MeasuredInteraction circuits.CircuitWarning "
        "circuits.NgspiceError",
    ),
}


@functools.cache
def public_names() -> dict[str, Any]:
    """Return every public object by what follows `phasegrad.`; of names for one object the first."""
    found: dict[str, Any] = {}
    for module in MODULES:
        home = importlib.import_module(f"phasegrad.{module}".rstrip("."))
        for name in home.__all__:
            path, value = f"{module}.{name}".lstrip("."), getattr(home, name)
            known = isinstance(value, ModuleType) or (callable(value) and any(value is one for one in found.values()))
            found |= {} if known else {path: value}
    return found


def grouped() -> dict[str, list[str]]:
    """Return the names of every group; raise where they are not the public names, each once."""
    groups = {group: names.split() for group, (_, _, names) in GROUPS.items()}
    listed = [name for names in groups.values() for name in names]
    public = set(public_names())
    wrong = {
        "no group has": public - set(listed),
        "are not public": set(listed) - public,
        "stand twice": {name for name in listed if listed.count(name) > 1},
    }
    for words, names in wrong.items():
        if names:
            raise PluginError(f"GROUPS in docs/hooks/reference.py: {words}: {', '.join(sorted(names))}.")
    return groups


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
    names = set(public_names())

    def link(found: re.Match[str]) -> str:
        if found[1] not in names or found[1] in seen:
            return found[0]
        seen.add(found[1])
        return f"[{found[0]}]({posixpath.relpath(page_of(found[1]), folder or '.')})"

    heading, line, rest = text.partition("\n")
    parts = _FENCED.split(rest)
    return heading + line + "".join(part if k % 2 else _NAME.sub(link, part) for k, part in enumerate(parts))
