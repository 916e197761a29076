"""Compiled sweeps of simulated annealing: spins are flipped one after the other by the rule of Metropolis."""

import numpy as np

from phasegrad.kernels._entrance import entrance


@entrance
def sweep(spins, local, rows, temperatures, state):
    """Take one sweep per temperature in place; return the state of the random numbers, a xorshift generator's.

    ``local`` are the local fields h + J s, kept up to date; ``rows`` the couplings as compressed sparse rows.
    """
    indptr, indices, weight = rows
    for temperature in temperatures:
        for i in range(spins.size):
            rise = 2.0 * spins[i] * local[i]
            if rise > 0.0:
                state ^= state << np.uint64(13)
                state ^= state >> np.uint64(7)
                state ^= state << np.uint64(17)
                if np.float64(state >> np.uint64(11)) * 1.1102230246251565e-16 >= np.exp(-rise / temperature):
                    continue
            spins[i] = -spins[i]
            change = 2.0 * spins[i]
            for entry in range(indptr[i], indptr[i + 1]):
                local[indices[entry]] += change * weight[entry]
    return state
