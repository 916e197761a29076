"""All studies, in the order of the paper."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module

from phasegrad._validation import whole_number
from phasegrad_paper.studies import (
    asymmetry,
    circuit,
    finite_beta,
    identity,
    images,
    ising,
    memory,
    reciprocity,
    transition,
)
from phasegrad_paper.studies.study import Study

_MODULES = (
    "identity", "asymmetry", "finite_beta", "gradient_rule", "mechanism", "ablation", "learning_rates", "modulation",
    "parameter_matched", "sweep", "convergence", "five_configurations", "spectral", "generalisation", "baselines",
    "which_parameter", "peers", "readout", "mismatch", "outside",
)  # fmt: skip
STUDIES: tuple[Study, ...] = tuple(import_module(f"phasegrad_paper.studies.{name}").STUDY for name in _MODULES)
#: Studies that run only if they are asked for by name: not of the paper, or they need ngspice, data and a GPU, or long
#: trainings.
ON_REQUEST: tuple[Study, ...] = (
    circuit.STUDY,
    images.STUDY,
    ising.STUDY,
    memory.STUDY,
    reciprocity.STUDY,
    transition.STUDY,
)


def choose(names: Sequence[str] = ()) -> tuple[Study, ...]:
    """Return the studies of these names, in the order of the paper; without names all but those on request."""
    known = {study.name: study for study in (*STUDIES, *ON_REQUEST)}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.3)
            advice = f"Did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"There is no study {name!r}. {advice}Studies are {', '.join(known)}.")
    return tuple(study for study in known.values() if study.name in names) if names else STUDIES


def verification_studies(sizes: Sequence[int] = identity.SIZES) -> tuple[Study, ...]:
    """Return the studies of sections 3 to 5 and 7, on networks of these sizes, 4 to 2000 oscillators each."""
    if not sizes:
        raise ValueError("The 'sizes' parameter of verify must name at least one network size.")
    chosen = [whole_number("sizes", n, identity.SMALLEST, "verify") for n in sizes]
    if max(chosen) > identity.LARGEST or len(set(chosen)) != len(chosen):
        raise ValueError(
            f"The 'sizes' parameter of verify must be different numbers, {identity.LARGEST} at most. "
            f"Got {', '.join(map(str, chosen)):.80}."
        )
    return identity.study(chosen), asymmetry.STUDY, finite_beta.STUDY
