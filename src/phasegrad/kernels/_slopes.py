r"""Gradients in lanes: the slope of the cost by every parameter, from equilibria alone.

The energy's own slopes are dE/domega = -theta, dE/dK = -cos(theta_j - theta_i), dE/dh = -cos(psi - theta) and
dE/dpsi = h sin(psi - theta). The gradient of the cost is the difference of these slopes between the nudged and the free
state over beta (`TWO_PHASE`), or between the states under beta and -beta over 2 beta (`CENTRED`). The exact one is
lambda dF/dp with L lambda = dC/dtheta (`ADJOINT`); central differences of the cost (`FINITE_DIFFERENCE`) are the judge.

Beside the free equilibrium a gradient is made of `states` more. For each the kernel calls `prepare_state`, settles it
and calls `finish_state`; when all are there, `conclude` fills the rows from SLOPE on, in the order of the parameters.
A nudged state starts from the free phases moved by the linear response to the nudge, by the factor at hand.
"""

from __future__ import annotations

from phasegrad.kernels import _program as at
from phasegrad.kernels._elementary import compiled, sine_and_cosine
from phasegrad.kernels._settling import (
    PERIODIC,
    advance,
    backward,
    cost_of,
    factorise,
    forces,
    forward,
    sines,
    turn_fields,
)
from phasegrad.kernels._vector import copies, entry, load, multiply_add, store, where_less

TWO_PHASE, CENTRED, ADJOINT, FINITE_DIFFERENCE = range(4)


@compiled
def states(rule, turned):
    """How many equilibria beside the free one the rule's gradient is made of; for differences, two per parameter."""
    if rule.gradient == FINITE_DIFFERENCE:
        return 2 * turned.size
    return 1 if rule.gradient == TWO_PHASE else 2 if rule.gradient == CENTRED else 0


@compiled
def prepare_state(rows, program, rule, turned, number, wanted):
    """Prepare the equilibrium of this number; return the row where its phases start, its nudge, and who needs it."""
    phases, free = entry(program, at.PHASES), entry(program, at.FREE_FACTOR)
    opposed = rule.gradient == CENTRED and number == 1
    here = entry(program, at.OPPOSED) if opposed else entry(program, at.NUDGED)
    for i in range(entry(program, at.NODES)):
        store(rows, here + i, load(rows, phases + i))
    if rule.gradient == FINITE_DIFFERENCE:
        parameter = entry(turned, number // 2)
        if number == 0:
            for i in range(entry(program, at.NODES)):
                store(rows, entry(program, at.SLOPE) + i, 0.0)
        turn_parameter(rows, program, parameter, (1.0 - 2.0 * (number % 2)) * rule.difference_step)
        # That others learn this parameter must not cost a network a sample. Raw slopes need all.
        if not rule.raw:
            wanted = where_less(0.0, load(rows, entry(program, at.RATE) + parameter), wanted, 0.0)
        return here, 0.0, wanted
    beta = -rule.beta if opposed else rule.beta
    pull_outputs(rows, program, rule.cost, beta)
    forward(rows, program, free)
    backward(rows, program, free)
    advance(rows, program, here, wanted)
    return here, beta, wanted


@compiled
def finish_state(rows, program, rule, turned, number):
    """Take from a settled state what the next one would overwrite: for differences, its cost."""
    if rule.gradient != FINITE_DIFFERENCE:
        return
    parameter = entry(turned, number // 2)
    store(rows, parameter_row(program, parameter), load(rows, entry(program, at.KEPT)))
    turn_fields(rows, program)
    row, sign = entry(program, at.SLOPE) + parameter, 1.0 - 2.0 * (number % 2)
    before = load(rows, row) if sign < 0.0 else copies(rows, 0.0)
    cost = cost_of(rows, program, entry(program, at.NUDGED), rule.cost)
    store(rows, row, multiply_add(cost, sign * 0.5 / rule.difference_step, before))


@compiled
def conclude(rows, program, rule, learned):
    """Fill the slopes, all states being settled."""
    slope, nodes = entry(program, at.SLOPE), entry(program, at.NODES)
    beyond = learned.size > 0 and entry(learned, learned.size - 1) >= nodes
    nudged = entry(program, at.NUDGED)
    if rule.gradient == TWO_PHASE:
        difference_of_states(rows, program, nudged, entry(program, at.PHASES), 1.0 / rule.beta, beyond)
    elif rule.gradient == CENTRED:
        difference_of_states(rows, program, nudged, entry(program, at.OPPOSED), 0.5 / rule.beta, beyond)
    elif rule.gradient == ADJOINT:
        adjoint_slopes(rows, program, rule, beyond)
    if rule.raw and entry(program, at.PINNED) > 0:
        total = copies(rows, 0.0)
        for row in range(slope, slope + nodes):
            total = total + load(rows, row)
        mean = total * (1.0 / nodes)
        for row in range(slope, slope + nodes):
            store(rows, row, load(rows, row) - mean)


@compiled
def parameter_row(program, parameter):
    """Row of a parameter; of a frequency after it was centred."""
    return (entry(program, at.DRIVE) if parameter < entry(program, at.NODES) else entry(program, at.OMEGA)) + parameter


@compiled
def turn_parameter(rows, program, parameter, step):
    """Add a step to a parameter and keep its value."""
    row = parameter_row(program, parameter)
    store(rows, entry(program, at.KEPT), load(rows, row))
    store(rows, row, load(rows, row) + step)
    turn_fields(rows, program)


@compiled
def pull_outputs(rows, program, kind, strength):
    """Set STEP to minus the slope of the cost at the free phases, times a strength."""
    step, phases, target = entry(program, at.STEP), entry(program, at.PHASES), entry(program, at.TARGET)
    nodes, places = entry(program, at.OUTPUT_NODES), entry(program, at.OUTPUT_PLACES)
    for q in range(entry(program, at.MOVING)):
        store(rows, step + q, 0.0)
    for m in range(entry(program, at.OUTPUTS)):
        pull = load(rows, target + m) - load(rows, phases + entry(program, nodes + m))
        if kind == PERIODIC:
            pull, _ = sine_and_cosine(pull)
        store(rows, step + entry(program, places + m), strength * pull)


@compiled
def difference_of_states(rows, program, pushed, base, scale, beyond):
    """Energy's slopes at the phases ``pushed`` less those at ``base``, times a scale; ``beyond`` frequencies too."""
    slope, nodes = entry(program, at.SLOPE), entry(program, at.NODES)
    for i in range(nodes):
        store(rows, slope + i, (load(rows, base + i) - load(rows, pushed + i)) * scale)
    if beyond:
        for k in range(2):
            sines(rows, program, pushed if k == 0 else base)
            local_slopes(rows, program, k == 1)
        for row in range(slope + nodes, slope + entry(program, at.PARAMETERS)):
            store(rows, row, load(rows, row) * scale)


@compiled
def local_slopes(rows, program, second):
    """Store minus the energy's slope by every bond and field at the angles at hand, the second time less the first."""
    angles, ends, strength = entry(program, at.ANGLES), entry(program, at.BOND_ENDS), entry(program, at.STRENGTH)
    slope, edges = entry(program, at.SLOPE) + entry(program, at.NODES), entry(program, at.EDGES)
    turned = slope + entry(program, at.BONDS)
    for bond in range(entry(program, at.BONDS)):
        a = angles + 2 * entry(program, ends + 2 * bond)
        b = angles + 2 * entry(program, ends + 2 * bond + 1)
        cosine = multiply_add(load(rows, b + 1), load(rows, a + 1), load(rows, b) * load(rows, a))
        store(rows, slope + bond, cosine - load(rows, slope + bond) if second else cosine)
        if bond >= edges:
            sine = multiply_add(load(rows, b), load(rows, a + 1), -(load(rows, b + 1) * load(rows, a)))
            torque, row = -(load(rows, strength + bond) * sine), turned + bond - edges
            store(rows, row, torque - load(rows, row) if second else torque)


@compiled
def adjoint_slopes(rows, program, rule, beyond):
    """Response lambda to the slope of the cost per node, lambda dF/dp for the other parameters."""
    phases, slope, factor = entry(program, at.PHASES), entry(program, at.SLOPE), entry(program, at.NUDGED_FACTOR)
    nodes, edges, step = entry(program, at.NODES), entry(program, at.EDGES), entry(program, at.STEP)
    order, angles, ends = entry(program, at.ORDER), entry(program, at.ANGLES), entry(program, at.BOND_ENDS)
    sines(rows, program, phases)
    forces(rows, program)
    pull_outputs(rows, program, rule.cost, -1.0)
    factorise(rows, program, factor, 0.0)
    backward(rows, program, factor)
    for i in range(nodes):
        store(rows, slope + i, 0.0)
    for q in range(entry(program, at.MOVING)):
        store(rows, slope + entry(program, order + q), load(rows, step + q))
    if not beyond:
        return
    for bond in range(entry(program, at.BONDS)):
        i, j = entry(program, ends + 2 * bond), entry(program, ends + 2 * bond + 1)
        a, b = angles + 2 * i, angles + 2 * j
        sine = multiply_add(load(rows, b), load(rows, a + 1), -(load(rows, b + 1) * load(rows, a)))
        if bond < edges:
            store(rows, slope + nodes + bond, (load(rows, slope + i) - load(rows, slope + j)) * sine)
        else:
            cosine = multiply_add(load(rows, b + 1), load(rows, a + 1), load(rows, b) * load(rows, a))
            torque = load(rows, entry(program, at.STRENGTH) + bond) * cosine
            store(rows, slope + nodes + bond, load(rows, slope + i) * sine)
            store(rows, slope + nodes + entry(program, at.BONDS) + bond - edges, load(rows, slope + i) * torque)
