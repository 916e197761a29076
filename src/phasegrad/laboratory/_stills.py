"""Still pictures of the tour's steps, as inline SVG: what a browser without JavaScript shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from phasegrad._validation import Array
from phasegrad.dynamics import Nudge
from phasegrad.equilibria import find_equilibrium
from phasegrad.gradients import adjoint
from phasegrad.networks import Network, layered
from phasegrad.objectives import PaperPair, PhaseTargets

_WIDTH, _HEIGHT = 360, 240
_SAMPLE, _TARGET, _BETA = (0.8, -0.6), (-0.2, 0.2), 0.02
_RADIUS = 15
_MAGNIFIED = 1200.0
_NOISE = 0.0005

_STORY = (
    (
        "Oscillators settle",
        "Each circle is an oscillator, its hand is its phase. Couplings pull neighbours together; data sets the "
        "frequencies of the inputs on the left. All phases come to rest: that is the network’s answer.",
    ),
    (
        "Nudge the outputs",
        "A weak pull β draws the two outputs on the right toward their targets. Through the couplings every other "
        "oscillator shifts too; the wedges show the shifts enlarged.",
    ),
    (
        "The shift is the gradient",
        "Every shift divided by −β, orange, beside the exact gradient of the cost by every oscillator’s own frequency, "
        "blue. No oscillator computed anything: settling did.",
    ),
    (
        "Bias, noise, and a nudge of both signs",
        "The error of the gradient over β, with a noisy phase meter: a weak nudge drowns in the noise, a strong one is "
        "biased. Nudges of both signs, dashed, are biased by β² only, so that they may be strong.",
    ),
    (
        "Learning",
        "Every frequency and coupling moves against its own gradient, sample by sample. On /a/ against /i/ with a "
        "decision that fits the cost, every one of 100 random starts reaches 100 % test accuracy.",
    ),
    (
        "Why half of the paper’s seeds fail",
        "The cost asks the right output for −0.2 and the other for +0.2 (the star), but the decision takes the largest "
        "cosine (the shading), and the star lies on its border: a tie. What decides is the sign of d, the difference "
        "of the output phases, set by the initial output frequencies: with d > 0 all of 100 seeds succeed, with d < 0 "
        "none does, and the failed ones are inverted classifiers, near 0 %.",
    ),
)


@cache
def stills() -> str:
    """Return the six steps as a list with a picture each."""
    items = [
        f"<li>{picture}<h3>{number}. {title}</h3><p>{text}</p></li>"
        for number, ((title, text), picture) in enumerate(zip(_STORY, _pictures(), strict=True), start=1)
    ]
    return f"<ol>{''.join(items)}</ol>"


def _pictures() -> list[str]:
    network = layered(2, 5, 2)
    free = find_equilibrium(network, _SAMPLE)
    nudged = find_equilibrium(network, _SAMPLE, nudge=Nudge(PhaseTargets(), _TARGET, _BETA), start=free.phases)
    exact = adjoint(network, free, PhaseTargets(), _TARGET).omega
    shift = nudged.phases - free.phases
    drawn = [
        _network(network, free.phases, np.zeros(network.size)),
        _network(network, free.phases, shift),
        _bars(-shift / _BETA, exact),
        _errors(network, free.phases, exact),
        _accuracies(),
        _tie(),
    ]
    return [_svg(shapes, title) for shapes, (title, _) in zip(drawn, _STORY, strict=True)]


def _svg(shapes: Iterable[str], title: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}">{"".join(shapes)}</svg>'


def _network(network: Network, phases: Array, shift: Array) -> list[str]:
    """Return hands on circles, and wedges where there are shifts."""
    levels = [list(network.inputs), [2, 3, 4, 5, 6], list(network.outputs)]
    places = {
        node: (50 + 130 * column, _HEIGHT / 2 + 46 * (row - (len(nodes) - 1) / 2))
        for column, nodes in enumerate(levels)
        for row, node in enumerate(nodes)
    }
    most = float(np.max(network.coupling))
    shapes = [
        f'<path d="M{_point(places[i])}L{_point(places[j])}" stroke="var(--edge)" stroke-width="{3 * k / most:.1f}"/>'
        for (i, j), k in zip(network.edges.tolist(), network.coupling.tolist(), strict=True)
    ]
    for node, place in places.items():
        rim = _on_rim(place, phases[node])
        shapes.append(_circle(place, _RADIUS, 'fill="var(--card)" stroke="var(--ink)"'))
        if shift[node]:
            turned = _on_rim(place, phases[node] + _MAGNIFIED * shift[node])
            sweep = int(shift[node] > 0)
            arc = f"M{_point(place)}L{_point(rim)}A{_RADIUS} {_RADIUS} 0 0 {sweep} {_point(turned)}Z"
            shapes.append(f'<path d="{arc}" fill="var(--shift)"/>')
        shapes.append(f'<path d="M{_point(place)}L{_point(rim)}" stroke="var(--ink)" stroke-width="2"/>')
    return shapes


def _bars(measured: Array, exact: Array) -> list[str]:
    scale = 190 / float(np.max(np.abs(exact)))
    slot = (_WIDTH - 20) / exact.size
    shapes = ['<path d="M10 20H350" stroke="var(--soft)"/>']
    for k, pair in enumerate(zip(measured, exact, strict=True)):
        for side, (value, colour) in enumerate(zip(pair, ("shift", "exact"), strict=True)):
            x, height = 10 + (k + 0.12) * slot + side * 13, abs(value) * scale
            shapes.append(_rectangle(x, 20 if value < 0 else 20 - height, 12, height, colour))
        shapes.append(_text(10 + (k + 0.5) * slot - 4, _HEIGHT - 8, str(k)))
    return shapes


def _errors(network: Network, free: Array, exact: Array) -> list[str]:
    """Return the relative error over beta with a noisy meter, one-sided and centred."""
    strengths = np.geomspace(1e-3, 2.0, 25)
    size, moving = np.linalg.norm(exact), math.sqrt(network.size - 1)
    shapes = _axes()
    for centred, dash in ((False, ""), (True, ' stroke-dasharray="5 4"')):
        points = []
        for beta in strengths:
            signs = (1, -1) if centred else (1,)
            states = [
                find_equilibrium(network, _SAMPLE, nudge=Nudge(PhaseTargets(), _TARGET, sign * beta), start=free).phases
                for sign in signs
            ]
            found = -(states[0] - (states[1] if centred else free)) / (len(signs) * beta)
            noise = math.sqrt(2) * _NOISE * moving / (len(signs) * beta)
            points.append((beta, float(np.hypot(np.linalg.norm(found - exact), noise) / size)))
        line = "L".join(_point((_across(beta), _up(error))) for beta, error in points)
        shapes.append(f'<path d="M{line}" fill="none" stroke="var(--shift)" stroke-width="2"{dash}/>')
    return shapes


def _axes() -> list[str]:
    shapes = [_text(150, _HEIGHT - 2, "nudge β")]
    for beta in (1e-3, 1e-2, 0.1, 1.0):
        shapes += [_text(_across(beta) - 10, 222, f"{beta:g}"), _line(_across(beta), 10, _across(beta), 208)]
    for error in (0.01, 0.1, 1.0, 10.0):
        shapes += [_text(2, _up(error) + 4, f"{error:.0%}"), _line(52, _up(error), 350, _up(error))]
    return shapes


def _across(beta: float) -> float:
    return 60 + (math.log10(beta) + 3) / 3.3 * 280


def _up(error: float) -> float:
    return 10 + (1.6 - math.log10(error)) / 4.0 * 198


def _accuracies() -> list[str]:
    """Return test accuracies of 100 random starts as published in the README: untrained, and by both decisions."""
    rows = (("largest cosine, as published", 0.485, "soft"), ("the decision the cost asks for", 1.0, "exact"))
    shapes = [_line(20 + 300 * share, 40, 20 + 300 * share, 200) for share in (0, 0.5, 1)]
    shapes += [_text(10 + 300 * share, 218, f"{share:.0%}") for share in (0, 0.5, 1)]
    for row, (words, share, colour) in enumerate(rows):
        y = 70 + 70 * row
        shapes += [_text(20, y - 6, f"{words}: {100 * share:.1f} %"), _rectangle(20, y, 300 * share, 24, colour)]
    return shapes


def _tie() -> list[str]:
    """Return the decision regions of both outputs' phases for class 0, and the lowest cost on their border."""
    reach, side = 0.5, 200.0
    shapes = ['<path d="M80 10H280L80 210H280Z" fill="var(--class0)" opacity="0.3"/>']
    middle = (80 + side / 2, 10 + side / 2)
    star = tuple(m + s * t / reach * side / 2 for m, s, t in zip(middle, (1, -1), PaperPair().table(2)[0], strict=True))
    shapes += [_circle(star, 14 * k, 'fill="none" stroke="var(--exact)"') for k in (1, 2, 3)]
    shapes += [_text(star[0] - 6, star[1] + 5, "★"), _line(80, middle[1], 280, middle[1]), _line(180, 10, 180, 210)]
    return [*shapes, _text(130, 230, "phase of output 1"), _text(2, 110, "output 2"), _text(286, 30, "class 0")]


def _point(place: Sequence[Any]) -> str:
    return f"{place[0]:.1f} {place[1]:.1f}"


def _on_rim(place: Sequence[float], phase: float) -> tuple[float, float]:
    return place[0] + _RADIUS * math.sin(phase), place[1] - _RADIUS * math.cos(phase)


def _circle(place: Sequence[float], radius: float, style: str) -> str:
    return f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="{radius:g}" {style}/>'


def _rectangle(x: float, y: float, width: float, height: float, colour: str, opacity: float = 1.0) -> str:
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {shape} fill="var(--{colour})" opacity="{opacity:g}"/>'


def _line(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" stroke="var(--line)"/>'


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}">{words}</text>'
