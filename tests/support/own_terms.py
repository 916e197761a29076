"""A term that a user might write, and a graph to try it on."""

import numpy as np

import phasegrad as pg
from phasegrad.terms import Parameter

PATH = [[0, 1], [1, 2]]


class Tilt(pg.terms.Term):
    """A term of one's own written out, on the edges: a constant push of their first end away from the second."""

    every = Parameter("tilt", "edges")

    def force(self, graph, values, phases):
        return self.drive(graph, values) + 0 * phases

    def energy(self, graph, values, phases):
        return np.sum(values["tilt"] * graph.angles(phases), axis=1)

    def drive(self, graph, values):
        return graph.at_ends(values["tilt"], -values["tilt"])

    def energy_slopes(self, graph, values, phases):
        return {"tilt": graph.angles(phases)}

    def force_slopes(self, graph, values, phases, response):
        return {"tilt": -graph.angles(response)}
