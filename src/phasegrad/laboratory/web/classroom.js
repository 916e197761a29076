/**
 * The classroom: a network that learns a task before one's eyes, with its loss, its decisions and its output phases.
 */

import { drawFan, drawHistory, drawMap } from "lab/charts.js";
import { choice, percent, words } from "lab/controls.js";
import { Surface } from "lab/drawing.js";
import { Learner, decisionMap } from "lab/learning.js";
import { outputsOf } from "lab/physics.js";

const CELLS = 32;
const REACH = 1.25;
const RANGES = [0.3, 0.6, 1.2, Math.PI];
/** Milliseconds of learning between two frames, and frames between two maps. */
const SHARE = 12;
const FRAMES_PER_MAP = 6;

export class Classroom {
  constructor(lab, tasks, parts) {
    Object.assign(this, { lab, tasks, parts, learner: null, running: null, frames: 0, map: null });
    this.surfaces = { map: new Surface(parts.map), fan: new Surface(parts.fan), history: new Surface(parts.history) };
    this.chosen = { task: "vowels", start: null, recipe: null };
    this.#buildChoices();
    parts.learn.addEventListener("click", () => (this.running === null ? this.learn() : this.pause()));
    parts.step.addEventListener("click", () => this.one());
    parts.reset.addEventListener("click", () => this.begin());
    this.#listen();
  }

  #buildChoices() {
    const names = (given) => Object.fromEntries(Object.entries(given).map(([key, each]) => [key, each.title]));
    const task = this.tasks[this.chosen.task];
    this.chosen.start = this.chosen.start in task.starts ? this.chosen.start : Object.keys(task.starts)[0];
    this.chosen.recipe = this.chosen.recipe in task.recipes ? this.chosen.recipe : Object.keys(task.recipes)[0];
    const chosen = (id, label, options) =>
      choice({ id, label, options, value: this.chosen[id], change: (value) => this.begin({ [id]: value }) });
    this.parts.choices.replaceChildren(
      chosen("task", "Learn", names(this.tasks)),
      chosen("start", "Start", Object.fromEntries(Object.keys(task.starts).map((key) => [key, key]))),
      chosen("recipe", "Decision", names(task.recipes)),
    );
  }

  /** Put the network of a task, as it starts, on the bench. */
  begin(chosen = {}) {
    this.pause();
    const focused = document.activeElement?.id;
    Object.assign(this.chosen, chosen);
    this.#buildChoices();
    if (focused) document.getElementById(focused)?.focus();
    const task = this.tasks[this.chosen.task];
    this.learner = new Learner(task, this.chosen.start, this.chosen.recipe);
    const { recipe, network } = this.learner;
    const objective = { ...recipe.objective, nodes: network.outputs };
    this.lab.put({ ...task.scene, network, objective }, { learner: true });
    this.lab.bench.inputs = this.learner.train.x[0].slice();
    this.lab.change(() => {});
    this.#findMap();
    this.draw();
    this.report();
  }

  /** Another network, without a task, is on the bench. */
  leave() {
    this.pause();
    Object.assign(this, { learner: null, map: null });
  }

  learn() {
    if (!this.learner || this.learner.done) this.begin();
    this.parts.learn.textContent = "Pause";
    this.parts.result.textContent = "Learning …";
    if (this.lab.still) {
      while (!this.learner.done) this.learner.epoch();
      this.#finish();
      return;
    }
    const step = () => {
      const until = performance.now() + SHARE;
      do this.learner.epoch();
      while (!this.learner.done && performance.now() < until);
      if (this.learner.done) {
        this.#finish();
        return;
      }
      this.#show(this.frames++ % FRAMES_PER_MAP === 0);
      this.running = requestAnimationFrame(step);
    };
    this.running = requestAnimationFrame(step);
  }

  pause() {
    if (this.running !== null) {
      cancelAnimationFrame(this.running);
      this.running = null;
      this.#show(true);
      this.report();
    }
    this.parts.learn.textContent = "Learn";
  }

  /** Learn for one epoch. */
  one() {
    if (!this.learner || this.learner.done) this.begin();
    this.pause();
    this.learner.epoch();
    this.#show(true);
    this.report();
  }

  #finish() {
    this.running = null;
    this.parts.learn.textContent = "Learn";
    this.#show(true);
    this.report();
  }

  /** Put what was learned on the bench and draw it. */
  #show(withMap) {
    const { bench, stage } = this.lab;
    const { parameters } = this.learner.system;
    for (const [name, values] of Object.entries(parameters)) bench.system.parameters[name].set(values);
    bench.release();
    bench.refresh();
    stage.picture.renew();
    this.lab.restAll({ quiet: true });
    if (withMap) this.#findMap();
    this.draw();
  }

  /** Whether a map can be drawn: two inputs and two classes. */
  get maps() {
    const { bench } = this.lab;
    return bench.network.inputs.length === 2 && bench.objective.decide !== null;
  }

  #findMap() {
    const { bench } = this.lab;
    if (!this.maps) return;
    this.map = decisionMap(bench.system, bench.objective, bench.nodes, CELLS, REACH);
    bench.system.drive(bench.inputs);
  }

  /** Draw again; the map too where there is none yet. */
  draw() {
    if (this.parts.panel.hidden) return;
    const { bench, colours } = this.lab;
    if (this.map === null) this.#findMap();
    const samples = this.learner ? this.learner.train : { x: [], labels: [] };
    this.parts.map.parentElement.hidden = !this.maps;
    this.parts.pair.classList.toggle("alone", !this.maps);
    if (this.maps && this.map) {
      const { x, labels } = samples;
      const view = { map: this.map, cells: CELLS, reach: REACH, samples: x, labels, here: bench.inputs, colours };
      drawMap(this.surfaces.map, view);
    }
    this.#drawFan(samples);
    this.parts.history.parentElement.hidden = !this.learner;
    if (!this.learner) return;
    const { history, recipe } = this.learner;
    drawHistory(this.surfaces.history, { history, epochs: recipe.epochs, colours });
  }

  #drawFan(samples) {
    const { bench, colours } = this.lab;
    const phases = this.learner ? this.learner.seen : [outputsOf(bench.free.phases, bench.nodes)];
    const labels = this.learner ? samples.labels : [bench.decision ?? 2];
    const asked = bench.asked ?? [];
    const most = Math.max(...asked.map(Math.abs), ...phases.filter(Boolean).flat().map(Math.abs));
    const reach = RANGES.find((each) => each >= 1.15 * most) ?? Math.PI;
    const names = bench.nodes.map((_, k) => `output ${k + 1}${bench.scene.classes ? `: ${bench.outputNames[k]}` : ""}`);
    drawFan(this.surfaces.fan, { phases, labels, names, asked, reach, colours });
  }

  report() {
    const { learner } = this;
    const say = (text) => (this.parts.result.textContent = text);
    if (!learner) {
      const replaced = this.lab.mine ? ": a network of its own takes the place of yours, which is kept" : "";
      say(`Choose what to learn, then press Learn${replaced}.`);
      return;
    }
    const now = learner.history.at(-1);
    const text = `Epoch ${learner.epochs}: cost ${words(now.loss)}, test accuracy ${percent(now.test)}.`;
    const side = now.difference > 0 ? "output 1 is ahead" : "output 2 is ahead";
    const kind = now.test > 0.5 ? "a classifier" : "an inverted classifier";
    say(learner.recipe.objective.kind === "PaperPair" ? `${text} d = ${words(now.difference, 2)}: ${side}, ${kind}.`
      : text);
  }

  /** A press on the map moves the input there. */
  #listen() {
    const { map } = this.parts;
    const move = (event) => {
      if (!this.maps || event.buttons === 0) return;
      const side = Math.min(map.clientWidth, map.clientHeight);
      const at = (place) => Math.max(-REACH, Math.min(REACH, REACH * ((2 * place) / side - 1)));
      const { bench } = this.lab;
      this.lab.change(() => (bench.inputs = [at(event.offsetX), -at(event.offsetY)]));
    };
    map.addEventListener("pointerdown", move);
    map.addEventListener("pointermove", move);
  }
}
