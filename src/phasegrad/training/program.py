"""The elimination program of a topology: which numbers the kernel combines, worked out once.

The kernel factors the reduced Laplacian of a small sparse network millions of times. Its pattern never changes, so the
order of elimination, the entries that fill in and every multiply-subtract are found here beforehand, and the kernel
only walks through tables of row numbers. Outputs are eliminated last; before them the node with the fewest neighbours
left goes first, which keeps the fill small.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from phasegrad.network import Network
from phasegrad.validation import IntArray


class Program(NamedTuple):
    """Tables of row numbers; "slot" numbers the stored entries below the diagonal, column by column.

    Attributes
    ----------
    order : nodes that move, in the order of elimination
    position : place of each node in that order, -1 for the reference
    inputs, outputs : nodes
    first, second : ends of every edge
    link_start, link_edge, link_node : entries link_start[i] to link_start[i + 1] are edges and neighbours of node i
    inner_edge, inner_first, inner_second, inner_slot : edges between two moving nodes and the slot of their entry
    fill_slot : slots that no edge writes
    column_start, column_row : for column q, its slots run from column_start[q] to column_start[q + 1], at these rows
    update_start, update_slot, update_left, update_right : for column q, slot -= left * right
    slots : number of slots
    """

    order: IntArray
    position: IntArray
    inputs: IntArray
    outputs: IntArray
    first: IntArray
    second: IntArray
    link_start: IntArray
    link_edge: IntArray
    link_node: IntArray
    inner_edge: IntArray
    inner_first: IntArray
    inner_second: IntArray
    inner_slot: IntArray
    fill_slot: IntArray
    column_start: IntArray
    column_row: IntArray
    update_start: IntArray
    update_slot: IntArray
    update_left: IntArray
    update_right: IntArray
    slots: int


def elimination_program(network: Network) -> Program:
    """Return the program of a pinned network's topology; couplings and frequencies do not matter."""
    order = _elimination_order(network)
    position = np.full(network.size, -1, dtype=np.int64)
    position[order] = np.arange(len(order))
    inner = network.inner_edges
    placed = np.sort(position[network.edges[inner]], axis=1)
    columns = _filled_columns(len(order), placed)
    slot = {(row, q): 0 for q, rows in enumerate(columns) for row in rows}
    slot = {entry: number for number, entry in enumerate(slot)}
    updates: list[list[tuple[int, int, int]]] = []
    for q, rows in enumerate(columns):
        pairs = [(upper, lower) for k, upper in enumerate(rows) for lower in rows[:k]]
        updates.append([(slot[upper, lower], slot[upper, q], slot[lower, q]) for upper, lower in pairs])
    inner_slot = [slot[int(row), int(q)] for q, row in placed]
    links = _links(network)
    flat = np.array([entry for column in updates for entry in column], dtype=np.int64).reshape(-1, 3)
    return Program(
        order=np.array(order, dtype=np.int64),
        position=position,
        inputs=np.array(network.inputs, dtype=np.int64),
        outputs=np.array(network.outputs, dtype=np.int64),
        first=network.edges[:, 0].copy(),
        second=network.edges[:, 1].copy(),
        link_start=_starts([len(of_node) for of_node in links]),
        link_edge=np.array([edge for of_node in links for edge, _ in of_node], dtype=np.int64),
        link_node=np.array([node for of_node in links for _, node in of_node], dtype=np.int64),
        inner_edge=inner.astype(np.int64),
        inner_first=network.edges[inner, 0].copy(),
        inner_second=network.edges[inner, 1].copy(),
        inner_slot=np.array(inner_slot, dtype=np.int64),
        fill_slot=np.array(sorted(set(range(len(slot))) - set(inner_slot)), dtype=np.int64),
        column_start=_starts([len(rows) for rows in columns]),
        column_row=np.array([row for rows in columns for row in rows], dtype=np.int64),
        update_start=_starts([len(column) for column in updates]),
        update_slot=flat[:, 0].copy(),
        update_left=flat[:, 1].copy(),
        update_right=flat[:, 2].copy(),
        slots=len(slot),
    )


def _elimination_order(network: Network) -> list[int]:
    """Return the moving nodes by minimum degree, the outputs after all others."""
    neighbours: dict[int, set[int]] = {int(node): set() for node in network.free}
    for i, j in network.edges[network.inner_edges].tolist():
        neighbours[i].add(j)
        neighbours[j].add(i)
    order: list[int] = []
    while neighbours:
        node = min(neighbours, key=lambda k: (k in network.outputs, len(neighbours[k]), k))
        around = neighbours.pop(node)
        for other in around:
            neighbours[other] |= around - {other}
            neighbours[other].discard(node)
        order.append(node)
    return order


def _filled_columns(size: int, placed: IntArray) -> list[list[int]]:
    """Return the rows of each column below the diagonal once elimination has filled it in."""
    columns: list[set[int]] = [set() for _ in range(size)]
    for q, row in placed.tolist():
        columns[q].add(row)
    for q in range(size):
        rows = sorted(columns[q])
        for k, lower in enumerate(rows):
            columns[lower].update(rows[k + 1 :])
    return [sorted(rows) for rows in columns]


def _links(network: Network) -> list[list[tuple[int, int]]]:
    links: list[list[tuple[int, int]]] = [[] for _ in range(network.size)]
    for edge, (i, j) in enumerate(network.edges.tolist()):
        links[i].append((edge, j))
        links[j].append((edge, i))
    return links


def _starts(counts: list[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
