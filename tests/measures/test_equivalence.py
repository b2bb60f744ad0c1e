"""Two one-sided tests and the difference test: against statsmodels, a published table, and simulated studies."""

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_measures.equivalence import (
    difference_power,
    difference_test,
    equivalence_power,
    equivalence_test,
    pairs_for_difference,
    pairs_for_equivalence,
)
from pluralbench_measures.errors import MeasuresError
from scipy.stats import t
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import ttost_paired

DIFFERENCES = st.lists(st.floats(-4, 4).map(lambda value: round(value, 2)), min_size=2, max_size=40).filter(
    lambda values: np.std(values) > 0.01
)


@given(DIFFERENCES, st.sampled_from([0.1, 0.5, 1.0]))
def test_as_statsmodels_has_it_and_as_the_interval_says(values: list[float], margin: float) -> None:
    found = equivalence_test(values, margin)
    p_value, *_ = ttost_paired(np.array(values), np.zeros(len(values)), -margin, margin)
    assert found.p_value == pytest.approx(p_value, abs=1e-9)
    assert found.low is not None
    assert found.high is not None
    if abs(p_value - 0.05) > 1e-6:
        assert (p_value < 0.05) == (-margin < found.low and found.high < margin)


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0, 0.0]])
def test_there_is_nothing_to_test_by(values: list[float]) -> None:
    for found in (equivalence_test(values, 0.5), difference_test(values)):
        assert (found.n, found.p_value, found.low, found.sd) == (len(values), None, None, None)


def test_a_margin_of_nothing_is_refused() -> None:
    with pytest.raises(MeasuresError, match=r"^The equivalence margin must be above 0; it is 0\.$"):
        equivalence_test([0.0, 1.0], 0.0)


@pytest.mark.parametrize(
    ("variation", "people", "power"), [(0.15, 12, 0.8305), (0.20, 20, 0.8347), (0.25, 28, 0.8074), (0.30, 40, 0.8158)]
)
def test_the_power_is_that_of_the_published_table(variation: float, people: int, power: float) -> None:
    """Crossover studies of bioequivalence with a ratio of 0.95, whose numbers of people are the known ones (Diletti,
    Hauschke and Steinijans, 1991) and their exact power what PowerTOST gives."""
    error = sqrt(log(1 + variation**2)) * sqrt(2 / people)
    assert equivalence_power(error, people - 2, log(1.25), log(0.95)) == pytest.approx(power, abs=5e-5)
    fewer = sqrt(log(1 + variation**2)) * sqrt(2 / (people - 2))
    assert equivalence_power(fewer, people - 4, log(1.25), log(0.95)) < 0.8


@pytest.mark.parametrize(("pairs", "difference"), [(20, 0.0), (40, 0.2)])
def test_simulated_studies_succeed_as_often(pairs: int, difference: float) -> None:
    drawn = np.random.default_rng(1).normal(difference, 0.9, (20_000, pairs))
    error, mean = drawn.std(1, ddof=1) / sqrt(pairs), drawn.mean(1)
    reach = t.ppf(0.95, pairs - 1) * error
    shown = ((mean - reach > -0.5) & (mean + reach < 0.5)).mean()
    assert shown == pytest.approx(equivalence_power(0.9 / sqrt(pairs), pairs - 1, 0.5, difference), abs=0.012)


@pytest.mark.parametrize("difference", [0.3, 0.5, 1.0])
def test_pairs_for_a_difference_are_those_of_statsmodels(difference: float) -> None:
    wanted = TTestPower().solve_power(difference, power=0.8, alpha=0.05)
    assert pairs_for_difference(1.0, difference) == int(np.ceil(wanted))


@settings(max_examples=20)
@given(st.floats(0.3, 2.0), st.floats(0.3, 1.5), st.floats(0.0, 0.25), st.sampled_from([0.5, 0.8, 0.95]))
def test_the_number_of_pairs_is_the_least(sd: float, margin: float, difference: float, power: float) -> None:
    found = pairs_for_equivalence(sd, margin, difference=difference, power=power)
    assert found is not None

    def reached(pairs: int) -> float:
        return equivalence_power(sd / sqrt(pairs), pairs - 1, margin, difference)

    assert reached(found) >= power
    assert found == 2 or reached(found - 1) < power


def test_no_number_is_enough() -> None:
    assert pairs_for_equivalence(1.0, 0.5, difference=0.5) is None
    assert pairs_for_equivalence(1.0, 0.5, difference=0.499) is None
    assert pairs_for_difference(1.0, 0.0) is None
    assert pairs_for_difference(1.0, 0.001) is None
    assert difference_power(0.001, 20, 4.0) == 1.0


def test_a_difference_is_found_and_none_is_not() -> None:
    different = difference_test([1.0, 2.0, 1.5, 1.0, 2.5])
    alike = difference_test([0.5, -0.5, 0.0, 0.25, -0.25])
    assert different.p_value is not None
    assert different.p_value < 0.01
    assert different.low is not None
    assert different.low > 0
    assert (alike.mean, alike.p_value) == (0.0, 1.0)
