"""The page of the command line: every command with its help, written when the site is built."""

from __future__ import annotations

import io
import re

import rich.console
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from phasegrad.cli.application import commands

PATH = "reference/commands.md"


def page() -> str:
    """Return the page."""
    lines = ["# Command line", "", "`phasegrad --help` and `phasegrad COMMAND --help` print what stands here.", ""]
    for name, command in sorted(commands().items()):
        lines += [f"## phasegrad {name}", "", *_described(command), ""]
    return "\n".join(lines)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, PATH, content=page()))
    return files


def _described(command: object) -> list[str]:
    words = " ".join(plain(command.help or "").split())  # type: ignore[attr-defined]
    examples = [f"    {line}" for line in re.findall("Example: (.*)", command.epilog)]  # type: ignore[attr-defined]
    lines = [words, "", *examples, "", "| option | what it does |", "|---|---|"]
    for parameter in command.params:  # type: ignore[attr-defined]
        if parameter.name == "help":
            continue
        name = parameter.name.upper() if parameter.param_type_name == "argument" else parameter.opts[-1]
        lines.append(f"| `{name}` | {plain(parameter.help or '').replace('|', '/')} |")
    return lines


def plain(text: str) -> str:
    """Return help without its markup."""
    console = rich.console.Console(file=io.StringIO(), width=10_000)
    return console.render_str(text).plain
