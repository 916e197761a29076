"""Circuits: components, netlists, running ngspice, phases from waveforms, and the study of them."""

import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from own_interactions import Strong

import phasegrad as pg
from phasegrad.circuits import (
    Bridge,
    Circuit,
    CircuitWarning,
    Components,
    Injection,
    Locked,
    MeasuredInteraction,
    Netlist,
    NgspiceError,
    Rings,
    Waveforms,
    averaging_shift,
    crossing_frequency,
    fit_interaction,
    lock,
    ngspice,
    phase_history,
    settling_cycles,
    write_netlist,
)
from phasegrad.hardware import Device
from phasegrad_paper.studies import ON_REQUEST, STUDIES, Verdict
from phasegrad_paper.studies.circuit import STUDY, CircuitResults, work
from phasegrad_paper.studies.circuit.__main__ import main as runner

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "circuit.json"

#: A 2+5+2 network whose phases are more than a radian apart.
WIDE = work.drawn_network(3, work.WIDE)


def pair(detuning=0.5, coupling=1.0, **options):
    return pg.Network([(0, 1)], coupling, [detuning / 2, -detuning / 2], outputs=[1], **options)


def wave(phases, frequency=1e6, cycles=100, steps=57, drift=0.0, third=0.1):
    """Waveforms of known phases, at steps that are not even, with a third harmonic; the last one may drift."""
    stream = np.random.default_rng(0)
    times = np.sort(stream.uniform(0, cycles / frequency, cycles * steps))
    angles = 2 * np.pi * frequency * times[:, None] + np.asarray(phases)
    angles[:, -1] += 2 * np.pi * drift * frequency * times
    return Waveforms(times, np.cos(angles) + third * np.cos(3 * angles + 0.4))


def values(netlist, letter):
    """Return the numbers of all components of a kind, by name."""
    found = re.findall(rf"^({letter}\w+) \S+ \S+ (\S+)", netlist.text, flags=re.MULTILINE)
    return {name: float(value) for name, value in found}


class TestComponents:
    def test_a_tank_has_its_frequency_and_impedance(self):
        parts = Components(frequency=2e8, impedance=75.0)
        assert 1 / (2 * np.pi * np.sqrt(parts.inductance * parts.capacitance)) == pytest.approx(2e8)
        assert np.sqrt(parts.inductance / parts.capacitance) == pytest.approx(75.0)

    def test_without_a_word_about_it_a_circuit_has_the_scale_that_its_pages_name(self):
        assert Circuit(pair(0.8)).components.eps == Components().eps == 0.01

    def test_all_of_the_last_fifth_must_be_settled(self):
        """The second phase moves by 0.3 rad in the middle of the first of the windows that make up the last fifth."""
        times = np.linspace(0, 100e-6, 20_001)
        for share, moved in ((0.81, True), (0.78, False)):
            late = np.where(times < share * 100e-6, 0.3, 0.0)
            angles = 2 * np.pi * 1e6 * times[:, None] + np.stack([np.zeros_like(late), late], axis=1)
            found = lock(Waveforms(times, np.cos(angles)), 1e6)
            assert (found.errors.max() > 0.01) == moved

    def test_a_coupling_is_what_averaging_makes_of_its_resistor(self):
        parts = Components(eps=0.02)
        rate = 1 / (2 * parts.resistors(1.7) * parts.capacitance)
        assert rate == pytest.approx(0.02 * 1.7 * 2 * np.pi * parts.frequency)

    def test_a_frequency_is_what_its_capacitor_makes_of_the_tank(self):
        parts = Components(eps=0.02)
        farad = parts.capacitors([1.5])[0]
        assert 1 / np.sqrt(parts.inductance * farad) == pytest.approx(2 * np.pi * parts.frequency * 1.03)

    def test_the_frequency_of_a_lone_oscillator_is_van_der_pols(self):
        """Against the differential equation itself, integrated over fifty periods."""
        from scipy.integrate import solve_ivp

        gain = 0.4
        found = solve_ivp(
            lambda _t, y: [y[1], gain * (1 - y[0] ** 2) * y[1] - y[0]], (0, 400), [2.0, 0.0], rtol=1e-10, atol=1e-12,
            events=lambda _t, y: y[0],
        )  # fmt: skip
        zeros = found.t_events[0]
        rate = np.pi * (len(zeros) - 41) / (zeros[-1] - zeros[40])
        parts = Components(gain=gain)
        assert parts.own_frequency / parts.frequency == pytest.approx(rate, abs=2e-5)  # the next term has gain^6

    @pytest.mark.parametrize("name", ["frequency", "impedance", "eps", "gain", "amplitude"])
    @pytest.mark.parametrize("value", [0, -1.0, np.nan, "much"])
    def test_values_that_are_not_positive_are_refused(self, name, value):
        with pytest.raises(ValueError, match=f"'{name}' parameter of Components must be a float greater than 0"):
            Components(**{name: value})

    def test_a_frequency_that_is_not_positive_is_refused(self):
        with pytest.raises(ValueError, match=r"Oscillator 1 would need a frequency of -1e\+05 Hz"):
            Components(eps=0.1).capacitors([0.0, -11.0])
        with pytest.raises(ValueError, match="a coupling greater than 0"):
            Components().resistors([1.0, 0.0])


class TestNetlist:
    def test_every_oscillator_and_coupling_is_there(self):
        network = pg.layered(2, 5, 2, seed=0)
        netlist = write_netlist(network, Components(), [1.0, -1.0])
        assert len(values(netlist, "L")) == len(values(netlist, "C")) == network.size
        assert np.allclose(list(values(netlist, "R").values()), Components().resistors(network.coupling), rtol=1e-12)
        assert not netlist.driven

    def test_torques_move_capacitors_of_outputs_and_reference_alone(self):
        network = pg.layered(2, 5, 2, seed=0)
        plain, pulled = (
            values(write_netlist(network, Components(), [1.0, -1.0], torques=each), "C") for each in (None, [0.3, 0.2])
        )
        changed = [int(name[1:]) for name in plain if plain[name] != pulled[name]]
        assert sorted(changed) == sorted({network.reference, *network.outputs})
        shift = np.sqrt(plain["C0"] / pulled["C0"]) * (1 + 0.01 * (1.5 - network.omega.sum() / 9)) - 1
        assert shift == pytest.approx(0.01 * (1.5 - network.omega.sum() / 9 - 0.5), rel=1e-6)

    def test_a_negative_coupling_is_a_crossed_pair(self):
        netlist = write_netlist(pair(coupling=-0.5, signed=True), Components())
        assert values(netlist, "R") == {"R0a": pytest.approx(1e5), "R0b": pytest.approx(1e5)}
        assert "E0 m0 0 n0 0 -1" in netlist.text
        assert "R0a n0 m1" in netlist.text

    def test_sources_stand_for_clamped_inputs_and_fields(self):
        network = pg.Network([(0, 1)], 1.0, [0.0, 0.2], inputs=[0], outputs=[1], input_mode="phase", input_scale=1.0)
        netlist = write_netlist(network, Components(), [np.pi / 6], nudges=[Injection(1, 0.3, 0.1)])
        degrees = [float(each) for each in re.findall(r"^V\S+ .*0 0 (\S+)\)$", netlist.text, flags=re.MULTILINE)]
        assert degrees == [pytest.approx(120.0), pytest.approx(90 + np.degrees(0.3))]
        assert netlist.driven
        assert "L0 " not in netlist.text

    def test_a_field_is_a_source_of_its_phase_behind_the_resistor_of_its_strength(self):
        network = pair(field_strength=[0.0, 0.5], field_phase=[0.0, 0.4])
        netlist = write_netlist(network, Components())
        resistors = values(netlist, "R")
        # Half the strength of the coupling is twice its resistance; a field of zero is none.
        assert resistors == {"R0": pytest.approx(5e4), "RF1": pytest.approx(1e5)}
        (degrees,) = re.findall(r"^VF1 sF1 0 sin\(.* 0 0 (\S+)\)$", netlist.text, flags=re.MULTILINE)
        assert float(degrees) == pytest.approx(90 + np.degrees(0.4))

    def test_a_coupling_of_zero_is_left_out(self):
        network = pg.networks.ring(4, omega=np.zeros(4), outputs=[2], signed=True).replace(
            coupling=[1.0, 1.0, 0.0, 1.0]
        )
        assert len(values(write_netlist(network, Components()), "R")) == 3

    @pytest.mark.parametrize(
        ("network", "said"),
        [
            (pair(interaction=pg.terms.OddSeries((1.0, 0.2))), "have the interaction Sine"),
            (pair(interaction=Strong()), "have the interaction Sine"),
            (pair().replace(coupling_reverse=[0.5]), "needs reciprocal coupling"),
            (pair(second_strength=0.3), "no component for the parameter 'second_strength'"),
        ],
    )
    def test_what_tanks_and_resistors_cannot_be_is_refused(self, network, said):
        with pytest.raises(ValueError, match=said):
            Circuit(network)

    def test_nonsense_is_refused_in_words(self):
        with pytest.raises(TypeError, match="A circuit is made of a Network"):
            Circuit([1, 2])
        with pytest.raises(ValueError, match="An Injection needs a circuit whose sources set the frequency"):
            Circuit(pair()).netlist(nudges=[Injection(1, 0.0, 0.1)])
        with pytest.raises(TypeError, match="A nudge of a circuit is a Bridge or an Injection"):
            Circuit(pair()).netlist(nudges=[0.1])
        with pytest.raises(ValueError, match="strength"):
            Circuit(pair()).netlist(nudges=[Bridge(0, 1, 0.0)])
        with pytest.raises(ValueError, match="names node 7"):
            Circuit(pair()).netlist(nudges=[Bridge(0, 7, 0.1)])
        with pytest.raises(ValueError, match="'cycles' parameter"):
            Circuit(pair(), cycles=0).netlist()
        with pytest.raises(ValueError, match="has not run yet"):
            Circuit(pair()).read()
        with pytest.raises(ValueError, match="take all gain"):
            averaging_shift(pair(18.0, coupling=10.0), Components(eps=0.1))


class TestPhases:
    def test_phases_frequency_and_amplitude_of_known_waveforms(self):
        phases = np.array([0.0, 0.7, -1.2])
        found = lock(wave(phases, 1.013e6), 1e6)
        assert found.frequency == pytest.approx(1.013e6, rel=1e-9)
        assert found.phases == pytest.approx(phases, abs=1e-8)
        assert found.amplitudes == pytest.approx(1.0, abs=1e-8)
        assert found.locked
        assert found.words.startswith("Locked at 1.013e+06 Hz")

    def test_phases_of_a_driven_circuit_are_counted_from_the_source(self):
        found = lock(wave([0.4, 0.7]), 1e6, driven=True)
        assert found.phases == pytest.approx([0.4, 0.7], abs=1e-8)

    def test_the_one_that_drifts_is_named(self):
        found = lock(wave([0.0, 0.1, 0.2, 0.3], drift=0.003), 1e6)
        assert found.drifting == (3,)
        assert "The oscillators 3 drift" in found.words

    def test_one_that_does_not_oscillate_is_named(self):
        waveforms = wave([0.0, 0.1, 0.2])
        waveforms.voltages[:, 1] *= 0.01
        assert lock(waveforms, 1e6).silent == (1,)

    def test_too_few_cycles_are_refused(self):
        with pytest.raises(ValueError, match="Got 20 cycles in all: simulate more"):
            lock(wave([0.0, 0.1], cycles=20), 1e6)

    def test_settling_is_counted_until_the_last_exception(self):
        waveforms = wave([0.0, 0.0], steps=60, third=0.0)
        slow = 0.5 * np.exp(-waveforms.times * 1e6 / 10)
        waveforms.voltages[:, 1] = np.cos(2e6 * np.pi * waveforms.times + slow)
        # 0.5 exp(-n / 10) = 0.01 at n = 39; a window of two cycles sees the mean over it.
        assert settling_cycles(waveforms, 1e6) == pytest.approx(40, abs=2)
        cycles, phases = phase_history(waveforms, 1e6, window=4)
        assert phases.shape == (len(cycles), 2)
        assert phases[4, 1] == pytest.approx(0.5 * np.exp(-1.8), abs=0.005)

    def test_the_rough_frequency_is_found_without_a_hint(self):
        assert crossing_frequency(wave([0.0, 1.0], 3.3e6)) == pytest.approx(3.3e6, rel=0.02)
        with pytest.raises(ValueError, match="do not oscillate"):
            crossing_frequency(Waveforms(np.arange(9.0), np.zeros((9, 2))))


class TestInteraction:
    TRUE = MeasuredInteraction((0.01, 0.0, -0.001), (-0.004, 0.0005))

    def test_a_fit_finds_both_parts_of_a_known_interaction(self):
        detunings = np.linspace(-0.015, 0.015, 12)
        phases = np.array([self.TRUE.locked_phase(each) for each in detunings])
        found = fit_interaction(detunings, phases, 1 + self.TRUE.value(phases), harmonics=3)
        assert found.sines == pytest.approx(self.TRUE.sines, abs=1e-10)
        assert found.cosines == pytest.approx((*self.TRUE.cosines, 0.0), abs=1e-10)

    def test_slopes_are_those_of_the_values(self):
        angles, step = np.linspace(-3, 3, 13), 1e-6
        slopes = (self.TRUE.value(angles + step) - self.TRUE.value(angles - step)) / (2 * step)
        assert self.TRUE.derivative(angles) == pytest.approx(slopes, abs=1e-9)

    def test_an_odd_interaction_has_no_evenness_and_a_locking_range(self):
        odd = MeasuredInteraction((0.01,), (0.0,))
        assert odd.evenness == 0.0
        assert np.isnan(odd.locked_phase(0.03))
        assert odd.locked_phase(0.0) == 0.0
        assert self.TRUE.evenness > 0.3

    def test_too_few_pairs_are_refused(self):
        with pytest.raises(ValueError, match="3 harmonics need as many pairs"):
            fit_interaction([0.1, 0.2], [0.1, 0.2], [1.0, 1.0])

    @pytest.mark.parametrize("change", [{"capacitance": 0}, {"threshold": 1.0}, {"skew": -1.0}])
    def test_rings_that_cannot_be_are_refused(self, change):
        with pytest.raises(ValueError, match=f"'{next(iter(change))}'"):
            Rings(**change)
        with pytest.raises(ValueError, match="greater than 0 and join rings 0 to 1"):
            Rings().netlist([0.0, 0.1], [(0, 1)], [-5.0])
        with pytest.raises(ValueError, match="one number above -1 per ring"):
            Rings().netlist([0.0, -1.5])


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Put a program of a few lines in the place of ngspice."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "scratch").mkdir()

    def put(body):
        place = tmp_path / "bin"
        place.mkdir(exist_ok=True)
        (place / "ngspice").write_text(f"#!/bin/sh\n{body}\n")
        (place / "ngspice").chmod(0o755)
        monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
        return tmp_path / "scratch"

    return put


class TestRunning:
    NETLIST = write_netlist(pair(), Components(), cycles=60)

    def test_a_missing_program_is_named_with_how_to_get_it(self, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        assert not pg.circuits.has_ngspice()
        with pytest.raises(NgspiceError, match=r"There is no ngspice here.*apt-get install ngspice"):
            Circuit(pair()).run(np.zeros((1, 0)))

    def test_a_crash_is_told_and_nothing_is_left(self, fake):
        scratch = fake('echo "Error: unknown device" >&2; exit 1')
        with pytest.raises(NgspiceError, match="could not simulate this circuit: Error: unknown device"):
            ngspice(self.NETLIST)
        fake("kill -9 $$")
        with pytest.raises(NgspiceError, match="ended with status -9 and no word"):
            ngspice(self.NETLIST)
        assert list(scratch.iterdir()) == []

    def test_a_step_too_small_is_tried_once_more_with_looser_tolerances(self, fake, tmp_path):
        fake(f'grep options circuit.cir >> {tmp_path}/asked; echo "TRAN: Timestep too small; time = 1" >&2; exit 1')
        with pytest.raises(NgspiceError, match="looser tolerances neither: TRAN: Timestep too small"):
            ngspice(self.NETLIST)
        tolerances = re.findall(r"reltol=(\S+)", (tmp_path / "asked").read_text())
        assert len(tolerances) == 2
        assert float(tolerances[1]) > float(tolerances[0])

    def test_looser_tolerances_that_work_are_told(self, fake, tmp_path, monkeypatch):
        table = np.column_stack([np.linspace(0, 60e-6, 3000)] * 3)
        table[:, 1:] = np.cos(2e6 * np.pi * table[:, [0]] + [0.0, 0.4])
        header = "No. Variables: 3\nNo. Points: 3000\nVariables:\n\t0\ttime\ttime\n\t1\tv(n0)\tvoltage\n"
        (tmp_path / "raw").write_bytes(f"{header}\t2\tv(n1)\tvoltage\nBinary:\n".encode() + table.tobytes())
        fake(f'if grep -q gear circuit.cir; then cp {tmp_path}/raw out.raw; else echo "timestep too small"; exit 1; fi')
        circuit = Circuit(pair(), cycles=60)
        with pytest.warns(CircuitWarning, match="Sample 0 took looser tolerances"):
            circuit.run(np.zeros((1, 0)))
        assert circuit.read()[0] == pytest.approx([0.0, 0.4], abs=1e-6)

    @pytest.mark.parametrize(
        "body", ["echo nothing > out.raw", "printf 'No. Variables: 9\\nNo. Points: 9\\nBinary:\\n' > out.raw"]
    )
    def test_a_file_that_cannot_be_read_is_told(self, fake, body):
        fake(body)
        with pytest.raises(NgspiceError, match="ngspice wrote"):
            ngspice(self.NETLIST)

    def test_a_run_that_takes_too_long_is_ended_and_nothing_is_left(self, fake):
        scratch = fake("exec sleep 60")
        begin = time.monotonic()
        with pytest.raises(NgspiceError, match=r"took longer than 0\.2 s and was ended"):
            ngspice(self.NETLIST, limit=0.2)
        assert time.monotonic() - begin < 30
        assert list(scratch.iterdir()) == []

    def test_ctrl_c_leaves_nothing_behind(self, fake, monkeypatch):
        scratch = fake("exec sleep 60")

        def interrupted(*_args, **_options):
            raise KeyboardInterrupt

        monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ngspice(self.NETLIST)
        assert list(scratch.iterdir()) == []

    def test_a_limit_that_is_none_is_refused(self):
        with pytest.raises(ValueError, match="'limit'"):
            Circuit(pair(), limit=0)
        with pytest.raises(TypeError, match="takes a Netlist"):
            ngspice("R1 1 0 5")

    @pytest.mark.parametrize(
        "lines",
        [
            ".control\nshell touch HIT\n.endc",
            "  .CONTROL\nshell touch HIT\n.endc",
            "*# shell touch HIT",
            ".include other.cir",
            ".inc other.cir",
            ".lib other.cir",
            ".unknown",
            "a1 [in] [out] process",
        ],
    )
    def test_text_that_can_run_commands_is_refused_unless_it_is_trusted(self, fake, lines):
        """A stranger's netlist runs nothing; ngspice is not even started."""
        fake("touch started; exit 1")
        text = self.NETLIST.text.replace(".end\n", f"{lines}\n.end\n")
        with pytest.raises(ValueError, match="can run commands or read files") as caught:
            ngspice(dataclasses.replace(self.NETLIST, text=text))
        assert repr(lines.split()[0]) in str(caught.value)
        with pytest.raises(NgspiceError, match="status 1"):
            ngspice(dataclasses.replace(self.NETLIST, text=text), trusted=True)

    def test_a_script_instead_of_a_netlist_is_refused(self):
        with pytest.raises(ValueError, match="Line 1 of this netlist"):
            ngspice(dataclasses.replace(self.NETLIST, text="*ng_script\nshell touch HIT\n"))

    def test_phases_far_from_the_phase_model_are_told_before_anything_is_simulated(self, monkeypatch):
        """The averaging shift of this network is 0.629; at eps 0.001 it is still 0.21, so that no eps is advised."""
        monkeypatch.setattr("phasegrad.circuits._circuit.ngspice", lambda *_args, **_options: 1 / 0)
        none, one = np.zeros((1, 0)), [[0.0, 0.0], [0.3, -0.5]]
        for network, inputs, eps, words in (
            (
                pg.networks.signed_layers(2, 3, 2, seed=1),
                one,
                0.01,
                r"sample 1 .* by 0\.63 radians\. No eps .* eps=0\.001 it .* 0\.21",
            ),
            (WIDE, [[1.0, -1.0]], 0.01, r"With eps=0\.0021 it would stay below 0\.1"),
            (pair(18.0, coupling=10.0), none, 0.1, "more than the first order"),
        ):
            with pytest.warns(CircuitWarning, match=words) as told, pytest.raises(ZeroDivisionError):
                Circuit(network, eps=eps).run(inputs)
            assert [each.filename for each in told] == [__file__]
        with pytest.raises(ZeroDivisionError):
            Circuit(pair(0.8)).run(none)  # a warning would be raised instead

    def test_the_eps_that_is_advised_does(self):
        shifts = [
            np.max(np.abs(averaging_shift(WIDE, Circuit(WIDE, eps=eps).components, [1.0, -1.0])))
            for eps in (0.01, 0.0021 / 0.8, 0.0021)
        ]
        assert shifts[0] > shifts[1] > 0.1 > shifts[2]

    def test_a_network_that_does_not_lock_has_no_averaging_shift(self):
        with pytest.raises(ValueError, match="no stable equilibrium"):
            averaging_shift(pair(3.0), Components())

    def test_a_sample_that_does_not_lock_is_nan_and_told(self, monkeypatch):
        monkeypatch.setattr("phasegrad.circuits._circuit.ngspice", lambda *_args, **_options: wave([0, 1], drift=0.01))
        circuit = Circuit(pair())
        with pytest.warns(CircuitWarning, match="Sample 0 did not lock. The oscillators"):
            circuit.run(np.zeros((1, 0)))
        assert np.all(np.isnan(circuit.read()))

    def test_inputs_and_torques_of_another_shape_are_refused(self):
        circuit = Circuit(pg.layered(2, 3, 2, seed=0))
        with pytest.raises(ValueError, match=r"'inputs' parameter of Circuit\.run"):
            circuit.run([[1.0]])
        with pytest.raises(ValueError, match=r"takes inputs of shape \(B, n_in\)"):
            circuit.run([1.0, 2.0])
        with pytest.raises(ValueError, match=r"'torques' parameter of Circuit\.run"):
            circuit.run([[1.0, 2.0]], [[1.0]])


@pytest.mark.usefixtures("spice")
class TestSimulation:
    def test_two_oscillators_lock_where_the_phase_model_says(self):
        """That is where sin phi = detuning / 2 K; what is left is of order eps."""
        circuit = Circuit(pair(0.8), eps=0.02, cycles=150)
        assert isinstance(circuit, Device)
        circuit.run(np.zeros((1, 0)))
        assert circuit.read()[0] == pytest.approx([0.0, -np.arcsin(0.4)], abs=0.02)
        circuit.program({"omega": np.array([0.0, 0.0])})
        circuit.run(np.zeros((1, 0)), [[0.4]])
        # The torque on the output is taken from the reference: the pair is detuned by twice as much.
        assert circuit.read()[0, 1] == pytest.approx(np.arcsin(0.4), abs=0.02)

    def test_the_first_order_correction_takes_most_of_the_error_away(self):
        network = pg.Network([(0, 1), (1, 2)], [1.5, 1.0], [1.0, -0.2, -0.8], outputs=[2])
        circuit = Circuit(network, eps=0.005, cycles=600)
        circuit.run(np.zeros((1, 0)))
        off = circuit.read()[0] - pg.find_equilibrium(network).phases
        left = off - averaging_shift(network, circuit.components)
        assert np.max(np.abs(left)) < np.max(np.abs(off)) / 2
        assert np.max(np.abs(off)) < 0.1

    def test_a_pair_beyond_its_locking_range_drifts(self):
        circuit = Circuit(pair(3.0), eps=0.02, cycles=150)
        with pytest.warns(CircuitWarning, match="drift"):
            circuit.run(np.zeros((1, 0)))
        assert np.all(np.isnan(circuit.read()))

    def test_two_rings_lock_with_a_frequency_that_an_odd_interaction_would_not_have(self):
        rings = Rings()
        alone = rings.run([0.0], cycles=60).frequency
        ahead, behind = (rings.run([0.0, each], [(0, 1)], [50e3], cycles=200) for each in (0.01, -0.01))
        fitted = fit_interaction(
            [0.01, -0.01], [ahead.phases[1], behind.phases[1]], [ahead.frequency / alone, behind.frequency / alone],
            harmonics=1,
        )  # fmt: skip
        assert 0.3 < ahead.phases[1] < 0.6
        assert fitted.evenness == pytest.approx(0.4, abs=0.05)

    @pytest.mark.slow
    def test_phases_gradients_and_crossed_couplings_of_a_layered_circuit(self):
        network = pg.layered(2, 5, 2, seed=0)
        errors = [work.phases(eps, 0, work.WIDE)["error"] for eps in (0.02, 0.01)]
        assert errors[1] < min(errors[0], 0.05)
        assert work.phases(0.01, 0, work.WIDE)["corrected"] < 0.01
        found = work.gradients(0.01, 0, work.NARROW)
        assert found["bridge"]["omega"] > 0.9999
        assert found["bridge"]["coupling"] > 0.999
        assert found["torques"]["omega"] > 0.9999
        mixed = network.replace(signed=True, coupling=np.where(np.arange(network.n_edges) == 3, -0.5, network.coupling))
        circuit = Circuit(mixed)
        circuit.run([[1.0, -1.0]])
        assert circuit.read()[0] == pytest.approx(pg.find_equilibrium(mixed, [1.0, -1.0]).phases, abs=0.05)

    @pytest.mark.slow
    def test_sources_hold_the_phases_of_clamped_inputs_and_fields(self):
        network = pg.Network(
            [(0, 1), (1, 2), (0, 2)], [1.0, 0.8, 1.2], [0.0, 0.3, -0.2], inputs=[0], outputs=[2], input_mode="phase",
            input_scale=1.0, field_strength=[0.0, 0.5, 0.5], field_phase=[0.0, 0.4, -0.3],
        )  # fmt: skip
        circuit = Circuit(network)
        circuit.run([[0.6]])
        expected = pg.find_equilibrium(network, [0.6]).phases
        shift = averaging_shift(network, circuit.components, [0.6])
        assert circuit.read()[0] == pytest.approx(expected, abs=0.05)
        assert circuit.read()[0] - shift == pytest.approx(expected, abs=0.01)


class TestStudy:
    STORED = CircuitResults.read(RESULTS)

    def test_it_is_on_request_with_names_of_its_own(self):
        assert STUDY in ON_REQUEST
        assert STUDY not in STUDIES

    def test_the_stored_results_are_whole_and_decide_every_claim(self):
        assert set(self.STORED.pieces) == set(STUDY.plan(None))
        verdicts = {each.claim.key: each.verdict for each in self.STORED.judged()}
        assert not {Verdict.NOT_MEASURED, Verdict.UNDECIDED} & set(verdicts.values())
        assert {piece["ngspice"] for piece in self.STORED.pieces.values()} == {"39"}
        assert all(piece["locked"] for name, piece in self.STORED.pieces.items() if name.startswith("phases"))

    def test_the_stored_figures_keep_what_is_asked(self):
        kept = {each.claim.key: each.kept for each in self.STORED.judged()}
        for key in ("circuit-mapping", "circuit-falling", "circuit-learning", "circuit-rings"):
            assert kept[key], key

    def test_the_stored_netlists_are_those_that_are_written_today(self):
        piece = self.STORED.pieces["phases wide 0.01 0"]
        assert Circuit(work.drawn_network(0, work.WIDE), eps=0.01).netlist(work.INPUTS).text == piece["netlist"]
        rings = self.STORED.pieces["rings"]
        assert Rings().netlist([0.0, 0.021], [(0, 1)], [rings["resistance"]], cycles=250).text == rings["netlist"]

    def test_the_stored_pairs_of_rings_give_the_stored_interaction(self):
        found = self.STORED.pieces["rings"]
        parts = [found[name][::2] for name in ("detunings", "phases", "frequencies")]
        fitted = fit_interaction(*parts)
        assert fitted.sines == pytest.approx(found["sines"], rel=1e-6)
        predicted = [fitted.locked_phase(each) for each in found["detunings"][1::2]]
        assert predicted == pytest.approx(found["phases"][1::2], abs=0.02)

    def test_the_page_is_made_from_the_file_without_ngspice(self, tmp_path, monkeypatch):
        page = tmp_path / "circuits.md"
        text = (ROOT / "docs" / "circuits.md").read_text(encoding="utf-8")
        page.write_text(
            re.sub(r"(<!-- table [\w-]+ -->\n).*?(<!-- end)", r"\1\2", text, flags=re.DOTALL), encoding="utf-8"
        )
        monkeypatch.setenv("PATH", str(tmp_path))
        assert runner([str(RESULTS), "--stored", "--page", str(page)]) == 0
        assert page.read_text(encoding="utf-8") == text

    def test_without_results_nothing_is_measured(self):
        assert {each.verdict for each in CircuitResults().judged()} == {Verdict.NOT_MEASURED}
        assert len(CircuitResults().tables()) == 6

    @pytest.mark.parametrize("text", ["nonsense", "[]", '{"format": 1}', '{"kind": "phasegrad circuit", "format": 1}'])
    def test_other_files_are_refused(self, tmp_path, capsys, text):
        (tmp_path / "a.json").write_text(text)
        assert runner([str(tmp_path / "a.json"), "--stored"]) == 2
        assert "is not a file of results on circuits" in capsys.readouterr().err
        assert runner([str(tmp_path / "b.json"), "--stored"]) == 2
        assert "There is no file" in capsys.readouterr().err

    def test_the_command_line_says_what_is_missing(self, tmp_path):
        done = subprocess.run(
            [sys.executable, "-m", "phasegrad", "reproduce", "circuit", "--out", str(tmp_path / "out")],
            env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert "There is no ngspice here" in done.stderr

    def test_the_file_is_plain_json_with_words_of_its_kind(self):
        data = json.loads(RESULTS.read_text(encoding="utf-8"))
        assert (data["kind"], data["format"]) == ("phasegrad circuit", 1)


def test_values_are_frozen():
    for value in (Components(), Bridge(0, 1, 0.1), Rings(), lock(wave([0.0, 0.1]), 1e6)):
        with pytest.raises(AttributeError):
            value.frequency = 1.0
    assert isinstance(lock(wave([0.0, 0.1]), 1e6), Locked)
    assert isinstance(TestRunning.NETLIST, Netlist)
