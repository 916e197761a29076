/** Where oscillators are drawn: in columns where data runs from inputs to outputs, else on a circle or by springs. */

const MOST_COLUMNS = 6;
const MOST_ON_CIRCLE = 26;
/** Inputs that stand in one column, so that their names have room. */
const MOST_IN_LINE = 16;

/** Positions in the unit square. */
export function arranged(network) {
  const levels = levelsOf(network);
  let points;
  if (levels) points = inColumns(levels, network.size);
  else points = network.size <= MOST_ON_CIRCLE ? onCircle(network.size) : bySprings(network);
  return { points };
}

/** Distances from the inputs, the outputs last; null where that says nothing. */
function levelsOf(network) {
  if (!network.inputs.length) return null;
  const outputs = new Set(network.outputs);
  const level = new Int32Array(network.size).fill(-1);
  const neighbours = Array.from({ length: network.size }, () => []);
  for (const [i, j] of network.edges) {
    neighbours[i].push(j);
    neighbours[j].push(i);
  }
  let front = network.inputs.filter((node) => !outputs.has(node));
  for (const node of front) level[node] = 0;
  for (let depth = 1; front.length; depth++) {
    const next = [];
    for (const node of front) {
      for (const other of neighbours[node]) {
        if (level[other] < 0 && !outputs.has(other)) {
          level[other] = depth;
          next.push(other);
        }
      }
    }
    front = next;
  }
  const deepest = level.reduce((most, each) => Math.max(most, each), 0);
  for (let node = 0; node < network.size; node++) {
    if (outputs.has(node) || level[node] < 0) level[node] = deepest + 1;
  }
  return deepest + 1 < MOST_COLUMNS ? level : null;
}

function inColumns(level, size) {
  const groups = Array.from({ length: Math.max(...level) + 1 }, () => []);
  for (let node = 0; node < size; node++) groups[level[node]].push(node);
  const tallest = Math.max(8, Math.ceil(Math.sqrt(size * 0.9)));
  const most = (depth) => (depth === 0 ? Math.max(tallest, MOST_IN_LINE) : tallest);
  const columns = groups.flatMap(
    (group, depth) => slices(group, most(depth)).map((nodes, k) => ({ nodes, first: k === 0 })));
  const places = [];
  columns.forEach((column, k) => places.push(k === 0 ? 0 : places[k - 1] + (column.first ? 1 : 0.5)));
  const width = places.at(-1) || 1;
  const points = Array.from({ length: size }, () => [0.5, 0.5]);
  const tall = Math.max(2, ...columns.map((column) => column.nodes.length));
  columns.forEach(({ nodes }, k) => {
    // Short columns spread a little, so that their names have room.
    const step = Math.max(1 / (tall - 1), Math.min(1.6 / (tall - 1), 1 / nodes.length));
    nodes.forEach((node, row) => (points[node] = [places[k] / width, 0.5 + (row - (nodes.length - 1) / 2) * step]));
  });
  return points;
}

function slices(nodes, tallest) {
  const count = Math.ceil(nodes.length / tallest);
  const each = Math.ceil(nodes.length / count);
  return Array.from({ length: count }, (_, k) => nodes.slice(k * each, (k + 1) * each));
}

function onCircle(size) {
  return Array.from({ length: size }, (_, k) => {
    const angle = (2 * Math.PI * k) / size - Math.PI / 2;
    return [0.5 + 0.5 * Math.cos(angle), 0.5 + 0.5 * Math.sin(angle)];
  });
}

/** Fruchterman and Reingold's springs from a sunflower, so that the same network always looks the same. */
function bySprings({ size, edges }) {
  const golden = Math.PI * (3 - Math.sqrt(5));
  const points = Array.from({ length: size }, (_, k) => {
    const radius = 0.5 * Math.sqrt((k + 0.5) / size);
    return [0.5 + radius * Math.cos(k * golden), 0.5 + radius * Math.sin(k * golden)];
  });
  const ideal = 0.8 / Math.sqrt(size);
  const rounds = Math.max(40, Math.min(150, Math.floor(4e6 / (size * size))));
  for (let round = 0; round < rounds; round++) {
    const moves = points.map(() => [0, 0]);
    const away = (apart) => (ideal / apart) ** 2;
    for (let i = 0; i < size; i++) for (let j = 0; j < i; j++) push(points, moves, i, j, away);
    for (const [i, j] of edges) push(points, moves, i, j, (apart) => -apart / ideal);
    const reach = 0.1 * (1 - round / rounds) + 0.002;
    points.forEach((point, k) => {
      const length = Math.hypot(...moves[k]) || 1;
      const share = Math.min(length * ideal, reach) / length;
      for (const axis of [0, 1]) point[axis] += moves[k][axis] * share;
    });
  }
  return fitted(points);
}

function push(points, moves, i, j, strength) {
  const across = points[i][0] - points[j][0];
  const along = points[i][1] - points[j][1];
  const apart = Math.hypot(across, along) || 1e-6;
  const force = strength(apart) / apart;
  moves[i][0] += force * across;
  moves[i][1] += force * along;
  moves[j][0] -= force * across;
  moves[j][1] -= force * along;
}

function fitted(points) {
  const bounds = [0, 1].map((axis) => {
    const values = points.map((point) => point[axis]);
    return [Math.min(...values), Math.max(...values)];
  });
  return points.map(
    (point) => point.map((each, axis) => (each - bounds[axis][0]) / (bounds[axis][1] - bounds[axis][0] || 1)));
}
