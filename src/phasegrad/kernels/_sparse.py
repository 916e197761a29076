"""Compiled loops of conjugate gradients over compressed sparse rows, each vector touched once per loop.

Several right-hand sides are not walked together: the gathers are bound by memory, and eight vectors side by side were
measured to take eight times as long as one.
"""

from phasegrad.kernels._entrance import entrance


@entrance
def apply(indptr, indices, data, direction, image):
    """Set image = A direction and return direction . image."""
    product = 0.0
    for i in range(indptr.size - 1):
        total = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            total += data[entry] * direction[indices[entry]]
        image[i] = total
        product += total * direction[i]
    return product


@entrance
def advance(length, solution, left, direction, image):
    """Take a step along the direction and return |left|^2 after it."""
    square = 0.0
    for i in range(solution.size):
        solution[i] += length * direction[i]
        left[i] -= length * image[i]
        square += left[i] * left[i]
    return square


@entrance
def precondition(inverse, left, image):
    """Set image = D^-1 left and return left . image."""
    product = 0.0
    for i in range(left.size):
        image[i] = inverse[i] * left[i]
        product += image[i] * left[i]
    return product


@entrance
def turn(share, direction, conditioned):
    """Set direction = conditioned + share * direction."""
    for i in range(direction.size):
        direction[i] = conditioned[i] + share * direction[i]
