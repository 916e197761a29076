"""A layer that settles, for PyTorch. Needs PyTorch: ``pip install 'phasegrad[torch]'``."""

try:
    from phasegrad.torch._module import Info, PhaseNetwork
    from phasegrad.torch._operators import SettlingWarning
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        "phasegrad.torch needs PyTorch, which is not installed: pip install 'phasegrad[torch]'."
    ) from None

__all__ = ["Info", "PhaseNetwork", "SettlingWarning"]
