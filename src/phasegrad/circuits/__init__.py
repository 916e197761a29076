"""Circuits: networks as netlists, run by ngspice, and their phases."""
