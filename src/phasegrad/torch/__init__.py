"""A layer that settles, for PyTorch. Needs PyTorch: ``pip install phasegrad[torch]``."""
