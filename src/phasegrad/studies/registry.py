"""All studies, in the order of the paper."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from phasegrad.studies import (
    ablation,
    asymmetry,
    baselines,
    convergence,
    finite_beta,
    five_configurations,
    generalisation,
    gradient_rule,
    learning_rates,
    mechanism,
    modulation,
    outside,
    parameter_matched,
    peers,
    spectral,
    sweep,
    theorem,
    which_parameter,
)
from phasegrad.studies.study import Study

STUDIES: tuple[Study, ...] = tuple(
    module.STUDY
    for module in (
        theorem,
        asymmetry,
        finite_beta,
        gradient_rule,
        mechanism,
        ablation,
        learning_rates,
        modulation,
        parameter_matched,
        sweep,
        convergence,
        five_configurations,
        spectral,
        generalisation,
        baselines,
        which_parameter,
        peers,
        outside,
    )
)


def choose(names: Sequence[str] = ()) -> tuple[Study, ...]:
    """Return the studies of these names, in the order of the paper; all of them if none is named."""
    known = {study.name: study for study in STUDIES}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.3)
            advice = f"Did you mean {near[0]!r}? " if near else ""
            raise ValueError(f"There is no study {name!r}. {advice}Studies are {', '.join(known)}.")
    return tuple(study for study in STUDIES if not names or study.name in names)
