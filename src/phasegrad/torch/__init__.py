"""A layer that settles, for PyTorch. Needs PyTorch: ``pip install '.[torch]'`` in a clone."""

from phasegrad._validation import how_to_install

try:
    from phasegrad.torch._module import Info as Info, PhaseNetwork
    from phasegrad.torch._operators import SettlingWarning
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(f"phasegrad.torch needs PyTorch, which is not installed. {how_to_install('torch')}") from None

__all__ = ["PhaseNetwork", "SettlingWarning"]
