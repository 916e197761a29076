"""Claims that no computation here can test: they are about hardware, about other work, or about costs."""

from __future__ import annotations

from phasegrad_paper.studies.study import Claim, Study

STUDY = Study(
    name="outside",
    title="Claims outside computation",
    question="Which claims can a program not test?",
    protocol="No computation.",
    claims=(
        Claim(
            "outside-hardware", "Section 7.3", "proposed",
            "Frequencies, couplings and nudges map onto bias currents, capacitances and injection currents.",
            note="It needs a circuit that is built; the study circuit simulates one, of other components.",
        ),
        Claim(
            "outside-settling", "Section 7.3", "in principle",
            "In hardware the learning loop would run at the settling time of the oscillators.",
            note="It needs hardware; the study circuit simulates how long oscillators settle.",
        ),
        Claim(
            "outside-prior-work", "Abstract, section 2", "stated, with citations",
            "Earlier work on equilibrium propagation in oscillators set natural frequencies aside.",
            note="It is about what other papers contain, not about a figure.",
        ),
        Claim(
            "outside-dense", "Section 2, section 6.3", "97.8 %",
            "Coupling-only learning reaches 97.8 % on full MNIST in dense oscillator networks of other authors.",
            note="The full MNIST images are not part of the package.",
        ),
        Claim(
            "outside-cost", "Section 1", "1287 MWh, 118 GiB",
            "Training a large language model costs 1287 MWh and about 118 GiB of activations per step.",
            note="The figures are cited from other work on digital training.",
        ),
    ),
    plan=lambda _seeds: {},
)  # fmt: skip
