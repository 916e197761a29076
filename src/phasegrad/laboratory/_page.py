"""The page: one HTML file, complete in itself, made of the files in ``web`` as they are.

The modules of the page import each other by names such as ``lab/physics.js``. Served one by one, an import map leads
these to the files; in one file it leads each to an address that holds the module itself, without its indentation and
the comments that stand on lines of their own.
Nothing is fetched from anywhere, and the page's own policy forbids it.
"""

from __future__ import annotations

import base64
import json
import os
import re
import tempfile
import webbrowser
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from phasegrad._files import printable, write_bytes
from phasegrad.laboratory._scene import scene
from phasegrad.laboratory._stills import stills
from phasegrad.laboratory._tasks import tasks

_MAIN = "lab.js"
_COMMENT = re.compile(r"^(?:/\*\*.*?\*/|//[^\n]*)?\n", re.MULTILINE | re.DOTALL)
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


def lab(
    shown: Any = None, *, out: str | os.PathLike[str] | None = None, open: bool = True, replace: bool = False
) -> Path:
    """Write the lab, a page that runs the physics in a browser, open it, and return where it lies.

    The page is one file that needs no network: a network with its phases as hands on circles, sliders for data,
    frequencies, couplings, the nudge and the noise of the phase meter, bars of the gradient that a nudge shows beside
    the exact one, tasks to learn, and a tour of six steps.

    Parameters
    ----------
    shown : Network, Model, fitted estimator or None
        What is on show, at most 400 oscillators with reciprocal coupling; None is the paper's network, with the tour.
        Parameters that a layout shares are shown for every oscillator and edge on its own.
    out : path, optional
        Where to write; a temporary file if left out. A name that ends in ``.json`` gets what is on show alone, which
        the page opens.
    open : bool
        Whether a browser opens the page; never where ``out`` is a JSON file.
    replace : bool
        Whether a file that ``out`` names may be replaced.

    See Also
    --------
    Network : A graph, the terms of its energy, and how data enters.
    Model : A trained network with all that prediction needs.
    find_equilibrium : One certified equilibrium per sample.

    Examples
    --------
    >>> import phasegrad as pg, tempfile
    >>> page = pg.lab(pg.layered(2, 8, 2), out=tempfile.mkdtemp() + "/lab.html", open=False)
    >>> page.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    plain = scene(shown)
    if out is not None and Path(out).exists() and not replace:
        raise FileExistsError(f"{printable(out)} is there already. Name another place, or give replace=True.")
    if out is not None and Path(out).suffix.lower() == ".json":
        write_bytes(Path(out), (_json(plain) + "\n").encode("utf-8"))
        return Path(out)
    path = Path(tempfile.mkdtemp(prefix="phasegrad-lab-")) / "lab.html" if out is None else Path(out)
    write_bytes(path, _page(None if shown is None else plain).encode("utf-8"))
    if open:
        webbrowser.open(path.absolute().as_uri())
    return path


def page_data(plain: dict[str, Any] | None) -> dict[str, Any]:
    """Return all data of a page that shows a scene, or the paper's network with the tour."""
    return {"scene": plain, "paper": scene(), "tasks": tasks(), "tour": plain is None}


def _page(plain: dict[str, Any] | None) -> str:
    """Return the page, every mark in its template filled in."""
    parts = {
        "policy": f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        "style": f"<style>\n{_file('style.css')}</style>",
        "modules": _modules(),
        "stills": stills(),
        "data": f'<script id="data" type="application/json">{_json(page_data(plain))}</script>',
    }
    page = _file("index.html")
    for name, content in parts.items():
        before, _, rest = page.partition(f"<!-- {name} -->")
        page = before + content + rest.partition(f"<!-- /{name} -->")[2]
    return page


def _modules() -> str:
    """Return an import map to addresses that hold the modules themselves, and what starts the first of them."""
    names = sorted(each.name for each in _web().iterdir() if each.name.endswith(".js"))
    places = {f"lab/{name}": _address(_file(name)) for name in names}
    return (
        f'<script type="importmap">{json.dumps({"imports": places})}</script>\n'
        f'<script type="module">import "lab/{_MAIN}";</script>'
    )


def _address(module: str) -> str:
    light = _COMMENT.sub("", re.sub("^ +", "", module, flags=re.MULTILINE))
    return f"data:text/javascript;base64,{base64.b64encode(light.encode('utf-8')).decode('ascii')}"


def _json(data: Any) -> str:
    """Return data as JSON that can stand inside a script element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


@cache
def _file(name: str) -> str:
    return _web().joinpath(name).read_text(encoding="utf-8")


def _web() -> Any:
    return resources.files("phasegrad.laboratory").joinpath("web")
