/** The lab: puts the bench, the stage, the readout, the classroom, the panel and the tour together. */

import { Bench } from "lab/bench.js";
import { Classroom } from "lab/classroom.js";
import { element } from "lab/controls.js";
import { colours } from "lab/drawing.js";
import { Panel } from "lab/panel.js";
import { Readout } from "lab/readout.js";
import { checked, packed, sceneFrom, unpacked } from "lab/scenes.js";
import { Stage } from "lab/stage.js";
import { Tour } from "lab/tour.js";

const byId = (id) => document.getElementById(id);
const parts = (ids) => Object.fromEntries(ids.map((id) => [id, byId(id)]));
const STATE = "#s=";
const TOUR = "#tour=";
const TABS = ["gradient", "learning"];

export class Lab {
  constructor(data) {
    this.data = data;
    this.paper = data.paper;
    this.motion = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.look = 0;
    Object.assign(this, { mine: data.scene !== null, kept: null });
    this.colours = colours();
    this.bench = new Bench(data.scene ?? data.paper);
    this.#name();
    this.stage = new Stage(this, byId("network"), parts(["status", "note", "answer"]));
    this.readout = new Readout(this, {
      ...parts(["bars", "errors", "result", "formula", "whiskers"]), block: byId("error-block"), table: byId("numbers"),
    });
    const classroom = ["choices", "learn", "step", "reset", "map", "fan", "history"];
    this.classroom = new Classroom(this, data.tasks, {
      ...parts(classroom), pair: byId("pair"), result: byId("learned"), panel: byId("panel-learning"),
    });
    this.panel = new Panel(this,
      { nudge: byId("controls-nudge"), data: byId("controls-data"), one: byId("controls-one") });
    this.tour = new Tour(this, byId("tour"), byId("open-tour"));
    this.#listen();
    this.#loaded();
  }

  /** Whether things jump to where they end instead of moving. */
  get still() {
    return this.motion.matches;
  }

  #name() {
    const { scene, network } = this.bench;
    this.names = Array.from({ length: network.size }, (_, i) => scene.labels?.[i] ?? String(i));
    this.edgeNames = network.edges.map(([i, j]) => `${this.names[i]}–${this.names[j]}`);
  }

  /** The names of the entries of a gradient. */
  namesOf(kind) {
    return kind === "coupling" ? this.edgeNames : this.names;
  }

  /** Put a scene on the bench; one's own is kept, as it is now, where another takes its place. */
  put(scene, { learner = false, mine = false } = {}) {
    if (!learner) this.classroom.leave();
    if (mine) this.kept = null;
    else if (this.mine) this.kept = this.bench.current();
    this.mine = mine;
    this.bench.load(scene);
    this.#loaded();
  }

  /** Bring one's own network back. */
  home() {
    this.tour.hide();
    this.put(this.kept, { mine: true });
    this.tab("gradient");
    this.say("");
    byId("nudge").focus();
  }

  #loaded() {
    this.#name();
    byId("home").hidden = this.kept === null;
    byId("open-tour").title = this.mine ? "Shows the paper’s network in place of yours" : "";
    byId("shown").textContent = this.bench.scene.title ?? "";
    this.stage.load();
    this.panel.load();
    this.restAll();
    if (!byId("panel-learning").hidden) this.classroom.draw();
    this.classroom.report();
  }

  /** Change something on the bench and show what follows. */
  change(how, { renew = false } = {}) {
    how();
    this.bench.refresh();
    if (renew) this.stage.picture.renew();
    this.restAll();
    this.panel.sync();
    this.classroom.draw();
  }

  /** Show everything at rest, and say how it stands; `quiet` leaves the words for later, `still` the picture. */
  restAll({ quiet = false, still = false } = {}) {
    if (!still) this.stage.rest();
    this.readout.rest();
    if (!quiet) {
      this.stage.report();
      this.readout.report();
    }
    this.syncButtons();
  }

  syncButtons() {
    const { bench } = this;
    byId("nudge").textContent = bench.nudged ? "Release" : "Nudge";
    byId("nudge").setAttribute("aria-pressed", String(bench.nudged));
    byId("nudge").disabled = !bench.settled;
    byId("read").hidden = !(bench.nudged && bench.noise > 0);
  }

  /** Show one of the two panels. */
  tab(name) {
    for (const each of TABS) {
      const chosen = each === name;
      byId(`tab-${each}`).setAttribute("aria-selected", String(chosen));
      byId(`tab-${each}`).tabIndex = chosen ? 0 : -1;
      byId(`panel-${each}`).hidden = !chosen;
    }
    if (name === "learning") this.classroom.draw();
    else this.readout.rest({ reading: true });
  }

  /** Bring a part of the page into view. */
  reveal(id) {
    byId(id).scrollIntoView({ block: "nearest", behavior: this.still ? "auto" : "smooth" });
  }

  /** The page has another size or other colours. */
  resized() {
    this.look += 1;
    this.colours = colours();
    if (!this.stage.busy) this.stage.draw();
    this.readout.rest({ reading: true });
    this.classroom.draw();
  }

  #listen() {
    byId("nudge").addEventListener("click", () => {
      if (this.bench.nudged) this.change(() => this.bench.release());
      else this.stage.nudge();
    });
    byId("home").addEventListener("click", () => this.home());
    byId("shake").addEventListener("click", () => this.stage.shake());
    byId("read").addEventListener("click", () => {
      this.bench.readAgain();
      this.restAll();
    });
    for (const name of TABS) {
      byId(`tab-${name}`).addEventListener("click", () => this.tab(name));
      byId(`tab-${name}`).addEventListener("keydown", (event) => {
        if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
        const other = TABS[1 - TABS.indexOf(name)];
        this.tab(other);
        byId(`tab-${other}`).focus();
      });
    }
    byId("save").addEventListener("click", () => this.#save());
    byId("share").addEventListener("click", () => this.share());
    byId("open").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", () => this.#open(byId("file")));
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    for (const query of [this.motion, dark]) query.addEventListener("change", () => this.resized());
    new ResizeObserver(() => this.resized()).observe(byId("bench"));
    window.addEventListener("hashchange", () => this.#fromAddress());
  }

  say(text) {
    byId("message").textContent = text;
  }

  async #open(input) {
    const [file] = input.files;
    if (!file) return;
    try {
      const scene = sceneFrom(await file.text());
      this.put(scene, { mine: true });
      this.tab("gradient");
      this.say(`Opened ${file.name}.`);
    } catch (error) {
      this.say(`Could not open ${file.name}. ${error.message}`);
    }
    input.value = "";
  }

  #save() {
    const address = URL.createObjectURL(new Blob([JSON.stringify(this.bench.current())], { type: "application/json" }));
    element("a", { href: address, download: "phasegrad-lab.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
    this.say("Saved phasegrad-lab.json; Open shows it again.");
  }

  /** All that a shared address holds. */
  state() {
    const { bench, stage } = this;
    const { beta, noise, centred, kind, target, nudged } = bench;
    const { selectedNode, selectedEdge } = stage;
    return { scene: bench.current(), beta, noise, centred, kind, target, nudged, selectedNode, selectedEdge };
  }

  async share() {
    const address = `${location.href.split("#")[0]}${STATE}${await packed(this.state())}`;
    history.replaceState(null, "", address);
    try {
      await navigator.clipboard.writeText(address);
      this.say("The address of this state is copied, and in the address bar.");
    } catch {
      this.say("The address bar holds this state: copy it from there.");
    }
  }

  /** Show what the address asks for; whether it asked for anything. */
  async #fromAddress() {
    if (location.hash.startsWith(TOUR)) {
      this.tour.open(Number(location.hash.slice(TOUR.length)) - 1 || 0, { focus: false });
      return true;
    }
    if (!location.hash.startsWith(STATE)) return false;
    try {
      const held = await unpacked(location.hash.slice(STATE.length));
      const { scene, selectedNode, selectedEdge, nudged, target, ...settings } = held;
      this.put(checked(scene), { mine: true });
      this.#adopt(settings);
      if (usableTarget(this.bench, target)) this.bench.target = target;
      this.bench.nudged = Boolean(nudged);
      const known = selectedNode in this.names && selectedEdge in this.edgeNames;
      if (known) Object.assign(this.stage, { selectedNode, selectedEdge });
      this.stage.picture.renew();
      this.change(() => {});
    } catch (error) {
      this.say(error.message);
    }
    return true;
  }

  #adopt({ beta, noise, centred, kind }) {
    const { bench } = this;
    if (beta > 0 && beta <= 10) bench.beta = beta;
    if (noise >= 0 && noise <= 1) bench.noise = noise;
    bench.centred = Boolean(centred);
    if (String(kind).split(" ")[0] in bench.system.parameters) bench.kind = kind;
  }

  /** Begin with what the address asks for, else with the tour. */
  async begin() {
    if (!(await this.#fromAddress()) && this.data.tour) this.tour.open(0, { focus: false });
    document.documentElement.dataset.ready = "yes";
  }
}

function usableTarget(bench, target) {
  const count = bench.nodes.length;
  if (bench.classes) return Number.isInteger(target) && target >= 0 && target < count;
  return Array.isArray(target) && target.length === count && target.every(Number.isFinite);
}

/** The data of the page: inside it, or beside it where the files are served one by one. */
async function pageData() {
  const inside = JSON.parse(byId("data").textContent);
  return inside ?? (await fetch("scene.json")).json();
}

pageData().then(
  (data) => {
    globalThis.lab = new Lab(data);
    return globalThis.lab.begin();
  },
  () => {
    byId("message").textContent =
      "There is no scene.json beside this page. Write the page with phasegrad lab --out lab.html.";
  },
);
