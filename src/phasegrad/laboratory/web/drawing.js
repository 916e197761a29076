/** The network on its canvas: phases as hands on circles, couplings as lines, shifts as wedges. */

const FULL = 2 * Math.PI;
const NAMES = ["ink", "soft", "line", "card", "paper", "shift", "exact", "edge", "negative", "class0", "class1"];

/** The colours of the page as they are now, light or dark. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** A canvas whose pixels follow its size on the screen. */
export class Surface {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  /** Make it as sharp as the screen, empty, and return it. */
  cleared() {
    const { canvas, context } = this;
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    [this.width, this.height] = [canvas.clientWidth, canvas.clientHeight];
    const [wide, tall] = [Math.round(this.width * ratio), Math.round(this.height * ratio)];
    if (canvas.width !== wide || canvas.height !== tall) Object.assign(canvas, { width: wide, height: tall });
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.ratio = ratio;
    return context;
  }
}

/** The point at a phase on a circle: zero is at twelve o'clock, ahead is clockwise. */
const hand = ([x, y], radius, phase) => [x + radius * Math.sin(phase), y - radius * Math.cos(phase)];
/** The same phase as an angle of the canvas. */
const dial = (phase) => phase - Math.PI / 2;

/** Draws one network again and again; what does not move is kept as a picture. */
export class NetworkPicture {
  constructor(canvas) {
    this.surface = new Surface(canvas);
    this.backdrop = document.createElement("canvas");
    this.stale = true;
  }

  /** Forget the picture of what does not move: couplings, places, colours or the size have changed. */
  renew() {
    this.stale = true;
  }

  #measure(view) {
    const { width, height } = this.surface;
    const { inputs, outputs } = view.network;
    const [before, after] = [inputs, outputs].map((nodes) => (view.layered ? margin(view, nodes, width) : 40));
    const down = 44;
    const room = [width - before - after, height - 2 * down];
    this.places = view.layout.points.map(([x, y]) => [before + x * room[0], down + y * room[1]]);
    this.rows = new Map([inputs, outputs].flatMap((nodes) => {
      const rows = Math.min(2, Math.floor(this.#apart(nodes) / 14));
      return nodes.map((node) => [node, view.layered ? rows : 0]);
    }));
    let nearest = Infinity;
    const { places } = this;
    for (let i = 0; i < places.length; i++) {
      for (let j = 0; j < i; j++) {
        nearest = Math.min(nearest, Math.hypot(places[i][0] - places[j][0], places[i][1] - places[j][1]));
      }
    }
    const typical = Math.sqrt((room[0] * room[1]) / places.length);
    this.radius = Math.max(3,
      Math.min(width < 520 ? 21 : 27, Math.max(0.4 * nearest, Math.min(0.2 * typical, 0.7 * nearest))));
  }

  /** How far oscillators of one column lie apart; nothing where they fill more than one. */
  #apart(nodes) {
    const places = nodes.map((node) => this.places[node]).sort((one, other) => one[1] - other[1]);
    if (places.some(([x]) => x !== places[0][0])) return 0;
    return Math.min(Infinity, ...places.slice(1).map(([, y], k) => y - places[k][1]));
  }

  draw(view) {
    const context = this.surface.cleared();
    const { width, height, ratio } = this.surface;
    const key = `${width} ${height} ${ratio} ${view.look}`;
    if (this.stale || key !== this.key) {
      this.#measure(view);
      this.#drawBackdrop(view);
      Object.assign(this, { stale: false, key });
    }
    context.drawImage(this.backdrop, 0, 0, width, height);
    this.#drawNodes(context, view);
  }

  #drawBackdrop(view) {
    const { width, height, ratio } = this.surface;
    Object.assign(this.backdrop, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    const context = this.backdrop.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const { edges } = view.network;
    const { coupling } = view.parameters;
    const most = coupling.reduce((largest, each) => Math.max(largest, Math.abs(each)), 1e-9);
    const thickest = Math.max(1, Math.min(5, this.radius / 4.5));
    const veil = Math.min(1, Math.sqrt(120 / edges.length));
    edges.forEach((pair, e) => {
      const strength = Math.abs(coupling[e]) / most;
      context.strokeStyle = coupling[e] < 0 ? view.colours.negative : view.colours.edge;
      context.globalAlpha = veil * (0.3 + 0.6 * strength);
      context.lineWidth = 0.5 + thickest * strength;
      this.#line(context, pair);
    });
    context.globalAlpha = 1;
    if (view.selectedEdge !== null && edges[view.selectedEdge]) {
      context.strokeStyle = view.colours.ink;
      context.lineWidth = 1 + thickest * (Math.abs(coupling[view.selectedEdge]) / most);
      this.#line(context, edges[view.selectedEdge]);
    }
  }

  #line(context, [i, j]) {
    context.beginPath();
    context.moveTo(...this.places[i]);
    context.lineTo(...this.places[j]);
    context.stroke();
  }

  #drawNodes(context, view) {
    const { radius, places } = this;
    const { colours: paint } = view;
    this.#drawRings(context, view);
    if (view.magnified) this.#drawShifts(context, view);
    context.lineCap = "round";
    if (view.free) this.#drawHands(context, view.free, paint.line, Math.max(1, radius * 0.1));
    this.#drawHands(context, view.phases, paint.ink, Math.max(1.2, radius * 0.12));
    context.fillStyle = paint.ink;
    context.beginPath();
    for (const [x, y] of places) {
      context.moveTo(x + radius * 0.12, y);
      context.arc(x, y, radius * 0.12, 0, FULL);
    }
    context.fill();
    if (view.asked) this.#drawTargets(context, view);
    this.#drawLabels(context, view);
  }

  #drawRings(context, view) {
    const { radius, places } = this;
    const { colours: paint, network } = view;
    const rings = (nodes, size, stroke, width) => {
      context.beginPath();
      for (const node of nodes) {
        const [x, y] = places[node];
        context.moveTo(x + size, y);
        context.arc(x, y, size, 0, FULL);
      }
      context.strokeStyle = stroke;
      context.lineWidth = width;
      context.stroke();
    };
    context.fillStyle = paint.card;
    context.beginPath();
    for (const [x, y] of places) {
      context.moveTo(x + radius, y);
      context.arc(x, y, radius, 0, FULL);
    }
    context.fill();
    rings(places.keys(), radius, paint.soft, Math.max(0.8, radius * 0.05));
    rings(network.outputs, radius, paint.ink, Math.max(1, radius * 0.09));
    rings(network.inputs, radius * 0.86, paint.soft, Math.max(0.6, radius * 0.04));
    if (view.selectedNode !== null && places[view.selectedNode]) rings([view.selectedNode], radius + 4, paint.ink, 1.2);
  }

  #drawHands(context, phases, stroke, width) {
    const { radius, places } = this;
    context.strokeStyle = stroke;
    context.lineWidth = width;
    context.beginPath();
    places.forEach((place, i) => {
      context.moveTo(...place);
      context.lineTo(...hand(place, radius * 0.8, phases[i]));
    });
    context.stroke();
  }

  /** Wedges from the free hand, so many times larger than the shift. */
  #drawShifts(context, view) {
    const { radius, places } = this;
    context.fillStyle = view.colours.shift;
    context.strokeStyle = view.colours.shift;
    context.lineWidth = Math.max(1.5, radius * 0.13);
    context.lineCap = "butt";
    places.forEach((place, i) => {
      const turn = Math.max(-2.8, Math.min(2.8, (view.phases[i] - view.free[i]) * view.magnified));
      if (Math.abs(turn) < 0.01) return;
      const [start, end] = [dial(view.free[i]), dial(view.free[i] + turn)];
      context.globalAlpha = 0.22;
      context.beginPath();
      context.moveTo(...place);
      context.arc(...place, radius, start, end, turn < 0);
      context.fill();
      context.globalAlpha = 1;
      context.beginPath();
      context.arc(...place, radius, start, end, turn < 0);
      context.stroke();
    });
  }

  /** Small triangles outside the rim where the cost asks the outputs to be. */
  #drawTargets(context, view) {
    const { radius } = this;
    context.fillStyle = view.colours.exact;
    view.nodes.forEach((node, k) => {
      const place = this.places[node];
      if (radius < 13) {
        context.beginPath();
        context.arc(...hand(place, radius, view.asked[k]), Math.max(1.5, radius * 0.22), 0, FULL);
        context.fill();
        return;
      }
      const wide = 3.4 / radius + 0.1;
      context.beginPath();
      context.moveTo(...hand(place, radius + 2, view.asked[k]));
      context.lineTo(...hand(place, radius + 5 + radius * 0.28, view.asked[k] - wide));
      context.lineTo(...hand(place, radius + 5 + radius * 0.28, view.asked[k] + wide));
      context.fill();
    });
  }

  #drawLabels(context, view) {
    const { radius, places } = this;
    context.font = `${Math.max(11, Math.min(13, radius * 0.5))}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    const side = new Map(
      [...view.network.inputs.map((node) => [node, -1]), ...view.network.outputs.map((node) => [node, 1])]);
    places.forEach(([x, y], i) => {
      const rows = this.rows.get(i) ?? 0;
      const where = side.get(i) ?? 0;
      context.fillStyle = view.colours.soft;
      if (where && rows) {
        context.textAlign = where < 0 ? "right" : "left";
        const start = x + where * (radius + 8);
        view.notes[i].slice(0, rows).forEach((words, row, all) => {
          context.fillStyle = row === 0 ? view.colours.ink : view.colours.soft;
          const text = shortened(context, words, where < 0 ? start : this.surface.width - start);
          context.fillText(text, start, y + 15 * (row - (all.length - 1) / 2));
        });
      } else if (radius > 12) {
        context.textAlign = "center";
        context.strokeStyle = view.colours.card;
        context.lineWidth = 4;
        context.strokeText(view.names[i], x + radius * 0.95, y + radius * 0.95);
        context.fillText(view.names[i], x + radius * 0.95, y + radius * 0.95);
      }
    });
  }

  /** What lies under a point of the canvas: {node} or {edge} or null. */
  under(x, y, edges) {
    const near = this.places.findIndex(([a, b]) => Math.hypot(a - x, b - y) < Math.max(12, this.radius + 4));
    if (near >= 0) return { node: near };
    let best = { edge: -1, apart: 7 };
    edges.forEach(([i, j], edge) => {
      const apart = distance([x, y], this.places[i], this.places[j]);
      if (apart < best.apart) best = { edge, apart };
    });
    return best.edge >= 0 ? { edge: best.edge } : null;
  }
}

/** The room that the names of inputs or outputs need beside them. */
function margin({ notes }, nodes, width) {
  const longest = Math.max(0, ...nodes.map((node) => notes[node][0].length));
  const least = width < 520 ? 62 : 104;
  return Math.max(least, Math.min(width * 0.24, 40 + 6.4 * longest));
}

/** A text, cut where it would leave its room. */
function shortened(context, text, room) {
  let shown = text;
  while (shown.length > 1 && context.measureText(shown).width > room) shown = `${shown.slice(0, -2).trimEnd()}…`;
  return shown;
}

/** The distance of a point from a segment. */
function distance([x, y], [ax, ay], [bx, by]) {
  const [dx, dy] = [bx - ax, by - ay];
  const share = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - ax - share * dx, y - ay - share * dy);
}
