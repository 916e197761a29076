/**
 * Learning from nudges: sample by sample the network settles, is nudged, settles again, and every parameter moves down
 * the gradient that its own oscillator or edge shows.
 */

import { costOf, objectiveOf } from "lab/objectives.js";
import { System, nudgedGradient, outputsOf, settle } from "lab/physics.js";

/** Random numbers in [0, 1) from a seed (mulberry32). */
export function stream(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Standard normal numbers from random ones (Box and Muller). */
export function normal(random) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** The numbers from 0 to count - 1 in random order. */
export function shuffled(count, random) {
  const order = Array.from({ length: count }, (_, k) => k);
  for (let k = count - 1; k > 0; k--) {
    const other = Math.floor(random() * (k + 1));
    [order[k], order[other]] = [order[other], order[k]];
  }
  return order;
}

/** Raw features as the network takes them: low becomes -1, high becomes 1. */
export function scaled(features, scaling) {
  if (!scaling) return features.slice();
  const [low, high] = scaling;
  return features.map((each, k) => (high[k] === low[k] ? 0 : (2 * (each - low[k])) / (high[k] - low[k]) - 1));
}

/** One network that learns one task by one recipe. */
export class Learner {
  constructor(task, start, recipe, seed = 1) {
    const { scene } = task;
    this.task = task;
    this.recipe = task.recipes[recipe];
    this.objective = objectiveOf(this.recipe.objective);
    this.network = { ...scene.network, parameters: task.starts[start] };
    this.train = prepared(task.train, scene.scaling);
    this.test = prepared(task.test, scene.scaling);
    this.system = new System(this.network, this.train.x[0]);
    this.outputs = this.network.outputs;
    this.costs = this.outputs.map((_, label) => costOf(this.objective, label, this.outputs.length));
    this.random = stream(seed);
    this.epochs = 0;
    this.history = [this.#score()];
  }

  get done() {
    return this.epochs >= this.recipe.epochs;
  }

  /** Learn from every sample once, in random order or in the one given. */
  epoch(order = shuffled(this.train.x.length, this.random)) {
    let state = new Float64Array(this.system.size);
    let skipped = 0;
    for (const k of order) {
      this.system.drive(this.train.x[k]);
      const free = settle(this.system, this.recipe.warm ? state : new Float64Array(this.system.size));
      if (free.converged) state = free.phases;
      const cost = this.costs[this.train.labels[k]];
      const gradient = free.stable
        ? nudgedGradient(this.system, free.phases, cost, this.outputs, this.recipe.beta, this.recipe.centred)
        : null;
      if (gradient === null) skipped++;
      else this.#descend(gradient);
    }
    this.epochs++;
    this.history.push({ ...this.#score(), skipped });
  }

  #descend(gradient) {
    const { rates, clip, bounds } = this.recipe;
    const { parameters } = this.system;
    const inputs = new Set(this.network.inputs);
    for (const [name, rate] of Object.entries(rates)) {
      const values = parameters[name];
      const onNodes = name !== "coupling";
      for (let k = 0; k < values.length; k++) {
        if (onNodes && inputs.has(k)) continue;
        const slope = clip === null ? gradient[name][k] : Math.max(-clip, Math.min(clip, gradient[name][k]));
        values[k] -= rate * slope;
      }
    }
    for (const [name, [least, most]] of Object.entries(bounds)) {
      parameters[name].forEach((each, k) => {
        if (name === "coupling" || !inputs.has(k)) parameters[name][k] = Math.max(least, Math.min(most, each));
      });
    }
  }

  /** The output phases of every sample of a part; null where a sample has no stable state. */
  phases(part) {
    let start = new Float64Array(this.system.size);
    return part.x.map((x) => {
      this.system.drive(x);
      const found = settle(this.system, start);
      start = this.recipe.warm && found.stable ? found.phases : new Float64Array(this.system.size);
      return found.stable ? outputsOf(found.phases, this.outputs) : null;
    });
  }

  /** Mean cost and accuracy on the training part, accuracy on the test part, and the mean difference of the outputs. */
  #score() {
    const [seen, unseen] = [this.phases(this.train), this.phases(this.test)];
    const { labels } = this.train;
    const settled = seen.filter((theta) => theta !== null);
    const cost = (total, theta, k) => total + (theta ? this.costs[labels[k]].cost(theta) : 0);
    const loss = seen.reduce(cost, 0) / settled.length;
    const difference = settled.reduce((total, theta) => total + theta[0] - theta[1], 0) / settled.length;
    this.seen = seen;
    return { loss, train: this.#accuracy(seen, labels), test: this.#accuracy(unseen, this.test.labels), difference };
  }

  #accuracy(phases, labels) {
    const right = phases.filter((theta, k) => theta !== null && this.objective.decide(theta) === labels[k]);
    return right.length / labels.length;
  }

  /** The network as it is now, as plain data. */
  current() {
    const parameters = {};
    for (const [name, values] of Object.entries(this.system.parameters)) parameters[name] = Array.from(values);
    return { ...this.network, parameters };
  }
}

function prepared([rows, labels], scaling) {
  return { x: rows.map((row) => scaled(row, scaling)), labels };
}

/**
 * What a network with two inputs decides over a square of inputs: classes, row by row from the top, 255 where a sample
 * does not settle.
 */
export function decisionMap(system, objective, outputs, cells, reach) {
  const map = new Uint8Array(cells * cells);
  const at = (k) => reach * ((2 * k + 1) / cells - 1);
  for (let row = 0; row < cells; row++) {
    for (let column = 0; column < cells; column++) {
      system.drive([at(column), -at(row)]);
      const found = settle(system, new Float64Array(system.size));
      map[row * cells + column] = found.stable ? objective.decide(outputsOf(found.phases, outputs)) : 255;
    }
  }
  return map;
}
