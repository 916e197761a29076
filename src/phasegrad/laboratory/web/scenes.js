/**
 * Scenes: a network, its objective and its data as plain data, checked as if a stranger had written them; addresses.
 */

import { OBJECTIVES } from "lab/objectives.js";

const FORMAT = "phasegrad lab";
const MOST = { oscillators: 400, edges: 10000 };
const ON_NODES = ["omega", "field_strength", "field_phase", "second_strength", "second_phase"];

class Unfit extends Error {}

function need(right, words) {
  if (!right) throw new Unfit(words);
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const numbers = (value, count) => Array.isArray(value) && value.length === count && value.every(isNumber);

/** The scene in a JSON text, or an error with a sentence for a person. */
export function sceneFrom(text) {
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    throw new Unfit(
      "This file is not JSON. Open one that the lab saved, or that pg.lab(network, out=\"scene.json\") wrote.");
  }
  return checked(data);
}

/** The same scene if the lab can show it. */
export function checked(data) {
  need(data && data.format === FORMAT && data.version === 1,
    "This is not a scene of the lab. Save one here, or write one with pg.lab(network, out=\"scene.json\").");
  checkNetwork(data.network);
  checkObjective(data.objective, data.network);
  need(numbers(data.inputs, data.network.inputs.length), "The scene needs one number for each input of its network.");
  const { size, inputs, outputs } = data.network;
  for (const [name, count] of [["labels", size], ["classes", outputs.length], ["features", inputs.length]]) {
    const names = data[name] ?? null;
    need(names === null || (Array.isArray(names) && names.length === count),
      `The ${name} of the scene must be ${count} names.`);
  }
  const scaling = data.scaling ?? null;
  need(scaling === null || (scaling.length === 2 && scaling.every((each) => numbers(each, data.inputs.length))),
    "The scaling of the scene must be a low and a high value for each input.");
  return data;
}

function checkNetwork(network) {
  need(network && Number.isInteger(network.size) && network.size >= 2,
    "The network of the scene needs a size of at least 2 oscillators.");
  const { size } = network;
  need(size <= MOST.oscillators, `The lab shows at most ${MOST.oscillators} oscillators. This network has ${size}.`);
  const isNode = (node) => Number.isInteger(node) && node >= 0 && node < size;
  const edges = Array.isArray(network.edges) ? network.edges : [];
  need(edges.length > 0
    && edges.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(isNode) && pair[0] !== pair[1]),
    `The edges of the network must be pairs of different oscillators from 0 to ${size - 1}.`);
  need(edges.length <= MOST.edges, `The lab shows at most ${MOST.edges} edges. This network has ${edges.length}.`);
  for (const role of ["inputs", "outputs"]) {
    need(Array.isArray(network[role]) && network[role].every(isNode),
      `The ${role} of the network must be oscillators from 0 to ${size - 1}.`);
  }
  need(network.outputs.length > 0, "The lab nudges outputs, and this network has none.");
  need(isNode(network.reference), `The reference of the network must be an oscillator from 0 to ${size - 1}.`);
  need(["frequency", "phase"].includes(network.input_mode),
    "The input_mode of the network must be \"frequency\" or \"phase\".");
  need(isNumber(network.input_scale) && isNumber(network.input_phase),
    "The network needs numbers as input_scale and input_phase.");
  need(Array.isArray(network.interaction) && network.interaction.length > 0 && network.interaction.every(isNumber),
    "The interaction of the network must be a list of sine coefficients.");
  checkParameters(network);
}

function checkParameters({ parameters, size, edges }) {
  need(parameters && parameters.omega && parameters.coupling, "The network needs the parameters omega and coupling.");
  for (const [name, values] of Object.entries(parameters)) {
    need(name === "coupling" || ON_NODES.includes(name),
      `The lab knows the parameters coupling, ${ON_NODES.join(", ")}, but not ${name.slice(0, 40)}.`);
    const count = name === "coupling" ? edges.length : size;
    need(numbers(values, count), `The parameter ${name} must be ${count} numbers.`);
  }
  for (const kind of ["field", "second"]) {
    need(!parameters[`${kind}_strength`] === !parameters[`${kind}_phase`],
      `The parameters ${kind}_strength and ${kind}_phase belong together.`);
  }
}

function checkObjective(objective, network) {
  need(objective && OBJECTIVES.includes(objective.kind),
    `The objective of the scene must be one of ${OBJECTIVES.join(", ")}.`);
  const setting = objective.kind === "CosineCrossEntropy" ? "sharpness" : "margin";
  need(objective.kind === "PhaseTargets" || (isNumber(objective[setting]) && objective[setting] > 0),
    `The objective ${objective.kind} needs a ${setting} above 0.`);
  const clamped = network.input_mode === "phase" ? network.inputs : [];
  const { field_strength: field, second_strength: second } = network.parameters;
  const held = clamped.length || field || second ? clamped : [network.reference];
  const moves = (node) => Number.isInteger(node) && node >= 0 && node < network.size && !held.includes(node);
  need(Array.isArray(objective.nodes) && objective.nodes.length > 0 && objective.nodes.every(moves),
    "The objective of the scene needs nodes that move.");
}

/** Bytes put through one of the browser's streams. */
async function through(bytes, transform) {
  const piped = new Blob([bytes]).stream().pipeThrough(transform);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

/** Plain data as text that an address can hold. */
export async function packed(data) {
  const bytes = await through(new TextEncoder().encode(JSON.stringify(data)), new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The plain data in such a text. */
export async function unpacked(text) {
  try {
    const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")),
      (letter) => letter.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
  } catch {
    throw new Unfit("This address holds no state of the lab: a part of it may have been lost on the way.");
  }
}
