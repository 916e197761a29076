"""The elimination program of a topology: which numbers the kernel combines, worked out once.

The kernel factors the reduced Laplacian of a small sparse network millions of times. Its pattern never changes, so the
order of elimination, the entries that fill in and every multiply-subtract are found here beforehand, and the kernel
only walks through tables of row numbers. Outputs are eliminated last; before them the node with the fewest neighbours
left goes first, which keeps the fill small.

A node moves or is held. Held are the reference, at phase zero, or the clamped inputs, at the phases of the sample. A
bias field h sin(psi - theta) on a node that moves is one more held neighbour, at phase psi and coupled with strength h:
"nodes" N, N + 1, ... below are such fields and "bonds" E, E + 1, ... their strengths. Parameters are numbered through:
N frequencies, the strengths of all bonds, the phases of the fields.

A program is one array of whole numbers: a header, whose places have the names below, then the tables it points to.
Numba counts references to every array that a compiled function names; one array is counted once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from phasegrad._validation import IntArray
from phasegrad.graphs import Graph

# Places in the header. How many there are:
NODES, MOVING, HELD, FIELDS, EDGES, BONDS, PARAMETERS, INPUTS, OUTPUTS, SLOTS, ROWS = range(11)
# 1 where the reference is pinned, and where the inputs are clamped phases:
PINNED, CLAMPED = 11, 12
# The first row of each kind of number in a group's memory, see `_sections`:
OMEGA, STRENGTH, FIELD_PHASE, RATE, SLOPE = range(13, 18)
PHASES, NUDGED, OPPOSED, DRIVE, PREVIOUS, TARGET = range(18, 24)
ANGLES, STEP, DIAGONAL, ENTRIES, FREE_FACTOR, NUDGED_FACTOR, SPARE_FACTOR = range(24, 31)
TRIAL, DIRECTION, FORCE, STAND_IN, ZERO, KEPT = range(31, 37)
# The first entry of each table, see `elimination_program`:
ORDER, OWN_ANGLE, LINKS, BEFORE, COLUMNS, AFTER = range(37, 43)
HELD_NODES, INPUT_NODES, OUTPUT_NODES, OUTPUT_PLACES, BOND_ENDS = range(43, 48)
HEADER = 48

# Ends of lists in a table; LLVM would unroll loops of known length, which are too short for that.
END, END_OF_COLUMN = -1, -2


def elimination_program(graph: Graph, fields: Sequence[int] = ()) -> IntArray:
    """Return the program of a topology with bias fields on the nodes ``fields``; parameters do not matter.

    The tables, place q being the q-th node in the order of elimination and a slot a stored entry below the diagonal,
    numbered column by column:

    - ORDER: the nodes that move; OWN_ANGLE: the row of each one's sine, the cosine being in the row after it
    - LINKS: for every place the rows of strength and sine of each bond, END
    - BEFORE: for every row of L its slots and their columns, END
    - COLUMNS: for every column and each slot of it the rows of strength and sine of the bond (END if there is none:
      the entry is filled in), pairs of slots whose product is subtracted, the first as it is and the second as in L,
      END; after the last slot END_OF_COLUMN
    - AFTER: for every column, the last first, its slots and their rows, END
    - HELD_NODES, INPUT_NODES, OUTPUT_NODES; OUTPUT_PLACES: places of the outputs; BOND_ENDS: both nodes of every bond
    """
    held = set(np.asarray(graph.held).tolist())
    moving = set(range(graph.size)) - held
    bonds = np.asarray(graph.edges).tolist() + [[node, graph.size + k] for k, node in enumerate(fields)]
    inner = {(i, j): bond for bond, (i, j) in enumerate(bonds) if i in moving and j in moving}
    order = _elimination_order(moving, list(inner), graph.outputs)
    place = {node: q for q, node in enumerate(order)}
    bond_at = {tuple(sorted((place[i], place[j]))): bond for (i, j), bond in inner.items()}
    columns = _filled_columns(len(order), list(bond_at))
    slot = {entry: number for number, entry in enumerate((row, q) for q, rows in enumerate(columns) for row in rows)}

    header = np.zeros(HEADER, dtype=np.int64)
    header[[NODES, MOVING, HELD, FIELDS]] = graph.size, len(order), len(held), len(fields)
    header[[EDGES, BONDS, SLOTS]] = len(graph.edges), len(bonds), len(slot)
    header[[INPUTS, OUTPUTS]] = len(graph.inputs), len(graph.outputs)
    header[PARAMETERS] = graph.size + len(bonds) + len(fields)
    header[[PINNED, CLAMPED]] = graph.pinned, bool(held) and not graph.pinned
    _sections(header)
    strength, angles = int(header[STRENGTH]), int(header[ANGLES])

    links: list[list[int]] = [[] for _ in order]
    for bond, (i, j) in enumerate(bonds):
        for node, other in ((i, j), (j, i)):
            if node in place:
                links[place[node]] += [strength + bond, angles + 2 * other]
    before = [[n for q in range(row) if (row, q) in slot for n in (slot[row, q], q)] for row in range(len(order))]
    after = [[n for row in rows for n in (slot[row, q], row)] for q, rows in enumerate(columns)]
    entries = {
        entry: [strength + bond_at[entry[::-1]] if entry[::-1] in bond_at else END, angles + 2 * order[entry[0]]]
        for entry in slot
    }
    tables = {
        ORDER: order,
        OWN_ANGLE: [angles + 2 * node for node in order],
        LINKS: _ended(links),
        BEFORE: _ended(before),
        COLUMNS: _column_steps(columns, slot, entries),
        AFTER: _ended(after[::-1]),
        HELD_NODES: sorted(held),
        INPUT_NODES: list(graph.inputs),
        OUTPUT_NODES: list(graph.outputs),
        OUTPUT_PLACES: [place[node] for node in graph.outputs],
        BOND_ENDS: bonds,
    }
    return _joined(header, tables)


def _sections(header: IntArray) -> None:
    """Give every kind of number its rows.

    Parameters, their rates and slopes; phases of the free, the nudged and the oppositely nudged state; frequencies of
    the sample at hand and of the one before; its targets and class; sines and cosines of all nodes; what a Newton step
    needs, and three factors of the Laplacian: reciprocal pivots and the lower triangle; what the guard needs; phase
    zero, and the value of a parameter that is turned.
    """
    nodes, moving, fields, bonds = header[[NODES, MOVING, FIELDS, BONDS]]
    parameters, outputs, slots = header[[PARAMETERS, OUTPUTS, SLOTS]]
    sizes = {
        OMEGA: nodes, STRENGTH: bonds, FIELD_PHASE: fields, RATE: parameters, SLOPE: parameters,
        PHASES: nodes, NUDGED: nodes, OPPOSED: nodes, DRIVE: nodes, PREVIOUS: moving, TARGET: outputs + 1,
        ANGLES: 2 * (nodes + fields), STEP: moving, DIAGONAL: moving, ENTRIES: slots,
        FREE_FACTOR: moving + slots, NUDGED_FACTOR: moving + slots, SPARE_FACTOR: moving + slots,
        TRIAL: nodes, DIRECTION: moving, FORCE: moving, STAND_IN: moving + slots,
        ZERO: nodes, KEPT: 1,
    }  # fmt: skip
    header[list(sizes)] = np.cumsum([0, *sizes.values()])[:-1]
    header[ROWS] = sum(sizes.values())


def _elimination_order(moving: set[int], edges: list[tuple[int, int]], outputs: Sequence[int]) -> list[int]:
    """Return the moving nodes by minimum degree, the outputs after all others."""
    neighbours: dict[int, set[int]] = {node: set() for node in sorted(moving)}
    for i, j in edges:
        neighbours[i].add(j)
        neighbours[j].add(i)
    order: list[int] = []
    while neighbours:
        node = min(neighbours, key=lambda k: (k in outputs, len(neighbours[k]), k))
        around = neighbours.pop(node)
        for other in around:
            neighbours[other] |= around - {other}
            neighbours[other].discard(node)
        order.append(node)
    return order


def _filled_columns(size: int, entries: list[tuple[int, ...]]) -> list[list[int]]:
    """Return the rows of each column below the diagonal once elimination has filled it in."""
    columns: list[set[int]] = [set() for _ in range(size)]
    for q, row in entries:
        columns[q].add(row)
    for q in range(size):
        rows = sorted(columns[q])
        for k, lower in enumerate(rows):
            columns[lower].update(rows[k + 1 :])
    return [sorted(rows) for rows in columns]


def _column_steps(
    columns: list[list[int]], slot: dict[tuple[int, int], int], entries: dict[tuple[int, int], list[int]]
) -> list[int]:
    """Return the table COLUMNS; ``entries`` are the two row numbers with which each slot begins."""
    updates: dict[tuple[int, int], list[int]] = {entry: [] for entry in slot}
    for q, rows in enumerate(columns):
        for k, upper in enumerate(rows):
            for lower in rows[:k]:
                updates[upper, lower] += [slot[upper, q], slot[lower, q]]
    steps: list[int] = []
    for q, rows in enumerate(columns):
        for row in rows:
            steps += [*entries[row, q], *updates[row, q], END]
        steps.append(END_OF_COLUMN)
    return steps


def _ended(lists: list[list[int]]) -> list[int]:
    """Return the lists one after the other, each with its end marked."""
    return [number for each in lists for number in (*each, END)]


def _joined(header: IntArray, tables: Mapping[int, Sequence[Any]]) -> IntArray:
    """Return the header, pointing to the tables, and after it the tables."""
    parts = [header]
    for name, values in tables.items():
        header[name] = sum(part.size for part in parts)
        parts.append(np.array(values, dtype=np.int64).ravel())
    return np.concatenate(parts)
