/** The readout: bars of the gradient that the nudge shows beside the exact one, and its error over the nudge. */

import { KINDS } from "lab/bench.js";
import { drawBars, drawErrors } from "lab/charts.js";
import { element, percent, words } from "lab/controls.js";
import { Surface } from "lab/drawing.js";

const STRENGTHS = Array.from({ length: 26 }, (_, k) => 10 ** (-4 + k / 5));
/** Oscillators above which the curves over the nudge would take too long. */
const MOST_FOR_CURVES = 250;
const FLICKER = 450;

export class Readout {
  constructor(lab, { bars, errors, block, result, table, formula, whiskers }) {
    Object.assign(this, { lab, block, result, table, formula, whiskers });
    Object.assign(this, { bars: new Surface(bars), errors: new Surface(errors) });
    this.curves = { oneSided: [], centred: [] };
    this.values = null;
    this.job = null;
    this.flicker = null;
    table.closest("details").addEventListener("toggle", () => this.#fillTable());
  }

  get bench() {
    return this.lab.bench;
  }

  /** Show a reading, while the network settles or at rest. */
  show(values) {
    this.values = values;
    const { bench, lab } = this;
    const exact = bench.exactShown;
    if (!exact) {
      this.bars.cleared();
      return;
    }
    const spread = values && bench.noise > 0 ? this.#spread() : null;
    drawBars(this.bars, { measured: values, exact, spread, names: lab.namesOf(bench.kind), colours: lab.colours });
  }

  #spread() {
    const { bench } = this;
    const factor = bench.centred ? 2 * bench.beta : bench.beta;
    const key = `${bench.noise} ${bench.kind} ${this.version}`;
    if (this.spreadKey !== key) Object.assign(this, { spreadKey: key, spreadOfOne: bench.spread() });
    return this.spreadOfOne.map((each) => each / factor);
  }

  /** Show the state at rest, and find the errors anew unless only the meter read again. */
  rest({ reading = false } = {}) {
    const { bench } = this;
    if (!reading) this.version = (this.version ?? 0) + 1;
    this.show(bench.nudged ? bench.reading : null);
    this.#explain();
    if (!reading) this.#findCurves();
    this.#drawErrors();
    this.#fillTable();
    this.#keepReading();
  }

  /** Say what the orange bars are, and what the lines on them. */
  #explain() {
    const { bench, formula, whiskers } = this;
    const width = bench.centred ? "2β" : "β";
    const formulas = { omega: `−shift / ${width}`, coupling: `change of −cos(θᵢ − θⱼ) / ${width}` };
    const plain = bench.network.interaction.length === 1 || bench.kind === "omega";
    const read = (plain && formulas[bench.kind]) || `change of the energy’s slope / ${width}`;
    formula.textContent = `read off the shift: ${read}`;
    whiskers.hidden = !(this.values && bench.noise > 0);
  }

  report() {
    this.result.textContent = this.#words();
  }

  #words() {
    const { bench } = this;
    if (!bench.settled) return "No equilibrium, no gradient.";
    if (!bench.nudged) return "Blue: the exact gradient. Nudge the outputs and the orange bars grow.";
    const found = bench.agreement;
    if (!found) return "There is no nudged state to read.";
    const cosine = found.cosine.toFixed(found.cosine > 0.999 ? 6 : 3).replace("-", "−");
    return `Cosine with the exact gradient ${cosine}, error ${percent(found.error)}.`;
  }

  /** Where the meter is noisy it goes on reading. */
  #keepReading() {
    clearTimeout(this.flicker);
    const { bench, lab } = this;
    if (!(bench.nudged && bench.noise > 0) || lab.still) return;
    this.flicker = setTimeout(() => {
      if (!lab.stage.busy) {
        bench.readAgain();
        this.rest({ reading: true });
      } else this.#keepReading();
    }, FLICKER);
  }

  /** Find the errors of both schemes over all strengths, a few at a time, so that nothing waits for them. */
  #findCurves() {
    clearTimeout(this.job);
    const { bench, lab } = this;
    this.curves = { oneSided: [], centred: [] };
    this.block.hidden = bench.network.size > MOST_FOR_CURVES;
    if (!bench.settled || this.block.hidden) return;
    const strengths = STRENGTHS.filter((_, k) => bench.network.size < 60 || k % 2 === 0);
    const left = strengths.flatMap((beta) => [["oneSided", beta], ["centred", beta]]);
    const work = () => {
      if (lab.stage.busy) {
        this.job = setTimeout(work, 100);
        return;
      }
      const until = performance.now() + 8;
      while (left.length && performance.now() < until) {
        const [name, beta] = left.shift();
        const error = bench.bias(beta, name === "centred");
        if (error !== null) this.curves[name].push([beta, error]);
      }
      if (left.length) this.job = setTimeout(work, 4);
      this.#drawErrors();
    };
    this.job = setTimeout(work, 60);
  }

  #drawErrors() {
    const { bench, lab } = this;
    if (this.block.hidden) return;
    if (!bench.exactShown) {
      this.errors.cleared();
      return;
    }
    let noise = null;
    if (bench.noise > 0) {
      this.#spread();
      const length = Math.hypot(...this.spreadOfOne) / Math.hypot(...bench.exactShown);
      noise = { oneSided: length, centred: length / 2 };
    }
    const error = bench.nudged && bench.agreement ? bench.agreement.error : 0;
    drawErrors(this.errors,
      { curves: this.curves, noise, beta: bench.beta, centred: bench.centred, error, colours: lab.colours });
  }

  /** The numbers behind the bars, for those who want to read them. */
  #fillTable() {
    if (!this.table.closest("details").open) return;
    const { bench, lab } = this;
    const names = lab.namesOf(bench.kind);
    const [exact, values] = [bench.exactShown, this.values];
    this.table.tHead.rows[0].cells[0].textContent = bench.kind === "coupling" ? "coupling" : "oscillator";
    this.table.caption.textContent = `Gradient by ${KINDS[bench.kind]}`;
    const rows = exact
      ? Array.from(exact, (each, k) => {
          const cells = [values ? words(values[k], 4) : "–", words(each, 4)].map((text) => element("td", {}, text));
          return element("tr", {}, element("th", { scope: "row" }, names[k]), ...cells);
        })
      : [];
    this.table.tBodies[0].replaceChildren(...rows);
  }
}
