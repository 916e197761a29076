"""The studies reproduce what was published, and their checks can fail."""

import math

import numpy as np
import pytest

from phasegrad.studies import asymmetry, beta_error, finite_beta, identity, parameters, verification
from phasegrad.studies.finding import Check, published


def assert_all_pass(finding):
    assert finding.checks
    missed = [check for check in finding.checks if not check.passed]
    assert not missed, missed


@pytest.mark.parametrize("n", [6, 10, 15, 50, 100])
def test_table_1_is_reproduced(n):
    finding = identity.table1_row(n)
    assert_all_pass(finding)
    row = finding.data[0]
    known = next(row for row in published("table1")["rows"] if row["N"] == n)
    # The same nudge, 1e-4, was published for this column, from equilibria with residuals up to 1e-13.
    assert row["cos_autograd_two_phase"] == pytest.approx(known["cos_autograd_two_phase"], abs=1e-12)
    assert row["cos_two_phase_fd"] == pytest.approx(known["cos_two_phase_fd"], abs=1e-6)


@pytest.mark.parametrize("level", asymmetry.LEVELS)
def test_table_2_is_reproduced_seed_by_seed(level):
    finding = asymmetry.level(level)
    assert_all_pass(finding)
    known = next(row for row in published("asymmetry")["rows"] if row["asymmetry"] == level)
    np.testing.assert_allclose(finding.data[0]["values"], known["values"], atol=1e-9)
    assert f"{finding.data[0]['mean_cos']:.6f}" == f"{known['mean_cos']:.6f}"
    assert f"{finding.data[0]['std_cos']:.6f}" == f"{known['std_cos']:.6f}"


def test_finite_beta_is_reproduced_to_1e_9():
    finding = finite_beta.finite_beta()
    assert_all_pass(finding)
    known = published("finite_beta")
    for key in ("mean_cosine", "min_cosine", "mean_scale_error_pct"):
        assert finding.data[key] == pytest.approx(known[key], abs=1e-9)


def test_ten_seeds_exceed_what_the_paper_states():
    finding = identity.multi_seed(10)
    assert_all_pass(finding)
    assert min(row["cos_two_phase_fd"] for row in finding.data) > 0.999999


@pytest.mark.parametrize("series", identity.SERIES)
@pytest.mark.parametrize("n", [6, 30])
def test_universality_holds(n, series):
    assert_all_pass(identity.universality_row(n, series))


def test_every_parameter_passes():
    finding = parameters.parameters(1)
    assert_all_pass(finding)
    assert {row["parameter"] for row in finding.data} == {"omega", "coupling", "field_strength", "field_phase"}
    assert {row["method"] for row in finding.data} == {
        "two_phase",
        "centred",
        "holomorphic",
        "finite_difference",
        "autograd",
    }


def test_raw_frequencies_pass():
    assert_all_pass(parameters.raw_against_centred(3))


def test_orders_in_beta_pass():
    finding = beta_error.beta_error()
    assert_all_pass(finding)
    assert finding.data["slopes"]["two_phase"] == pytest.approx(1, abs=0.05)
    assert finding.data["slopes"]["centred"] == pytest.approx(2, abs=0.01)
    assert finding.data["complex_step_worst_at_1e-8"] < 1e-13


def test_a_wrong_gradient_fails_the_verification(monkeypatch):
    """The checks have teeth: a gradient off by one part in ten thousand in one entry is caught."""
    true = identity.two_phase

    class Bent:
        def __init__(self, gradient):
            self.gradient = gradient

        def get(self, name):
            values = self.gradient.get(name).copy()
            values[np.argmax(np.abs(values))] *= 1 + 1e-3
            return values

    monkeypatch.setattr(identity, "two_phase", lambda *args, **options: Bent(true(*args, **options)))
    assert not all(check.passed for check in identity.table1_row(10).checks)


def test_a_check_of_something_that_is_no_number_fails():
    assert not Check("x", math.nan, "<=", 1.0).passed
    assert not Check("x", math.nan, ">=", 1.0).passed
    assert Check("x", 1.0, ">=", 1.0).passed


def test_a_short_verification_passes_and_has_the_promised_keys():
    result = verification.verify(sizes=[6], seeds=2)
    assert result.passed
    data = result.as_dict()
    assert {"table1", "asymmetry", "finite_beta", "universality", "beta_error", "passed"} <= set(data)
    row_keys = {"N", "cos_two_phase_fd", "cos_autograd_two_phase", "cos_adjoint_fd", "residual"}
    assert row_keys <= set(data["table1"][0])
    assert {"asymmetry", "mean_cos", "std_cos", "values"} <= set(data["asymmetry"][0])
    assert {"mean_cosine", "min_cosine", "mean_scale_error_pct"} <= set(data["finite_beta"])


def test_without_torch_the_rest_is_still_verified(monkeypatch):
    monkeypatch.setattr(identity, "has_torch", False)
    monkeypatch.setattr(parameters, "has_torch", False)
    result = verification.verify(sizes=[6], seeds=1)
    assert result.passed
    data = result.as_dict()
    assert data["table1"][0]["cos_autograd_two_phase"] is None
    assert data["not_compared"] == ["autograd: PyTorch is not installed"]


@pytest.mark.parametrize(
    ("sizes", "seeds", "message"),
    [([], None, "at least one"), ([2], None, "at least 3"), ([6], 0, "'seeds'"), ([6.5], None, "whole number")],
)
def test_wrong_plans_are_refused(sizes, seeds, message):
    with pytest.raises(ValueError, match=message):
        verification.plan(sizes, seeds)
