/**
 * The bench: one network with its data, its nudge and its meter, and all that follows from them. Nothing is drawn here.
 */

import { words } from "lab/controls.js";
import { normal, stream } from "lab/learning.js";
import { askedPhases, costOf, objectiveOf } from "lab/objectives.js";
import { Flow, System, adjoint, agreement, gradientBetween } from "lab/physics.js";
import { nudged, pulling, raw, settle, stepsWithin } from "lab/physics.js";

/** Names under which gradients are shown, and how people call them. */
export const KINDS = {
  omega: "frequencies ω, relative to their mean",
  "omega raw": "frequencies ω, as they are turned",
  coupling: "couplings K",
  field_strength: "bias fields h",
  field_phase: "phases of the bias fields",
  second_strength: "second harmonics",
  second_phase: "phases of the second harmonics",
};
const DRAWS = 24;
/** Steps that the flow is given where Newton's method finds no stable state. */
const PATIENCE = 4000;
/** The strongest nudge to begin with, the weakest that the page knows, and the relative error that is wanted. */
const STRONGEST = 0.1;
const WEAKEST = 1e-4;
const WANTED = 0.03;
/** How far phases are moved first, off a state that is at rest without being stable. */
const ASIDE = 1e-3;

export class Bench {
  constructor(scene, settings = {}) {
    Object.assign(this, { beta: STRONGEST, noise: 0, centred: false, kind: "omega", nudged: false, ...settings });
    this.random = stream(7);
    this.load(scene);
  }

  /** Put another network on the bench; the nudge is released. */
  load(scene) {
    this.scene = scene;
    this.network = scene.network;
    this.inputs = scene.inputs.slice();
    this.system = new System(this.network, this.inputs);
    this.setObjective(scene.objective);
    this.nudged = false;
    if (!(this.kind.split(" ")[0] in this.system.parameters)) this.kind = "omega";
    this.readAgain();
    this.refresh(new Float64Array(this.network.size));
    this.beta = this.#suited();
  }

  /** A nudge that suits the network: the error of one side, which grows with it, stays within a few per cent. */
  #suited() {
    const slope = this.settled ? this.bias(WEAKEST, false) / WEAKEST : 0;
    if (!(slope > 0 && Number.isFinite(slope))) return STRONGEST;
    // Steps of the slider.
    let power = Math.floor(20 * Math.log10(Math.min(STRONGEST, WANTED / slope)) + 1e-9);
    const within = (error) => error !== null && error < 2 * WANTED;
    while (power > -80 && !within(this.bias(10 ** (power / 20), false))) power -= 5;
    return 10 ** (Math.max(-80, power) / 20);
  }

  setObjective(settings) {
    this.settings = settings;
    this.objective = objectiveOf(settings);
    this.nodes = settings.nodes;
    this.target = this.objective.table === null ? this.nodes.map((_, k) => (k % 2 === 0 ? -0.2 : 0.2)) : 0;
  }

  get cost() {
    return costOf(this.objective, this.target, this.nodes.length);
  }

  get asked() {
    return askedPhases(this.settings, this.objective, this.target, this.nodes.length);
  }

  get classes() {
    return this.objective.table === null ? null : (this.scene.classes ?? this.nodes.map((_, k) => `class ${k}`));
  }

  /** What the outputs stand for: classes, quantities, or nothing but themselves. */
  get outputNames() {
    return this.classes ?? this.scene.classes ?? this.nodes.map((_, k) => `output ${k + 1}`);
  }

  /** What the free state says, in words; nothing where the network is no model. */
  get answer() {
    if (!this.settled || !this.scene.classes) return "";
    if (this.decision !== null) return `The network decides: ${this.classes[this.decision]}.`;
    const said = this.nodes.map((node, k) => `${this.outputNames[k]} ${words(this.free.phases[node])}`);
    const whose = said.length > 1 ? "The outputs’ phases stand" : "The output’s phase stands";
    return `${whose} for the scaled quantity: ${said.join(", ")}.`;
  }

  /** The class that the free state stands for, null where there are none. */
  get decision() {
    return this.objective.decide && this.settled
      ? this.objective.decide(this.nodes.map((node) => this.free.phases[node])) : null;
  }

  get settled() {
    return this.free.stable;
  }

  pull(sign = 1) {
    return pulling(this.cost, this.nodes, sign * this.beta);
  }

  /** Settle again after something changed, from the state that was there or from the phases given. */
  refresh(start = this.free.phases) {
    this.system.drive(this.inputs);
    this.free = settle(this.system, start);
    if (!this.free.stable && this.system.blocking() < 0) this.free = settle(this.system, this.#flowed(start));
    this.exact = this.settled ? adjoint(this.system, this.free.phases, this.cost, this.nodes) : null;
    this.states = null;
    if (!this.settled) this.nudged = false;
    if (this.nudged) this.nudge();
  }

  #flowed(start) {
    const flow = new Flow(this.system, start.map((each, i) => each + ASIDE * Math.sin(3 * i + 1)));
    flow.advance(flow.longest * stepsWithin(this.network, PATIENCE));
    return flow.phases;
  }

  /** Find the nudged states. */
  nudge() {
    this.states = nudged(this.system, this.free.phases, this.cost, this.nodes, this.beta, this.centred);
    this.nudged = true;
  }

  release() {
    Object.assign(this, { nudged: false, states: null });
  }

  /** Let the meter read once more: other noise. */
  readAgain() {
    const draw = () =>
      Float64Array.from({ length: this.system.size }, (_, i) => (this.system.held[i] ? 0 : normal(this.random)));
    [this.noisePlus, this.noiseMinus] = [draw(), draw()];
  }

  /** The gradient as the meter shows it from two states; the second is the free one where the nudge has one side. */
  measured(plus, minus) {
    const read = (phases, noise) => phases.map((each, i) => each + this.noise * noise[i]);
    const width = this.centred ? 2 * this.beta : this.beta;
    return this.#shown(gradientBetween(this.system, read(plus, this.noisePlus), read(minus, this.noiseMinus), width));
  }

  /** The same from the nudged equilibria; null where there are none. */
  get reading() {
    if (!this.states || !this.states.stable) return null;
    return this.measured(this.states.plus.phases, (this.states.minus ?? this.free).phases);
  }

  get exactShown() {
    return this.exact && this.#shown(this.exact);
  }

  /** How near the reading is to the exact gradient. */
  get agreement() {
    return this.reading && agreement(this.reading, this.exactShown);
  }

  #shown(gradient) {
    return this.kind === "omega raw" ? raw(this.system, gradient.omega) : gradient[this.kind];
  }

  /** The deviation that the meter's noise gives every entry of the gradient, times beta, under a nudge of one side. */
  spread() {
    const { phases } = this.free;
    const size = this.exactShown.length;
    const total = new Float64Array(size);
    const random = stream(11);
    for (let draw = 0; draw < DRAWS; draw++) {
      const read = () => phases.map((each, i) => each + (this.system.held[i] ? 0 : this.noise * normal(random)));
      const [first, second] = [read(), read()];
      this.#shown(gradientBetween(this.system, first, second, 1)).forEach((each, k) => (total[k] += each ** 2 / DRAWS));
    }
    return total.map(Math.sqrt);
  }

  /** The relative error of a nudged gradient without noise; null where a nudged state is not stable. */
  bias(beta, centred) {
    const { plus, minus, stable } = nudged(this.system, this.free.phases, this.cost, this.nodes, beta, centred);
    if (!stable) return null;
    const gradient = gradientBetween(this.system, plus.phases, (minus ?? this.free).phases, centred ? 2 * beta : beta);
    return agreement(this.#shown(gradient), this.exactShown).error;
  }

  /** The scene as it is now, with every parameter that was turned. */
  current() {
    const parameters = {};
    for (const [name, values] of Object.entries(this.system.parameters)) parameters[name] = Array.from(values);
    const network = { ...this.network, parameters };
    return { ...this.scene, network, objective: this.settings, inputs: this.inputs.slice() };
  }
}
