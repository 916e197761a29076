"""Images: how far networks of oscillators get on MNIST, Fashion-MNIST and CIFAR-10; asked for by name, not by default.

`EXPERIMENTS` is the table of all settings. ``python -m phasegrad_paper.studies.images OUT.json`` computes its runs
where there is little more than NumPy and PyTorch, and ``phasegrad reproduce images`` the same as pieces of a study.
"""

from phasegrad_paper.studies.images.claims import STUDY, judged, study
from phasegrad_paper.studies.images.experiments import EXPERIMENTS, Experiment, chosen
from phasegrad_paper.studies.images.results import Results, compute
from phasegrad_paper.studies.images.tables import images_tables, with_tables, write_page
from phasegrad_paper.studies.images.work import gradient_cosines, run

__all__ = [
    "EXPERIMENTS",
    "STUDY",
    "Experiment",
    "Results",
    "chosen",
    "compute",
    "gradient_cosines",
    "images_tables",
    "judged",
    "run",
    "study",
    "with_tables",
    "write_page",
]
