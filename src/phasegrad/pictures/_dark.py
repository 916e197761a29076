"""A picture for a dark page: the same drawing, every colour moved to where it can be seen there.

A colour gets the contrast to the dark page that it had to the white one, up to that of the ink, and keeps its hue and
chroma (in OKLab, where equal steps look equal): white becomes the page, black the ink, and pale what was deep. A strong
colour is never darker than what stands out from the page.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from phasegrad._validation import FloatArray

#: The page and its ink.
DARK_PAPER, DARK_INK = "#14181d", "#e3e7ec"
# From linear red, green and blue to the cones' answers, and from their cube roots to lightness and two opponents.
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
# How light a strong colour is at least, and from which chroma on a colour is strong.
_LIGHT, _STRONG = 0.66, 0.1
_COLOUR = re.compile(rb"#[0-9a-fA-F]{6}\b")


def on_dark(svg: bytes) -> bytes:
    """Return an SVG picture, drawn for white paper, in colours for a dark page."""
    turned = _COLOUR.sub(lambda found: _turned(found.group().decode("ascii").lower()).encode("ascii"), svg)
    # What has no colour of its own, as words have none, is black otherwise.
    return turned.replace(b"<svg ", f'<svg fill="{DARK_INK}" '.encode("ascii"), 1)


@cache
def _turned(colour: str) -> str:
    if colour in ("#ffffff", "#000000"):
        return DARK_PAPER if colour == "#ffffff" else DARK_INK
    lightness, *opponents = _lab(colour)
    paper, ink = _lab(DARK_PAPER)[0], _lab(DARK_INK)[0]
    # Luminance is about the third power of lightness; WCAG's contrast is a ratio of luminances, each plus 0.05.
    contrast = 1.05 / (lightness**3 + 0.05)
    strength = min(float(np.hypot(*opponents)) / _STRONG, 1.0)
    turned = max(min(np.cbrt(contrast * (paper**3 + 0.05) - 0.05), ink), _LIGHT * strength**2)
    return _hex(np.array([turned, *opponents]))


def _lab(colour: str) -> FloatArray:
    given = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(given <= 0.04045, given / 12.92, ((given + 0.055) / 1.055) ** 2.4)
    return np.asarray(_LAB @ np.cbrt(_CONES @ linear))


def _hex(lab: FloatArray) -> str:
    linear = np.clip(np.linalg.solve(_CONES, np.linalg.solve(_LAB, lab) ** 3), 0.0, 1.0)
    given = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * each):02x}" for each in np.clip(given, 0.0, 1.0))
