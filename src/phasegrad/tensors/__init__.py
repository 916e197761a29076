"""Batches of layered phase networks as PyTorch tensors; the one room, beside `torch`, that needs PyTorch."""
