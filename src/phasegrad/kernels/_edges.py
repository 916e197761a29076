"""Compiled loops over a symmetric matrix that is stored as the edges of its graph.

Edge e joins node ``first[e]`` to the later node ``second[e]``, and edges are sorted by their first ends. Each edge is
stored once for both of its ends, 12 bytes in single precision, as the network lists them: no pattern of rows has to be
laid out. A loop over edges has no inner loop over the neighbours of a node, whose changing length a processor guesses
wrong; without it a sweep was measured to be 1.4 to 2.1 times as fast on random graphs, and as fast on a grid.

Going through the edges in their order completes every node before it is used as a first end; in reverse order, every
node before it is used as a second end. So each triangular solve is one loop.
"""

from phasegrad.kernels._entrance import entrance


@entrance
def balance(first, second, strength, cos, sin, force, weights, diagonal):
    """Add the pulls K sin(theta_j - theta_i) to ``force``; set the weights K cos(theta_j - theta_i), add their sums."""
    for e in range(first.size):
        i, j = first[e], second[e]
        pull = strength[e] * (sin[j] * cos[i] - cos[j] * sin[i])
        weight = strength[e] * (cos[j] * cos[i] + sin[j] * sin[i])
        weights[e] = weight
        force[i] += pull
        force[j] -= pull
        diagonal[i] += weight
        diagonal[j] += weight


@entrance
def scale(first, second, weights, factor, scaled):
    """Set scaled = factor_i weights factor_j, in the precision of ``scaled``."""
    for e in range(first.size):
        scaled[e] = factor[first[e]] * weights[e] * factor[second[e]]


@entrance
def apply(first, second, weights, diagonal, vector, image):
    """Set image = (D - W - W^T) vector, W the weights above the diagonal."""
    for i in range(vector.size):
        image[i] = diagonal[i] * vector[i]
    for e in range(first.size):
        i, j = first[e], second[e]
        image[i] -= weights[e] * vector[j]
        image[j] -= weights[e] * vector[i]


@entrance
def forward(first, second, weights, vector):
    """Replace the vector by (1 - W^T)^-1 vector."""
    for e in range(first.size):
        vector[second[e]] += weights[e] * vector[first[e]]


@entrance
def backward(first, second, weights, vector):
    """Replace the vector by (1 - W)^-1 vector."""
    last = first.size - 1
    for k in range(first.size):
        e = last - k
        vector[first[e]] += weights[e] * vector[second[e]]


@entrance
def sweep(first, second, weights, share, left, direction, turned, image):
    """Turn the direction to left + share * direction, apply the transformed matrix to it, return their product.

    The matrix is (1 - W^T)^-1 (1 - W - W^T) (1 - W)^-1: with ``turned`` = (1 - W)^-1 direction the image is ``turned``
    plus (1 - W^T)^-1 (direction - turned), and ``image`` holds the second part alone.
    """
    for i in range(left.size):
        direction[i] = left[i] + share * direction[i]
        turned[i] = direction[i]
    last = first.size - 1
    for k in range(first.size):
        e = last - k
        turned[first[e]] += weights[e] * turned[second[e]]
    for i in range(left.size):
        image[i] = direction[i] - turned[i]
    for e in range(first.size):
        image[second[e]] += weights[e] * image[first[e]]
    product = 0.0
    for i in range(left.size):
        product += direction[i] * (turned[i] + image[i])
    return product


@entrance
def advance(length, solution, left, turned, image, scale):
    """Take a step; return |left|^2 after it, and |scale left|^2 and |scale solution|^2."""
    square, remaining, reached = 0.0, 0.0, 0.0
    for i in range(solution.size):
        solution[i] += length * turned[i]
        left[i] -= length * (turned[i] + image[i])
        square += left[i] * left[i]
        remaining += (scale[i] * left[i]) ** 2
        reached += (scale[i] * solution[i]) ** 2
    return square, remaining, reached


@entrance
def widest(first, second, vector):
    """Return the largest difference of a vector across an edge; NaN where one is not a number."""
    largest = 0.0
    for e in range(first.size):
        apart = abs(vector[second[e]] - vector[first[e]])
        if largest == largest and not apart <= largest:
            largest = apart
    return largest


@entrance
def is_deep(first, second, depth, most):
    """Return whether a node that is reached from where depths are zero is more than ``most`` steps away from there.

    Depths of all other nodes are ``depth.size`` and fall to what they are, forward and backward through the edges in
    turn: each time at least one more step is final, on an ordered mesh nearly all are. They are never too small.
    """
    far, last = depth.size, first.size - 1
    for turn in range(most + 1):
        changed = False
        for k in range(first.size):
            e = k if turn % 2 == 0 else last - k
            i, j = first[e], second[e]
            if depth[j] > depth[i] + 1:
                depth[j] = depth[i] + 1
                changed = True
            elif depth[i] > depth[j] + 1:
                depth[i] = depth[j] + 1
                changed = True
        deepest, reached = 0, 0
        for i in range(depth.size):
            if depth[i] < far:
                deepest = max(deepest, depth[i])
                reached += 1
        if not changed or (reached == depth.size and deepest <= most):
            break
    return deepest > most
