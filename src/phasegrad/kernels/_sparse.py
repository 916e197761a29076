"""Compiled loops of conjugate gradients over compressed sparse rows, each vector touched once per loop.

Several right-hand sides are not walked together: the gathers are bound by memory, and eight vectors side by side were
measured to take eight times as long as one.
"""

import numpy as np

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


@entrance
def lower_solve(indptr, indices, data, inverse, right, solution):
    """Solve (D + L) x = b by forward substitution, L the part left of the diagonal; rows are sorted."""
    for i in range(indptr.size - 1):
        total = right[i]
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            if j >= i:
                break
            total -= data[entry] * solution[j]
        solution[i] = total * inverse[i]


@entrance
def upper_solve(indptr, indices, data, inverse, right, solution):
    """Solve (D + L)^T x = b by backward substitution in a symmetric matrix."""
    size = indptr.size - 1
    for k in range(size):
        i = size - 1 - k
        total, last = right[i], indptr[i + 1] - 1
        for back in range(last + 1 - indptr[i]):
            j = indices[last - back]
            if j <= i:
                break
            total -= data[last - back] * solution[j]
        solution[i] = total * inverse[i]


@entrance
def apply_between(indptr, indices, data, diagonal, inverse, direction, turned, image):
    """Apply (D + L)^-1 A (D + L)^-T by two half sweeps and return direction . image.

    ``turned`` becomes (D + L)^-T direction; since A = (D + L) + (D + L)^T - D, the rest of the image is
    (D + L)^-1 (direction - D turned). ``image`` holds that rest: the whole image is turned + image.
    """
    upper_solve(indptr, indices, data, inverse, direction, turned)
    product = 0.0
    for i in range(indptr.size - 1):
        total = direction[i] - diagonal[i] * turned[i]
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            if j >= i:
                break
            total -= data[entry] * image[j]
        image[i] = total * inverse[i]
        product += direction[i] * (turned[i] + image[i])
    return product


@entrance
def advance_between(length, solution, left, turned, image, diagonal):
    """Take a step of the transformed system; return left . D left and |D left|^2 after it."""
    product, square = 0.0, 0.0
    for i in range(solution.size):
        solution[i] += length * turned[i]
        left[i] -= length * (turned[i] + image[i])
        scaled = diagonal[i] * left[i]
        product += scaled * left[i]
        square += scaled * scaled
    return product, square


@entrance
def turn_between(share, direction, left, diagonal):
    """Set direction = D left + share * direction."""
    for i in range(direction.size):
        direction[i] = diagonal[i] * left[i] + share * direction[i]


@entrance
def tree_depth(order, predecessors):
    """Return the largest number of steps from the root in a tree given in the order it was searched."""
    depth = np.zeros(predecessors.size, dtype=np.int32)
    for place in range(1, order.size):
        node = order[place]
        depth[node] = depth[predecessors[node]] + 1
    return depth[order[order.size - 1]]
