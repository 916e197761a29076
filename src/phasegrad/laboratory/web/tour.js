/**
 * The tour: six steps through the paper's idea, and why half of its seeds fail. Each step sets the lab up by itself.
 */

import { element } from "lab/controls.js";

/** Data at which the free outputs are well away from their targets. */
const SAMPLE = [0.8, -0.6];

const calm = (lab, settings = {}) => {
  lab.put(lab.paper);
  const defaults = { beta: 0.1, noise: 0, centred: false, kind: "omega" };
  Object.assign(lab.bench, defaults, settings, { inputs: SAMPLE.slice(), target: [-0.2, 0.2] });
  lab.tab("gradient");
  lab.change(() => {});
};

const learning = (lab, recipe, start) => {
  lab.tab("learning");
  lab.classroom.begin({ task: "vowels", recipe, start });
};

const AHEAD = "d > 0: the spectral seed";
const BEHIND = "d < 0: its sign reversed";

export const STEPS = [
  {
    title: "Oscillators settle",
    text: "Each circle is an oscillator, its hand is its phase. Every one wants to turn at its own frequency; couplings pull neighbours together. Data sets the frequencies of the two inputs on the left. Shake the phases: they come to rest in a pattern, and that pattern is the network’s answer.",
    enter: (lab) => calm(lab),
    shows: "network",
    actions: [["Shake", (lab) => lab.stage.shake()]],
  },
  {
    title: "Nudge the outputs",
    text: "Blue triangles mark where the two outputs should be. A nudge pulls them there, weakly, with strength β. The outputs give way a little, and through the couplings every other oscillator shifts too. The shifts are small; the orange wedges show them enlarged.",
    enter: (lab) => calm(lab),
    shows: "network",
    actions: [["Nudge", (lab) => lab.stage.nudge()]],
  },
  {
    title: "The shift is the gradient",
    text: "Divide every shift by −β: these are the orange bars. Blue is the exact gradient of the cost by every oscillator’s own frequency, from a linear solve that sees the whole network. No oscillator computed anything: settling did. The same two states give the gradient by every coupling. β is 0.02 now, weaker than the 0.1 before, so that both agree closely.",
    enter: (lab) => calm(lab, { beta: 0.02 }),
    shows: "chart",
    actions: [
      ["Nudge", (lab) => lab.stage.nudge()],
      ["By couplings",
        (lab) => lab.change(() => (lab.bench.kind = lab.bench.kind === "coupling" ? "omega" : "coupling"))],
    ],
  },
  {
    title: "Bias, noise, and a nudge of both signs",
    text: "A strong nudge bends the answer: the error grows with β. A weak one drowns in the noise of the phase meter, which is divided by β too. Nudge both ways, +β and −β, and take the difference: the bias falls with β², so that a strong nudge, which noise cannot drown, is right again.",
    enter: (lab) => {
      calm(lab, { beta: 0.05 });
      lab.change(() => lab.bench.nudge());
    },
    shows: "error-block",
    choices: true,
    actions: [
      ["Strong nudge", (lab) => lab.change(() => Object.assign(lab.bench, { beta: 2, noise: 0, centred: false }))],
      ["Noisy meter",
        (lab) => lab.change(() => Object.assign(lab.bench, { beta: 0.02, noise: 0.0005, centred: false }))],
      ["Centred and strong",
        (lab) => lab.change(() => Object.assign(lab.bench, { beta: 0.6, noise: 0.0005, centred: true }))],
    ],
  },
  {
    title: "Learning",
    text: "Show a vowel, settle, nudge toward the right class, settle, and let every frequency and coupling move against its own gradient. After some epochs the network tells /a/ from /i/ by two formants. Points are vowels, the background is what the network decides; press on the map to try a sound.",
    enter: (lab) => learning(lab, "matched", "random, seed 1"),
    shows: "pair",
    actions: [["Learn", (lab) => lab.classroom.learn()]],
  },
  {
    title: "Why half of the paper’s seeds fail",
    text: "Each vowel has an output, and the decision goes to the output whose phase is nearest to 0. The cost, however, asks the right output for −0.2 and the other for +0.2, both equally far from 0: a tie. Call d how far, on average, output 1 is ahead of output 2. Networks that begin with d > 0 become classifiers; those with d < 0 learn to say the opposite, near 0 % right. Flip the sign and see, or keep the cost and take the decision that it asks for.",
    enter: (lab) => learning(lab, "paper", AHEAD),
    shows: "pair",
    choices: true,
    actions: [
      ["Learn with d > 0", (lab) => learnFrom(lab, "paper", AHEAD)],
      ["Flip the sign: d < 0", (lab) => learnFrom(lab, "paper", BEHIND)],
      ["d < 0, matched decision", (lab) => learnFrom(lab, "matched", BEHIND)],
    ],
  },
];

function learnFrom(lab, recipe, start) {
  learning(lab, recipe, start);
  lab.classroom.learn();
}

export class Tour {
  constructor(lab, root, opener) {
    Object.assign(this, { lab, root, opener, step: 0 });
    const part = (name) => root.querySelector(`[data-tour=${name}]`);
    this.parts = Object.fromEntries(
      ["count", "title", "text", "actions", "back", "next", "close", "dots", "more"].map((name) => [name, part(name)]));
    this.parts.back.addEventListener("click", () => this.open(this.step - 1));
    this.parts.next.addEventListener("click",
      () => (this.step + 1 < STEPS.length ? this.open(this.step + 1) : this.close()));
    this.parts.close.addEventListener("click", () => this.close());
    this.parts.more.addEventListener("click", () => root.classList.remove("compact"));
    opener.addEventListener("click", () => {
      const mine = lab.mine || lab.kept !== null;
      this.open(this.step);
      if (mine) lab.say("The tour shows networks of its own. Yours is kept: Back to my network shows it again.");
    });
    this.parts.dots.replaceChildren(...STEPS.map((step, k) => {
      const dot = element("button", { type: "button", className: "dot", title: step.title }, String(k + 1));
      dot.setAttribute("aria-label", `Step ${k + 1}: ${step.title}`);
      dot.addEventListener("click", () => this.open(k));
      return dot;
    }));
  }

  /** Go to a step; the lab is set up for it. */
  open(number, { focus = true } = {}) {
    const { parts, lab } = this;
    this.step = Math.max(0, Math.min(STEPS.length - 1, number));
    const step = STEPS[this.step];
    this.root.hidden = false;
    this.root.classList.remove("compact");
    this.opener.setAttribute("aria-expanded", "true");
    parts.count.textContent = `Step ${this.step + 1} of ${STEPS.length}`;
    parts.title.textContent = step.title;
    parts.text.textContent = step.text;
    parts.back.disabled = this.step === 0;
    parts.next.textContent = this.step + 1 < STEPS.length ? "Next" : "End the tour";
    parts.actions.replaceChildren(...step.actions.map(([name, run]) => {
      const button = element("button", { type: "button", className: "primary" }, name);
      button.addEventListener("click", () => this.#act(button, run));
      return button;
    }));
    [...parts.dots.children].forEach(
      (dot, k) => (k === this.step ? dot.setAttribute("aria-current", "step") : dot.removeAttribute("aria-current")));
    step.enter(lab);
    if (focus) parts.title.focus();
  }

  /** Do what a step offers, mark which of several was chosen, and bring what it changes into view. */
  #act(button, run) {
    const { actions } = this.parts;
    run(this.lab);
    const { shows, choices } = STEPS[this.step];
    if (choices) [...actions.children].forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
    this.root.classList.add("compact");
    this.lab.reveal(shows);
  }

  hide() {
    this.root.hidden = true;
    this.opener.setAttribute("aria-expanded", "false");
  }

  close() {
    this.hide();
    this.opener.focus();
    this.lab.resized();
  }
}
