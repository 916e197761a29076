/**
 * The physics of one sample: force, energy and Laplacian, equilibria, and gradients.
 *
 *     d theta_i / dt = omega_i + sum_j K_ij H(theta_j - theta_i) + h_i H(psi_i - theta_i) + s_i sin 2(chi_i - theta_i)
 *                      - beta dC/dtheta_i
 *
 * with an odd interaction H = sum_k a_k sin(k phi). The force is minus the slope of an energy, and the Laplacian is
 * minus its Jacobian over the oscillators that move. Where no field and no clamped input fixes the gauge, frequencies
 * count from their mean and the reference is held at phase zero.
 */

const EPS = Number.EPSILON;
/** Weights of a positive definite stand-in for the Laplacian are at least this share of the most they can be. */
const FLOOR = 0.1;
const HALVINGS = 40;
const MOST_STEPS = 200;
/** The largest turn of an oscillator in one step of Newton's method, in radians. */
const LONGEST = 1.5;

/** The odd function of given sine coefficients: its value, slope and potential, and bounds on the first two. */
export function interaction(coefficients) {
  const a = Array.from(coefficients);
  if (a.length === 1 && a[0] === 1) {
    return { value: Math.sin, slope: Math.cos, potential: (phi) => -Math.cos(phi), bound: 1, steepness: 1 };
  }
  const sum = (term) => (phi) => a.reduce((total, each, k) => total + term(each, k + 1, phi), 0);
  return {
    value: sum((each, k, phi) => each * Math.sin(k * phi)),
    slope: sum((each, k, phi) => k * each * Math.cos(k * phi)),
    potential: sum((each, k, phi) => (-each / k) * Math.cos(k * phi)),
    bound: a.reduce((total, each) => total + Math.abs(each), 0),
    steepness: a.reduce((total, each, k) => total + (k + 1) * Math.abs(each), 0),
  };
}

/** A network driven by one sample. `parameters` may be changed in place; `drive` must be called after that. */
export class System {
  constructor(network, inputs = []) {
    this.network = network;
    this.size = network.size;
    this.first = Int32Array.from(network.edges, (pair) => pair[0]);
    this.second = Int32Array.from(network.edges, (pair) => pair[1]);
    this.interaction = interaction(network.interaction);
    this.parameters = {};
    for (const [name, values] of Object.entries(network.parameters)) this.parameters[name] = Float64Array.from(values);
    this.fields = [];
    if (this.parameters.field_strength) this.fields.push(["field_strength", "field_phase", this.interaction]);
    if (this.parameters.second_strength) this.fields.push(["second_strength", "second_phase", interaction([0, 1])]);
    this.clamped = network.input_mode === "phase" && network.inputs.length > 0;
    this.pinned = !this.clamped && this.fields.length === 0;
    this.#placeOscillators();
    this.omega = new Float64Array(this.size);
    this.drive(inputs);
  }

  #placeOscillators() {
    this.held = new Uint8Array(this.size);
    this.heldPhases = new Float64Array(this.size);
    if (this.clamped) for (const node of this.network.inputs) this.held[node] = 1;
    if (this.pinned) this.held[this.network.reference] = 1;
    this.moving = Int32Array.from([...this.held.keys()].filter((node) => !this.held[node]));
    this.place = new Int32Array(this.size).fill(-1);
    this.moving.forEach((node, place) => (this.place[node] = place));
    this.matrix = new Float64Array(this.moving.length ** 2);
  }

  /** Let data drive the inputs: their frequencies, or the phases at which they are clamped. */
  drive(inputs) {
    const { network, omega } = this;
    omega.set(this.parameters.omega);
    network.inputs.forEach((node, k) => {
      const scaled = network.input_scale * inputs[k];
      if (this.clamped) this.heldPhases[node] = network.input_phase + scaled;
      else omega[node] = scaled;
    });
    if (this.pinned) {
      const mean = omega.reduce((total, each) => total + each, 0) / this.size;
      for (let i = 0; i < this.size; i++) omega[i] -= mean;
    }
    this.scale = this.capacity().reduce((most, each, i) => Math.max(most, each, Math.abs(omega[i])), 0);
  }

  /** Phases turned into this system's gauge: held oscillators where they are held. */
  placed(phases) {
    const shift = this.pinned ? phases[this.network.reference] : 0;
    const turned = new Float64Array(this.size);
    for (let i = 0; i < this.size; i++) turned[i] = this.held[i] ? this.heldPhases[i] : phases[i] - shift;
    return turned;
  }

  /** The force on every oscillator; on a held one it is what the holder must balance. */
  force(phases, pull = null, out = new Float64Array(this.size)) {
    const { first, second, omega } = this;
    const { coupling } = this.parameters;
    const { value } = this.interaction;
    out.set(omega);
    for (let e = 0; e < first.length; e++) {
      const pulled = coupling[e] * value(phases[second[e]] - phases[first[e]]);
      out[first[e]] += pulled;
      out[second[e]] -= pulled;
    }
    for (const [strength, phase, odd] of this.#fieldValues()) {
      for (let i = 0; i < this.size; i++) out[i] += strength[i] * odd.value(phase[i] - phases[i]);
    }
    if (pull) {
      const force = pull.cost.force(outputsOf(phases, pull.nodes));
      pull.nodes.forEach((node, k) => (out[node] += pull.beta * force[k]));
    }
    return out;
  }

  energy(phases, pull = null) {
    const { first, second, omega } = this;
    const { coupling } = this.parameters;
    let total = 0;
    for (let i = 0; i < this.size; i++) total -= omega[i] * phases[i];
    for (let e = 0; e < first.length; e++) {
      total += coupling[e] * this.interaction.potential(phases[second[e]] - phases[first[e]]);
    }
    for (const [strength, phase, odd] of this.#fieldValues()) {
      for (let i = 0; i < this.size; i++) total += strength[i] * odd.potential(phase[i] - phases[i]);
    }
    return pull ? total + pull.beta * pull.cost.cost(outputsOf(phases, pull.nodes)) : total;
  }

  /**
   * The reduced Laplacian over the oscillators that move, row by row. With a floor every weight is replaced by its
   * absolute value, at least that share of the most it can be: positive definite, so that its solve leads downhill.
   */
  laplacian(phases, pull = null, floor = null) {
    const { matrix, first, second, place } = this;
    const { coupling } = this.parameters;
    const width = this.moving.length;
    const lifted = (weight, most) => (floor === null ? weight : Math.max(Math.abs(weight), floor * Math.abs(most)));
    matrix.fill(0);
    for (let e = 0; e < first.length; e++) {
      const slope = coupling[e] * this.interaction.slope(phases[second[e]] - phases[first[e]]);
      const weight = lifted(slope, coupling[e] * this.interaction.steepness);
      const i = place[first[e]];
      const j = place[second[e]];
      if (i >= 0) matrix[i * width + i] += weight;
      if (j >= 0) matrix[j * width + j] += weight;
      if (i >= 0 && j >= 0) {
        matrix[i * width + j] -= weight;
        matrix[j * width + i] -= weight;
      }
    }
    for (const [strength, phase, odd] of this.#fieldValues()) {
      this.moving.forEach((node, i) => {
        const slope = strength[node] * odd.slope(phase[node] - phases[node]);
        matrix[i * width + i] += lifted(slope, strength[node] * odd.steepness);
      });
    }
    if (pull) this.#addCurvature(phases, pull, floor);
    return matrix;
  }

  #addCurvature(phases, pull, floor) {
    const { matrix, place } = this;
    const width = this.moving.length;
    const count = pull.nodes.length;
    const curvature = pull.cost.hessian(outputsOf(phases, pull.nodes));
    for (let k = 0; k < count; k++) {
      for (let l = 0; l < count; l++) {
        const value = pull.beta * curvature[k * count + l];
        const [row, column] = [place[pull.nodes[k]], place[pull.nodes[floor === null ? l : k]]];
        matrix[row * width + column] += floor === null ? value : Math.abs(value);
      }
    }
  }

  /** The most that couplings and fields can pull each oscillator. */
  capacity() {
    const reach = new Float64Array(this.size);
    this.parameters.coupling.forEach((each, e) => {
      reach[this.first[e]] += Math.abs(each) * this.interaction.bound;
      reach[this.second[e]] += Math.abs(each) * this.interaction.bound;
    });
    for (const [strength, , odd] of this.#fieldValues()) {
      strength.forEach((h, i) => (reach[i] += Math.abs(h) * odd.bound));
    }
    return reach;
  }

  /** The oscillator whose frequency exceeds all that can hold it by most, so that nothing settles; -1 if none does. */
  blocking() {
    const reach = this.capacity();
    const judged = (i) => !this.held[i] || (this.pinned && i === this.network.reference);
    const excess = this.omega.map((each, i) => (judged(i) ? Math.abs(each) - reach[i] * (1 + 1e-12) - 1e-12 : -1));
    const most = excess.reduce((best, each, i) => (each > excess[best] ? i : best), 0);
    return excess[most] > 0 ? most : -1;
  }

  /** dE/dp of every parameter: what equilibrium propagation reads. */
  energySlopes(phases) {
    const slopes = { omega: phases.map((each) => -each) };
    slopes.coupling = this.#perEdge((angle) => this.interaction.potential(angle), phases);
    this.#perField((strength, angle, odd) => [odd.potential(angle), strength * odd.value(angle)], phases, slopes);
    return slopes;
  }

  /** response . dF/dp of every parameter: the last step of the adjoint gradient. */
  forceSlopes(phases, response) {
    const { first, second } = this;
    const slopes = { omega: Float64Array.from(response) };
    slopes.coupling = this.#perEdge(
      (angle, e) => (response[first[e]] - response[second[e]]) * this.interaction.value(angle),
      phases,
    );
    const ofField = (strength, angle, odd, i) =>
      [response[i] * odd.value(angle), response[i] * strength * odd.slope(angle)];
    this.#perField(ofField, phases, slopes);
    return slopes;
  }

  #perEdge(slope, phases) {
    const slopes = new Float64Array(this.first.length);
    for (let e = 0; e < slopes.length; e++) slopes[e] = slope(phases[this.second[e]] - phases[this.first[e]], e);
    return slopes;
  }

  #perField(slope, phases, slopes) {
    for (const [strengthName, phaseName, odd] of this.fields) {
      const [strength, phase] = [this.parameters[strengthName], this.parameters[phaseName]];
      slopes[strengthName] = new Float64Array(this.size);
      slopes[phaseName] = new Float64Array(this.size);
      for (let i = 0; i < this.size; i++) {
        [slopes[strengthName][i], slopes[phaseName][i]] = slope(strength[i], phase[i] - phases[i], odd, i);
      }
    }
  }

  #fieldValues() {
    return this.fields.map(([strength, phase, odd]) => [this.parameters[strength], this.parameters[phase], odd]);
  }
}

/** The phases of some nodes. */
export function outputsOf(phases, nodes) {
  return nodes.map((node) => phases[node]);
}

/** The Cholesky factor of a symmetric matrix, lower triangle, in its place; null if it is not positive definite. */
export function cholesky(matrix, width = Math.round(Math.sqrt(matrix.length))) {
  for (let j = 0; j < width; j++) {
    const row = j * width;
    let pivot = matrix[row + j];
    for (let k = 0; k < j; k++) pivot -= matrix[row + k] * matrix[row + k];
    if (!(pivot > 0)) return null;
    const root = Math.sqrt(pivot);
    matrix[row + j] = root;
    for (let i = j + 1; i < width; i++) {
      const other = i * width;
      let sum = matrix[other + j];
      for (let k = 0; k < j; k++) sum -= matrix[other + k] * matrix[row + k];
      matrix[other + j] = sum / root;
    }
  }
  return matrix;
}

/** The solution of a linear system from the Cholesky factor of its matrix. */
export function solve(factor, right) {
  const x = right.slice();
  const width = x.length;
  for (let i = 0; i < width; i++) {
    for (let k = 0; k < i; k++) x[i] -= factor[i * width + k] * x[k];
    x[i] /= factor[i * width + i];
  }
  for (let i = width - 1; i >= 0; i--) {
    for (let k = i + 1; k < width; k++) x[i] -= factor[k * width + i] * x[k];
    x[i] /= factor[i * width + i];
  }
  return x;
}

/**
 * The equilibrium reached from given phases by Newton's method: {phases, residual, converged, stable, steps}.
 *
 * A step that halves the force is taken, any other must lower the energy. Where the Laplacian is not positive definite
 * the step descends in the metric of a stand-in that is; with `follow`, for nudged states, which belong to the branch
 * they start on, it stops there instead.
 */
export function settle(system, start, pull = null, { follow = false } = {}) {
  const phases = system.placed(start);
  const force = new Float64Array(system.size);
  const { goal, enough } = tolerances(system.scale);
  let residual = measured(system, phases, pull, force);
  let steps = 0;
  while (residual > goal && steps < MOST_STEPS) {
    let factor = cholesky(system.laplacian(phases, pull));
    const definite = factor !== null;
    if (!definite && follow) break;
    factor ??= cholesky(system.laplacian(phases, pull, FLOOR));
    if (factor === null) break;
    const next = stepped(system, phases, pull, force, factor, residual, definite);
    if (next === null) break;
    residual = next;
    steps++;
  }
  const converged = residual <= enough;
  return { phases, residual, converged, stable: converged && isStable(system, phases, pull), steps };
}

/** The residual aimed at, and the one that counts as converged. */
function tolerances(scale) {
  const rounding = 16 * EPS * scale;
  const unit = Math.min(1, scale);
  return { goal: Math.max(1e-14 * unit, rounding), enough: Math.max(1e-11 * unit, 64 * rounding) };
}

function measured(system, phases, pull, force) {
  system.force(phases, pull, force);
  let most = 0;
  for (const node of system.moving) most = Math.max(most, Math.abs(force[node]));
  return most;
}

/** Take one step of Newton's method in place and return the residual after it; null if none makes progress. */
function stepped(system, phases, pull, force, factor, residual, definite) {
  const { moving } = system;
  const right = new Float64Array(moving.length);
  for (let k = 0; k < moving.length; k++) right[k] = force[moving[k]];
  const direction = solve(factor, right);
  const before = phases.slice();
  let [longest, slope, energy] = [0, 0, null];
  for (let k = 0; k < moving.length; k++) {
    longest = Math.max(longest, Math.abs(direction[k]));
    slope += direction[k] * right[k];
  }
  let length = Math.min(1, LONGEST / longest);
  for (let halving = 0; halving < HALVINGS; halving++, length /= 2) {
    for (let k = 0; k < moving.length; k++) phases[moving[k]] = before[moving[k]] + length * direction[k];
    const next = measured(system, phases, pull, force);
    if (definite && next < 0.5 * residual) return next;
    energy ??= system.energy(before, pull);
    if (system.energy(phases, pull) < energy - 1e-4 * length * slope) return next;
  }
  phases.set(before);
  measured(system, phases, pull, force);
  return null;
}

/** Whether the Laplacian, lowered by its rounding error, is positive definite. */
export function isStable(system, phases, pull = null) {
  const matrix = system.laplacian(phases, pull);
  const width = system.moving.length;
  let most = 0;
  for (let i = 0; i < width; i++) most = Math.max(most, Math.abs(matrix[i * width + i]));
  for (let i = 0; i < width; i++) matrix[i * width + i] -= 8 * width * EPS * most;
  return cholesky(matrix, width) !== null;
}

/** The smallest eigenvalue of the Laplacian of a stable state, by inverse iteration: the rate of the slowest mode. */
export function slowestRate(system, phases, pull = null) {
  const factor = cholesky(system.laplacian(phases, pull));
  if (factor === null) return 0;
  let vector = Float64Array.from(system.moving, (_, k) => 1 + 0.3 * Math.sin(k + 1));
  let rate = 0;
  for (let turn = 0; turn < 20; turn++) {
    const next = solve(factor, vector);
    const size = Math.hypot(...next);
    rate = Math.hypot(...vector) / size;
    vector = next.map((each) => each / size);
  }
  return rate;
}

/** The gradient flow d theta / dt = F by the classical Runge-Kutta method: how a network settles in time. */
export class Flow {
  constructor(system, phases, pull = null) {
    Object.assign(this, { system, pull, phases: system.placed(phases) });
    this.slopes = [0, 1, 2, 3].map(() => new Float64Array(system.size));
    this.trial = new Float64Array(system.size);
    this.longest = 1.2 / stiffest(system, pull, this.phases);
  }

  /** Let time pass, in steps that are short enough for the stiffest oscillator; `most` bounds their number. */
  advance(time, most = Infinity) {
    const count = Math.min(most, Math.max(1, Math.ceil(time / this.longest)));
    for (let step = 0; step < count; step++) this.#step(Math.min(time / count, this.longest));
  }

  #step(time) {
    const { system, pull, phases, slopes, trial } = this;
    const [k1, k2, k3, k4] = slopes;
    const along = (slope, share) => {
      trial.set(phases);
      for (const node of system.moving) trial[node] += share * time * slope[node];
      return trial;
    };
    system.force(phases, pull, k1);
    system.force(along(k1, 0.5), pull, k2);
    system.force(along(k2, 0.5), pull, k3);
    system.force(along(k3, 1), pull, k4);
    for (const node of system.moving) phases[node] += (time / 6) * (k1[node] + 2 * k2[node] + 2 * k3[node] + k4[node]);
  }
}

/** A number of steps that is at most the one given, and fewer on networks whose every step takes long. */
export const stepsWithin = (network, most) => Math.max(20, Math.min(most, Math.floor(4e5 / network.edges.length)));

/** The largest diagonal entry that the Laplacian can have. */
function stiffest(system, pull, phases) {
  const most = new Float64Array(system.size);
  const { steepness } = system.interaction;
  system.parameters.coupling.forEach((each, e) => {
    most[system.first[e]] += Math.abs(each) * steepness;
    most[system.second[e]] += Math.abs(each) * steepness;
  });
  for (const [strength, , odd] of system.fields) {
    system.parameters[strength].forEach((each, i) => (most[i] += Math.abs(each) * odd.steepness));
  }
  const bent = pull ? pull.cost.hessian(outputsOf(phases, pull.nodes)).map(Math.abs) : [0];
  return Math.max(...most, 1e-6) + (pull ? Math.abs(pull.beta) * Math.max(...bent) : 0);
}

/** A pull of the outputs with strength beta down the slope of a cost. */
export const pulling = (cost, nodes, beta) => ({ cost, nodes, beta });

/** The exact gradient at a free equilibrium by every parameter: one solve with the Laplacian. */
export function adjoint(system, phases, cost, nodes) {
  const right = new Float64Array(system.moving.length);
  const force = cost.force(outputsOf(phases, nodes));
  nodes.forEach((node, k) => (right[system.place[node]] -= force[k]));
  const factor = cholesky(system.laplacian(phases));
  if (factor === null) return null;
  const answer = solve(factor, right);
  const response = new Float64Array(system.size);
  system.moving.forEach((node, k) => (response[node] = answer[k]));
  return system.forceSlopes(phases, response);
}

/** What two states say of the gradient: the difference of dE/dp between them over the difference of their nudges. */
export function gradientBetween(system, plus, minus, width) {
  const [first, second] = [system.energySlopes(plus), system.energySlopes(minus)];
  const gradient = {};
  for (const name of Object.keys(first)) {
    gradient[name] = first[name].map((each, k) => (each - second[name][k]) / width);
  }
  return gradient;
}

/** The nudged equilibria of a scheme, +beta and, where it is centred, -beta; each may fail to be stable. */
export function nudged(system, free, cost, nodes, beta, centred) {
  const plus = settle(system, free, pulling(cost, nodes, beta), { follow: true });
  const minus = centred ? settle(system, free, pulling(cost, nodes, -beta), { follow: true }) : null;
  return { plus, minus, stable: plus.stable && (minus === null || minus.stable) };
}

/** The gradient by one nudge, or by nudges of both signs, by every parameter. */
export function nudgedGradient(system, free, cost, nodes, beta, centred = false) {
  const { plus, minus, stable } = nudged(system, free, cost, nodes, beta, centred);
  if (!stable) return null;
  return gradientBetween(system, plus.phases, minus ? minus.phases : free, minus ? 2 * beta : beta);
}

/** A gradient by frequencies relative to their mean, turned into one by the frequencies as they are. */
export function raw(system, slopes) {
  if (!system.pinned) return slopes;
  const mean = slopes.reduce((total, each) => total + each, 0) / slopes.length;
  return slopes.map((each) => each - mean);
}

/** The cosine of the angle between two gradients, and the distance of the first over the length of the second. */
export function agreement(found, exact) {
  let [dot, mine, theirs, apart] = [0, 0, 0, 0];
  for (let k = 0; k < exact.length; k++) {
    dot += found[k] * exact[k];
    mine += found[k] ** 2;
    theirs += exact[k] ** 2;
    apart += (found[k] - exact[k]) ** 2;
  }
  return { cosine: dot / Math.sqrt(mine * theirs), error: Math.sqrt(apart / theirs) };
}
