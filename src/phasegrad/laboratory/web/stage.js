/** The stage: the network on show, how it settles in time, and what a hand on it does. */

import { words } from "lab/controls.js";
import { NetworkPicture } from "lab/drawing.js";
import { arranged } from "lab/layout.js";
import { Flow, slowestRate, stepsWithin } from "lab/physics.js";

/** Milliseconds that settling takes on the screen, and lifetimes of the slowest mode that pass in them. */
const DURATION = { nudge: 1600, shake: 2400 };
const LIFETIMES = 9;
const MOST_STEPS = 6000;
const LONGEST_FRAME = 300;
/** Time that passes in a second where nothing settles, and how far a pointer goes for one unit of frequency. */
const DRIFT_SPEED = 2.5;
const PIXELS = 120;

/** The share of all time that has passed: slowly where everything moves, faster where only the slowest mode is left. */
const warped = (share) => Math.expm1(5 * share) / Math.expm1(5);

export class Stage {
  constructor(lab, canvas, { status, note, answer }) {
    Object.assign(this, { lab, canvas, status, note, answer, frame: null, busy: false });
    this.picture = new NetworkPicture(canvas);
    this.#listen();
  }

  get bench() {
    return this.lab.bench;
  }

  /** Another network is on the bench. */
  load() {
    this.stop();
    this.layout = arranged(this.bench.network);
    const { outputs, size } = this.bench.network;
    Object.assign(this, { selectedNode: outputs[0] > 0 ? outputs[0] - 1 : size - 1, selectedEdge: 0, marked: false });
    this.picture.renew();
    this.rest();
  }

  /** Show the state in which the network rests; where there is none, let it turn. */
  rest() {
    this.stop();
    const { bench } = this;
    const { states } = bench;
    this.phases = states?.stable ? states.plus.phases : bench.free.phases;
    this.magnified = states?.stable ? magnification(bench.free.phases, this.phases) : 0;
    this.#explain();
    this.draw();
    if (!bench.settled) this.#drift();
  }

  /** Say how much larger than they are shifts are drawn. */
  #explain() {
    const larger = `Orange wedges: phase shifts, drawn ${words(this.magnified)} times larger.`;
    this.note.textContent = this.magnified > 1 ? larger : "";
  }

  draw() {
    const { bench, lab } = this;
    const { network } = bench;
    this.picture.draw({
      network, parameters: bench.system.parameters, layout: this.layout, phases: this.phases,
      free: bench.nudged ? bench.free.phases : null, magnified: bench.nudged ? this.magnified : 0,
      nodes: bench.nodes, asked: bench.asked,
      selectedNode: this.marked ? this.selectedNode : null, selectedEdge: this.marked ? this.selectedEdge : null,
      colours: lab.colours, look: lab.look, names: lab.names, notes: this.#notes(), layered: network.inputs.length > 0,
    });
  }

  #notes() {
    const { bench } = this;
    const notes = {};
    const narrow = this.canvas.clientWidth < 520;
    bench.network.inputs.forEach((node, k) => {
      const name = bench.scene.features?.[k] ?? `input ${k + 1}`;
      notes[node] = narrow ? [`in ${k + 1}`] : [name, words(bench.inputs[k], 2)];
    });
    bench.network.outputs.forEach((node, k) => {
      const name = narrow && !bench.scene.classes ? `out ${k + 1}` : bench.outputNames[k];
      const marked = bench.decision === k ? `✓ ${name}` : name;
      notes[node] = narrow ? [marked] : [marked, `θ ${words(this.phases[node], 2)}`];
    });
    return notes;
  }

  stop() {
    if (this.frame !== null) cancelAnimationFrame(this.frame);
    Object.assign(this, { frame: null, busy: false });
  }

  /** Say in words how things stand. */
  report() {
    this.status.textContent = this.#words();
    this.answer.textContent = this.bench.answer;
  }

  #words() {
    const { bench } = this;
    const strength = words(bench.beta);
    if (bench.nudged && bench.states?.stable) {
      return `Nudged by β = ${strength}${bench.centred ? " and −β" : ""}: settled again.`;
    }
    if (bench.nudged) return `The nudge β = ${strength} is too strong: it leaves no stable state. Weaken it.`;
    if (bench.settled) return `Settled and stable. Residual force ${words(bench.free.residual, 2)}.`;
    const blocking = bench.system.blocking();
    if (blocking >= 0) return `Cannot lock: oscillator ${this.lab.names[blocking]} is too fast for its couplings.`;
    return "No stable state: the oscillators keep turning. Lower a frequency or strengthen a coupling.";
  }

  /** Throw all phases and let them settle. */
  shake() {
    const { bench } = this;
    const thrown = Float64Array.from({ length: bench.system.size }, () => 4 * (bench.random() - 0.5));
    bench.release();
    bench.refresh(this.#followed(thrown));
    this.lab.restAll({ still: true });
    if (!bench.settled) return this.#drift();
    this.magnified = 0;
    const flow = new Flow(bench.system, thrown);
    return this.#play([flow], DURATION.shake, bench.free.phases, () => (this.phases = flow.phases));
  }

  /** Where the flow leads from given phases, nearly. */
  #followed(phases) {
    const flow = new Flow(this.bench.system, phases);
    flow.advance(flow.longest * stepsWithin(this.bench.network, MOST_STEPS / 4));
    return flow.phases;
  }

  /** Nudge the outputs and let the network settle again. */
  nudge() {
    const { bench, lab } = this;
    if (!bench.settled) return;
    bench.nudge();
    lab.panel.sync();
    if (!bench.states.stable) {
      lab.restAll();
      return;
    }
    const { states } = bench;
    this.magnified = magnification(bench.free.phases, states.plus.phases);
    this.#explain();
    const flows = [new Flow(bench.system, bench.free.phases, bench.pull())];
    if (bench.centred) flows.push(new Flow(bench.system, bench.free.phases, bench.pull(-1)));
    this.#play(flows, DURATION.nudge, states.plus.phases, () => {
      this.phases = flows[0].phases;
      lab.readout.show(bench.measured(flows[0].phases, (flows[1] ?? bench.free).phases));
    });
  }

  /** Let flows run until the end state, frame by frame; at the end everything rests where it truly does. */
  #play(flows, duration, end, show) {
    this.stop();
    const { bench, lab } = this;
    if (lab.still) {
      lab.restAll();
      return;
    }
    const rate = Math.max(1e-3, slowestRate(bench.system, end, flows[0].pull));
    const total = Math.min(LIFETIMES / rate, flows[0].longest * MOST_STEPS);
    let passed = 0;
    let began = null;
    this.busy = true;
    const step = (now) => {
      began ??= now;
      const share = (now - began) / duration;
      if (share >= 1) {
        lab.restAll();
        return;
      }
      const time = total * warped(share);
      for (const flow of flows) flow.advance(time - passed, LONGEST_FRAME);
      passed = time;
      show();
      this.draw();
      this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  /** Nothing settles: let the hands turn as the dynamics do, until something changes. */
  #drift() {
    if (this.lab.still) return;
    const flow = new Flow(this.bench.system, this.phases);
    let before = null;
    const step = (now) => {
      flow.advance((DRIFT_SPEED * Math.min(50, now - (before ?? now))) / 1000, LONGEST_FRAME);
      before = now;
      this.phases = flow.phases;
      this.draw();
      this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  #listen() {
    const { canvas } = this;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      const found = this.picture.under(event.offsetX, event.offsetY, this.bench.network.edges);
      if (!found) return;
      this.select(found);
      drag = { x: event.clientX, value: this.lab.panel.valueOf(found), found };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) {
        const found = this.bench.network.edges.length < 2000
          && this.picture.under(event.offsetX, event.offsetY, this.bench.network.edges);
        canvas.style.cursor = found ? "ew-resize" : "";
      } else if (Math.abs(event.clientX - drag.x) > 2) {
        this.lab.panel.turn(drag.found, drag.value + (event.clientX - drag.x) / PIXELS);
      }
    });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (drag = null));
  }

  /** Choose an oscillator or an edge. */
  select({ node = null, edge = null }) {
    this.marked = true;
    if (node !== null) this.selectedNode = node;
    if (edge !== null) this.selectedEdge = edge;
    this.picture.renew();
    this.lab.panel.sync();
    if (!this.busy) this.draw();
  }
}

/** A round factor that makes the largest shift about a radian on the screen. */
function magnification(free, nudged) {
  const most = nudged.reduce((largest, each, i) => Math.max(largest, Math.abs(each - free[i])), 0);
  if (most === 0) return 1;
  const wanted = 1.2 / most;
  const power = 10 ** Math.floor(Math.log10(wanted));
  return Math.max(1, power * [5, 2, 1].find((each) => each * power <= wanted));
}
