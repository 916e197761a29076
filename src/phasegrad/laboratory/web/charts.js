/** Charts: bars of the gradient, its error over the nudge, the course of learning, decisions and output phases. */

const FONT = "11px system-ui, sans-serif";
/** Outputs whose arcs have room for names of their own. */
const MOST_ON_ARCS = 4;

/** A round step that cuts a span into about so many parts. */
function roundStep(span, parts) {
  const rough = span / parts;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((each) => each * power >= rough * 0.999);
}

function trimmed(value) {
  if (Math.abs(value) < 1e-12) return "0";
  const text = Math.abs(value) < 1e-3 ? value.toExponential(0) : Number(value.toPrecision(3)).toString();
  return text.replaceAll("-", "−");
}

/** Pairs of bars, measured beside exact. view: {measured, exact, spread, names, colours} */
export function drawBars(surface, view) {
  const context = surface.cleared();
  const { width, height } = surface;
  const { exact, measured, colours: paint } = view;
  const [left, right, top, bottom] = [44, 4, 8, 22];
  const most = exact.reduce((largest, each) => Math.max(largest, Math.abs(each)), 0) || 1;
  const [low, high] = limits(exact, most);
  const up = (value) => top + ((high - Math.max(low, Math.min(high, value))) / (high - low)) * (height - top - bottom);
  context.font = FONT;
  grid(context, surface, { low, high, up, left, right, paint });
  const slot = (width - left - right) / exact.length;
  const middle = (k) => left + (k + 0.5) * slot;
  pairsOfBars(context, { exact, measured, middle, up, slot, paint, spread: view.spread });
  if (measured) marksOfClipped(context, { measured, middle, up, low, high, slot, paint });
  Object.assign(context, { fillStyle: paint.soft, textAlign: "center", textBaseline: "alphabetic" });
  const every = Math.ceil(Math.max(17, ...view.names.map((name) => 6 + 6.5 * name.length)) / slot);
  view.names.forEach((name, k) => k % every === 0 && context.fillText(name, middle(k), height - 6));
}

function pairsOfBars(context, { exact, measured, middle, up, slot, paint, spread }) {
  // Thin bars keep their colour on whole pixels.
  const thin = slot < 8;
  const wide = thin ? Math.max(1, Math.floor(slot / 2)) : Math.min(16, slot * 0.42 - 0.5);
  const gap = thin ? 0 : 0.5;
  const place = (x) => (thin ? Math.round(x) : x);
  exact.forEach((value, k) => {
    bar(context, place(middle(k)) + gap, wide, up(0), up(value), paint.exact);
    if (!measured) return;
    bar(context, place(middle(k)) - gap - wide, wide, up(0), up(measured[k]), paint.shift);
    const ends = spread && [measured[k] - spread[k], measured[k] + spread[k]].map(up);
    if (ends) whisker(context, middle(k) - 0.5 - wide / 2, ...ends, paint.ink);
  });
}

/** Arrowheads where a measured value lies outside the chart. */
function marksOfClipped(context, { measured, middle, up, low, high, slot, paint }) {
  context.fillStyle = paint.shift;
  const half = Math.max(2, Math.min(6, slot * 0.3));
  measured.forEach((value, k) => {
    if (value >= low && value <= high) return;
    const [edge, sign] = value > high ? [up(high), -1] : [up(low), 1];
    const x = middle(k) - Math.min(8, slot * 0.2);
    context.beginPath();
    context.moveTo(x, edge + 7 * sign);
    context.lineTo(x - half, edge);
    context.lineTo(x + half, edge);
    context.fill();
  });
}

/** Limits of the axis: the exact gradient with room around it, both signs where both occur. */
function limits(exact, most) {
  const least = Math.min(0, ...exact);
  const largest = Math.max(0, ...exact);
  return [Math.min(least * 1.3, -0.2 * most), Math.max(largest * 1.3, 0.2 * most)];
}

function grid(context, surface, { low, high, up, left, right, paint }) {
  const step = roundStep(high - low, 5);
  context.textAlign = "right";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  for (let k = Math.ceil(low / step); k * step <= high; k++) {
    context.strokeStyle = k === 0 ? paint.soft : paint.line;
    context.globalAlpha = k === 0 ? 1 : 0.5;
    context.beginPath();
    context.moveTo(left, Math.round(up(k * step)) + 0.5);
    context.lineTo(surface.width - right, Math.round(up(k * step)) + 0.5);
    context.stroke();
    context.globalAlpha = 1;
    context.fillStyle = paint.soft;
    context.fillText(trimmed(k * step), left - 6, up(k * step));
  }
}

function bar(context, x, wide, zero, end, fill) {
  context.fillStyle = fill;
  context.fillRect(x, Math.min(zero, end), wide, Math.max(0.75, Math.abs(end - zero)));
}

function whisker(context, x, top, bottom, stroke) {
  context.strokeStyle = stroke;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, top);
  context.lineTo(x, bottom);
  context.stroke();
}

/**
 * The relative error of the gradient over beta, on logarithmic scales.
 * view: {curves: {oneSided, centred: [[beta, error], ...]}, noise: {oneSided, centred}, beta, centred, error, colours}
 */
export function drawErrors(surface, view) {
  const context = surface.cleared();
  const { width, height } = surface;
  const { colours: paint } = view;
  const [left, right, top, bottom] = [40, 10, 8, 30];
  const across = (beta) => left + ((Math.log10(beta) + 4) / 5) * (width - left - right);
  const up = (error) => top + ((1 - Math.log10(error)) / 8) * (height - top - bottom);
  context.font = FONT;
  frame(context, surface, { left, right, top, bottom, across, up, paint });
  context.save();
  context.beginPath();
  context.rect(left, top, width - left - right, height - top - bottom);
  context.clip();
  for (const scheme of ["oneSided", "centred"]) {
    const chosen = view.centred === (scheme === "centred");
    const noise = view.noise ? view.noise[scheme] : 0;
    const points = view.curves[scheme].map(([beta, bias]) => [beta, Math.hypot(bias, noise / beta)]);
    context.strokeStyle = paint.shift;
    context.lineWidth = chosen ? 2.2 : 1.4;
    context.globalAlpha = chosen ? 1 : 0.55;
    context.setLineDash(scheme === "centred" ? [5, 4] : []);
    path(context, points, across, up);
    context.setLineDash([]);
    context.globalAlpha = 1;
  }
  context.restore();
  const inside = (y) => Math.max(top, Math.min(height - bottom, y));
  if (view.error > 0 && Number.isFinite(view.error)) dot(context, across(view.beta), inside(up(view.error)), paint);
}

function frame(context, surface, { left, right, top, bottom, across, up, paint }) {
  const { width, height } = surface;
  context.strokeStyle = paint.line;
  context.fillStyle = paint.soft;
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const [error, words] of [[1, "100 %"], [1e-2, "1 %"], [1e-4, "10⁻⁴"], [1e-6, "10⁻⁶"]]) {
    context.globalAlpha = 0.6;
    line(context, left, up(error), width - right, up(error));
    context.globalAlpha = 1;
    context.fillText(words, left - 5, up(error));
  }
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  for (const [beta, words] of [[1e-4, "10⁻⁴"], [1e-3, "10⁻³"], [1e-2, "0.01"], [0.1, "0.1"], [1, "1"], [10, "10"]]) {
    context.globalAlpha = 0.6;
    line(context, across(beta), top, across(beta), height - bottom);
    context.globalAlpha = 1;
    context.fillText(words, Math.min(width - 12, across(beta)), height - bottom + 13);
  }
  context.fillText("nudge β", left + (width - left - right) / 2, height - 3);
}

function line(context, x, y, toX, toY) {
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, Math.round(y) + 0.5);
  context.lineTo(Math.round(toX) + 0.5, Math.round(toY) + 0.5);
  context.stroke();
}

function path(context, points, across, up) {
  context.beginPath();
  points.forEach(([x, y], k) => (k === 0 ? context.moveTo(across(x), up(y)) : context.lineTo(across(x), up(y))));
  context.stroke();
}

function dot(context, x, y, paint) {
  context.beginPath();
  context.arc(x, y, 5, 0, 2 * Math.PI);
  context.fillStyle = paint.shift;
  context.fill();
  context.strokeStyle = paint.card;
  context.lineWidth = 2;
  context.stroke();
}

/** Loss and accuracy, epoch by epoch. view: {history, epochs, colours} */
export function drawHistory(surface, view) {
  const context = surface.cleared();
  const { width, height } = surface;
  const { history, colours: paint } = view;
  const [left, right, top, bottom] = [44, 44, 8, 20];
  const most = Math.max(...history.map((each) => each.loss)) * 1.08 || 1;
  const across = (epoch) => left + (epoch / view.epochs) * (width - left - right);
  const up = (share) => top + (1 - share) * (height - top - bottom);
  context.font = FONT;
  context.strokeStyle = paint.line;
  context.textBaseline = "middle";
  for (const share of [0, 0.5, 1]) {
    context.lineWidth = 1;
    line(context, left, up(share), width - right, up(share));
    context.fillStyle = paint.soft;
    context.textAlign = "right";
    context.fillText(trimmed(share * most), left - 5, up(share));
    context.textAlign = "left";
    context.fillText(`${100 * share} %`, width - right + 5, up(share));
  }
  context.textBaseline = "alphabetic";
  context.textAlign = "center";
  const course = `epoch ${history.length - 1} of ${view.epochs}: ${Math.round(100 * history.at(-1).test)} % right`;
  context.fillText(course, (left + width - right) / 2, height - 4);
  context.lineWidth = 2;
  context.strokeStyle = paint.shift;
  path(context, history.map((each, k) => [k, each.loss / most]), across, up);
  context.strokeStyle = paint.exact;
  path(context, history.map((each, k) => [k, each.test]), across, up);
}

/**
 * Decisions over the square of inputs, samples on top. view: {map, cells, reach, samples, labels, here, colours}
 */
export function drawMap(surface, view) {
  const context = surface.cleared();
  const side = Math.min(surface.width, surface.height);
  const { colours: paint, cells, map } = view;
  const fills = [paint.class0, paint.class1];
  const cell = side / cells;
  for (let k = 0; k < map.length; k++) {
    context.globalAlpha = 0.26;
    context.fillStyle = map[k] < 2 ? fills[map[k]] : paint.soft;
    const [x, y] = [k % cells, Math.floor(k / cells)].map((each) => Math.round(each * cell));
    const [toX, toY] = [(k % cells) + 1, Math.floor(k / cells) + 1].map((each) => Math.round(each * cell));
    context.fillRect(x, y, toX - x, toY - y);
  }
  context.globalAlpha = 1;
  const at = ([x, y]) => [(x / view.reach + 1) * (side / 2), (1 - y / view.reach) * (side / 2)];
  const size = view.samples.length > 20 ? 2.6 : 6;
  view.samples.forEach((sample, k) => {
    context.beginPath();
    context.arc(...at(sample), size, 0, 2 * Math.PI);
    context.fillStyle = fills[view.labels[k]] ?? paint.soft;
    context.fill();
    context.lineWidth = 0.8;
    context.strokeStyle = paint.card;
    context.stroke();
  });
  if (view.here) {
    const [x, y] = at(view.here);
    context.strokeStyle = paint.ink;
    context.lineWidth = 1.5;
    line(context, x - 9, y, x + 9, y);
    line(context, x, y - 9, x, y + 9);
  }
}

/**
 * Output phases of many samples on arcs of the circle, one arc per output, opened to the range they need.
 * view: {phases, labels, names, asked, reach, colours}
 */
export function drawFan(surface, view) {
  const context = surface.cleared();
  const { width, height } = surface;
  const { colours: paint } = view;
  const open = view.reach >= Math.PI ? Math.PI : 0.72;
  const radius = open === Math.PI ? Math.min(width, height) / 2 - 22
    : Math.min(width / 2 / Math.sin(open) - 18, 2 * (height - 60));
  // A full circle leaves room for the list of its rings.
  const centre = open === Math.PI
    ? [Math.max(width / 2, Math.min(width - radius - 24, 180 + radius)), height / 2] : [width / 2, 30 + radius];
  const turn = (phase) => (Math.max(-view.reach, Math.min(view.reach, phase)) / view.reach) * open;
  const point = (phase, size) => [centre[0] + size * Math.sin(turn(phase)), centre[1] - size * Math.cos(turn(phase))];
  const gaps = Math.max(1, view.names.length - 1);
  const depth = open === Math.PI ? Math.min(0.75, 0.3 * gaps) * radius : Math.min(120, height * 0.42);
  const rings = view.names.map((_, k) => radius - (depth * k) / gaps);
  const listed = open === Math.PI || rings.length > MOST_ON_ARCS;
  context.font = FONT;
  if (listed) ringNames(context, view, height);
  rings.forEach((ring, k) => {
    context.strokeStyle = paint.line;
    context.lineWidth = 1;
    context.beginPath();
    context.arc(...centre, ring, -Math.PI / 2 - open, -Math.PI / 2 + open);
    context.stroke();
    context.fillStyle = paint.soft;
    const [x, y] = point(-0.95 * view.reach, ring);
    context.textAlign = "left";
    if (!listed) context.fillText(view.names[k], Math.max(2, x - 14), y + 18);
  });
  context.textAlign = "center";
  spokes(context, view, point, radius, rings.at(-1));
  const fills = [paint.class0, paint.class1];
  const many = view.phases.length > 20;
  const dots = rings.length > 1 ? Math.max(2.5, Math.min(6, 0.45 * (rings[0] - rings[1]))) : 6;
  context.globalAlpha = 0.75;
  view.phases.forEach((theta, k) => {
    if (theta === null) return;
    const aside = many ? ((k * 7919) % 11) - 5 : 0;
    context.fillStyle = fills[view.labels[k]] ?? paint.soft;
    theta.forEach((phase, output) => {
      context.beginPath();
      context.arc(...point(phase, rings[output] + aside), many ? 2 : dots, 0, 2 * Math.PI);
      context.fill();
    });
  });
  context.globalAlpha = 1;
}

/** Names of the rings in a list, from the outer to the inner, as many as there is room for. */
function ringNames(context, { names, colours: paint }, height) {
  Object.assign(context, { fillStyle: paint.soft, textAlign: "left", textBaseline: "alphabetic" });
  const room = Math.floor(height / 15) - 1;
  const shown = names.length > room ? [...names.slice(0, room - 1), `… ${names.length - room + 1} more`] : names;
  const ends = names.length > 1 ? { 0: " (outer ring)", [names.length - 1]: " (inner ring)" } : {};
  shown.forEach((name, k) => context.fillText(name + (ends[k] ?? ""), 2, 14 + 15 * k));
}

/** Phase zero, the ends of the range, and what the cost asks for. */
function spokes(context, view, point, radius, inner) {
  const { colours: paint } = view;
  const spoke = (phase, stroke, from, to, dash = []) => {
    context.strokeStyle = stroke;
    context.setLineDash(dash);
    context.beginPath();
    context.moveTo(...point(phase, from));
    context.lineTo(...point(phase, to));
    context.stroke();
    context.setLineDash([]);
  };
  const label = (phase, words) => {
    context.fillStyle = paint.soft;
    context.fillText(words, ...point(phase, radius + 13));
  };
  context.lineWidth = 1.5;
  spoke(0, paint.soft, inner - 16, radius + 6);
  label(0, "0");
  for (const phase of new Set(view.asked)) {
    spoke(phase, paint.exact, inner - 16, radius + 6, [3, 3]);
    if (Math.abs(phase) > 0.12 * view.reach) label(phase, trimmed(phase));
  }
}
