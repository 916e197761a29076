/** The panel: sliders and choices for the nudge, the meter, the data, one oscillator and one coupling. */

import { KINDS } from "lab/bench.js";
import { choice, element, radios, slider, words } from "lab/controls.js";

const MOST_SLIDERS = 4;
const NO_NOISE = -6;
const SCALED = "Inputs are scaled: −1 and 1 are the ends of the training data.";
const OMEGA_MOST = 4;
const COUPLING_MOST = 8;

export class Panel {
  constructor(lab, { nudge, data, one }) {
    Object.assign(this, { lab, places: { nudge, data, one } });
  }

  get bench() {
    return this.lab.bench;
  }

  /** Build all controls anew for the network on the bench. */
  load() {
    this.#buildNudge();
    this.#buildData();
    this.#buildOne();
    this.sync();
  }

  #buildNudge() {
    const { bench, lab } = this;
    const kinds = Object.entries(KINDS).filter(([name]) => name.split(" ")[0] in bench.system.parameters);
    this.beta = slider({
      id: "beta", label: "Nudge β", least: -4, most: 1, step: 0.05, value: Math.log10(bench.beta),
      show: (each) => words(10 ** each, 2),
      change: (each) => lab.change(() => (bench.beta = 10 ** each)),
    });
    this.noise = slider({
      id: "noise", label: "Noise of the phase meter", least: NO_NOISE, most: 0, step: 0.1,
      value: bench.noise ? Math.log10(bench.noise) : NO_NOISE,
      show: (each) => (each <= NO_NOISE ? "none" : `${words(10 ** each, 2)} rad`),
      change: (each) => lab.change(() => (bench.noise = each <= NO_NOISE ? 0 : 10 ** each)),
    });
    this.scheme = radios({
      name: "scheme", label: "Nudge", options: { one: "one-sided, +β", centred: "centred, ±β" },
      value: bench.centred ? "centred" : "one",
      change: (key) => lab.change(() => (bench.centred = key === "centred")),
    });
    this.kind = choice({
      id: "kind", label: "Gradient by", options: Object.fromEntries(kinds), value: bench.kind,
      change: (key) => lab.change(() => (bench.kind = key)),
    });
    this.places.nudge.replaceChildren(this.beta, this.noise, this.scheme, this.kind);
  }

  #buildData() {
    const { bench, lab } = this;
    const parts = [];
    const { features } = bench.scene;
    const names = bench.inputs.map((_, k) => features?.[k] ?? `Input ${k + 1}`);
    this.inputs = this.#several("input", "Input", names, (k) => ({
      least: -2, most: 2, step: 0.01, value: bench.inputs[k],
      change: (each) => lab.change(() => (bench.inputs[k] = each)),
    }), () => bench.inputs, parts);
    if (bench.classes) {
      this.target = choice({
        id: "target", label: "Nudge toward class",
        options: Object.fromEntries(bench.classes.map((name, k) => [k, name])), value: bench.target,
        change: (key) => lab.change(() => (bench.target = Number(key))),
      });
      parts.push(this.target);
      this.targets = null;
    } else {
      const outputs = bench.outputNames.map((name) => `Target of ${name}`);
      this.targets = this.#several("goal", "Output", outputs, (k) => ({
        least: -1.5, most: 1.5, step: 0.01, value: bench.target[k],
        change: (each) => lab.change(() => (bench.target = bench.target.map((old, l) => (l === k ? each : old)))),
      }), () => bench.target, parts);
    }
    if (bench.scene.scaling) parts.unshift(element("p", { className: "hint" }, SCALED));
    if (parts.length === 0) parts.push(element("p", { className: "hint" }, "This network has no inputs."));
    this.places.data.replaceChildren(...parts);
  }

  /** One slider for each of a few values, or a choice and one slider for many; returns what brings them up to date. */
  #several(id, label, names, settings, values, parts) {
    if (names.length <= MOST_SLIDERS) {
      const sliders = names.map((name, k) => slider({ id: `${id}-${k}`, label: name, ...settings(k) }));
      parts.push(...sliders);
      return () => sliders.forEach((each, k) => each.put(values()[k]));
    }
    let chosen = 0;
    const one = slider(
      { id: `${id}-value`, label: "Value", ...settings(0), change: (each) => settings(chosen).change(each) });
    const which = choice({
      id: `${id}-which`, label, options: Object.fromEntries(names.map((name, k) => [k, name])), value: 0,
      change: (key) => {
        chosen = Number(key);
        one.put(values()[chosen]);
      },
    });
    parts.push(which, one);
    return () => one.put(values()[chosen]);
  }

  #buildOne() {
    const { bench, lab } = this;
    const { network } = bench;
    const nodes = Object.fromEntries(
      [...Array(network.size).keys()].map((node) => [node, `${lab.names[node]}${roleOf(network, node)}`]));
    const edges = Object.fromEntries(network.edges.map((_, e) => [e, lab.namesOf("coupling")[e]]));
    this.node = choice(
      { id: "node", label: "Oscillator", options: nodes, value: 0,
      change: (key) => lab.stage.select({ node: Number(key) }) });
    this.omega = slider({
      id: "omega", label: "Frequency ω", least: -OMEGA_MOST, most: OMEGA_MOST, step: 0.01, value: 0,
      change: (each) => this.turn({ node: lab.stage.selectedNode }, each),
    });
    this.edge = choice(
      { id: "edge", label: "Coupling", options: edges, value: 0,
      change: (key) => lab.stage.select({ edge: Number(key) }) });
    this.coupling = slider({
      id: "coupling", label: "Strength K", least: network.signed ? -COUPLING_MOST : 0.01, most: COUPLING_MOST,
      step: 0.01, value: 1,
      change: (each) => this.turn({ edge: lab.stage.selectedEdge }, each),
    });
    this.places.one.replaceChildren(this.node, this.omega, this.edge, this.coupling);
  }

  /** The value that a hand on an oscillator or an edge turns: a frequency, which may be an input, or a coupling. */
  valueOf({ node = null, edge = null }) {
    const { bench } = this;
    if (edge !== null) return bench.system.parameters.coupling[edge];
    const input = bench.network.inputs.indexOf(node);
    return input >= 0 ? bench.inputs[input] * bench.network.input_scale : bench.system.parameters.omega[node];
  }

  /** Turn it. */
  turn({ node = null, edge = null }, value) {
    const { bench, lab } = this;
    const input = bench.network.inputs.indexOf(node);
    if (edge !== null) {
      const least = bench.network.signed ? -COUPLING_MOST : 0.01;
      lab.change(() => (bench.system.parameters.coupling[edge] = Math.max(least, Math.min(COUPLING_MOST, value))),
        { renew: true });
    } else if (input >= 0) lab.change(() => (bench.inputs[input] = value / bench.network.input_scale));
    else lab.change(() => (bench.system.parameters.omega[node] = Math.max(-OMEGA_MOST, Math.min(OMEGA_MOST, value))));
  }

  /** Bring every control to what is on the bench. */
  sync() {
    const { bench, lab } = this;
    const { selectedNode, selectedEdge } = lab.stage;
    this.beta.put(Math.log10(bench.beta));
    this.noise.put(bench.noise ? Math.log10(bench.noise) : NO_NOISE);
    this.scheme.put(bench.centred ? "centred" : "one");
    this.kind.select.value = bench.kind;
    this.inputs();
    if (this.targets) this.targets();
    else this.target.select.value = bench.target;
    this.node.select.value = selectedNode;
    this.omega.put(this.valueOf({ node: selectedNode }));
    const clamped = bench.system.clamped && bench.network.inputs.includes(selectedNode);
    this.omega.querySelector("label").textContent = clamped ? "Clamped phase" : "Frequency ω";
    this.edge.select.value = selectedEdge;
    this.coupling.put(bench.system.parameters.coupling[selectedEdge]);
    lab.syncButtons();
  }
}

function roleOf(network, node) {
  if (network.inputs.includes(node)) return " (input)";
  if (network.outputs.includes(node)) return " (output)";
  return "";
}
