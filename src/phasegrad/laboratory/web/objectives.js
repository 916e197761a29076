/** Objectives: a cost of the output phases with its force and Hessian, and the decision that belongs to it. */

const identity = (count, scale = 1) =>
  Float64Array.from({ length: count * count }, (_, k) => (k % (count + 1) === 0 ? scale : 0));
const largest = (values) => values.reduce((best, each, k) => (each > values[best] ? k : best), 0);
const sum = (values) => values.reduce((total, each) => total + each, 0);

function softmax(values) {
  const most = Math.max(...values);
  const weights = values.map((each) => Math.exp(each - most));
  const total = sum(weights);
  return weights.map((each) => each / total);
}

const squares = {
  cost: (theta, target) => 0.5 * sum(theta.map((each, k) => (each - target[k]) ** 2)),
  force: (theta, target) => theta.map((each, k) => target[k] - each),
  hessian: (theta) => identity(theta.length),
};

const differences = {
  cost: (theta, target) => 0.5 * sum(differences.force(theta, target).map((each) => each ** 2)),
  force: (theta, target) => {
    const away = squares.force(theta, target);
    const mean = sum(away) / away.length;
    return away.map((each) => each - mean);
  },
  hessian: (theta) => identity(theta.length).map((each) => each - 1 / theta.length),
};

const periodic = {
  cost: (theta, target) => sum(theta.map((each, k) => 1 - Math.cos(each - target[k]))),
  force: (theta, target) => theta.map((each, k) => Math.sin(target[k] - each)),
  hessian: (theta, target) => {
    const matrix = identity(theta.length);
    theta.forEach((each, k) => (matrix[k * (theta.length + 1)] = Math.cos(each - target[k])));
    return matrix;
  },
};

const entropy = (sharpness) => {
  const shares = (theta) => softmax(theta.map((each) => sharpness * Math.cos(each)));
  return {
    cost: (theta, target) => -sum(shares(theta).map((share, k) => target[k] * Math.log(share))),
    force: (theta, target) => {
      const share = shares(theta);
      return theta.map((each, k) => sharpness * Math.sin(each) * (share[k] - target[k]));
    },
    hessian: (theta, target) => {
      const [share, count] = [shares(theta), theta.length];
      const slope = theta.map((each) => -sharpness * Math.sin(each));
      return identity(count).map((same, place) => {
        const [k, l] = [Math.floor(place / count), place % count];
        const bend = -sharpness * Math.cos(theta[k]) * (share[k] - target[k]);
        return slope[k] * (same * share[k] - share[k] * share[l]) * slope[l] + same * bend;
      });
    },
  };
};

const oneHot = (right, other) => (count) =>
  Array.from({ length: count }, (_, c) => Array.from({ length: count }, (_, k) => (k === c ? right : other)));

/** The class that would cost least. */
const cheapest = (formula, table) => (theta) =>
  largest(table(theta.length).map((target) => -formula.cost(theta, target)));
const largestCosine = (theta) => largest(theta.map(Math.cos));

/** Every objective by its name in Python, made from its settings. */
const KINDS = {
  PhaseTargets: () => ({ ...squares, table: null, decide: null }),
  PaperPair: ({ margin }) => ({ ...squares, table: oneHot(-margin, margin), decide: largestCosine }),
  NearestTarget: ({ margin }) => distance(squares, oneHot(-margin, margin)),
  OutputDifferences: ({ margin }) => distance(differences, oneHot(-margin, margin)),
  PeriodicDistance: ({ margin }) => distance(periodic, oneHot(-margin, margin)),
  OneHotPhases: () => distance(periodic, oneHot(Math.PI / 2, -Math.PI / 2)),
  CosineCrossEntropy: ({ sharpness }) => ({ ...entropy(sharpness), table: oneHot(1, 0), decide: largestCosine }),
};

function distance(formula, table) {
  return { ...formula, table, decide: cheapest(formula, table) };
}

export const OBJECTIVES = Object.keys(KINDS);

/** The objective of a scene: {kind, margin or sharpness}. */
export function objectiveOf(settings) {
  return { kind: settings.kind, ...KINDS[settings.kind](settings) };
}

/** The cost of one target: a class number where the objective has classes, else a phase per output. */
export function costOf(objective, target, count) {
  const row = objective.table === null ? target : objective.table(count)[target];
  return {
    cost: (theta) => objective.cost(theta, row),
    force: (theta) => objective.force(theta, row),
    hessian: (theta) => objective.hessian(theta, row),
  };
}

/** The phases that a target asks of the outputs, null where it asks for none in particular. */
export function askedPhases(settings, objective, target, count) {
  if (objective.table === null) return target;
  if (settings.kind === "CosineCrossEntropy") return Array.from({ length: count },
    (_, k) => (k === target ? 0 : Math.PI));
  return objective.table(count)[target];
}
