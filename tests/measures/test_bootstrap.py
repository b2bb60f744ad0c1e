"""The bootstrap: whole clusters, seeded, the same draws for two runs on the same clusters, and honest at the ends."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_measures.bootstrap import RESAMPLES, Estimate, bootstrap_estimate, mean_of, resample, sums_of

rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.booleans()), min_size=1, max_size=30)


@given(rows)
def test_the_first_row_is_the_data_itself(given_: list[tuple[int, int, bool]]) -> None:
    cell, cluster, won = (np.array(column) for column in zip(*given_, strict=True))
    [found] = resample([sums_of(cell, cluster, won.astype(np.float64))], 0)
    cells = list(range(found.won.shape[1]))
    assert found.pooled(cells)[0] == pytest.approx(won.mean())
    assert (found.decisions(cells), found.clusters(cells)) == (len(given_), len(set(cluster.tolist())))
    for one in cells:
        own = won[cell == one]
        assert found.decisions([one]) == len(own)
        assert np.isnan(found.pooled([one])[0]) if not len(own) else found.pooled([one])[0] == pytest.approx(own.mean())
    shares = found.weighted(cells, [1.0] * len(cells))[0]
    assert shares == pytest.approx(np.mean([won[cell == one].mean() for one in set(cell.tolist())]))


def test_two_runs_on_the_same_clusters_are_drawn_together() -> None:
    generator = np.random.default_rng(1)
    cell, cluster = np.zeros(200, dtype=np.int64), generator.integers(0, 40, 200)
    won = generator.random(200) < 0.6
    tables = [sums_of(cell, cluster, values.astype(np.float64)) for values in (won, ~won)]
    first, opposite = (drawn.pooled([0]) for drawn in resample(tables, 7))
    assert first.shape == (1 + RESAMPLES,)
    assert first + opposite == pytest.approx(1.0), "each resample is of the same clusters in both"
    assert not np.array_equal(first, resample(tables, 8)[0].pooled([0]))


def test_what_is_missing_has_no_interval() -> None:
    missing = np.full(1 + RESAMPLES, np.nan)
    assert bootstrap_estimate(missing) == Estimate(None)
    assert np.isnan(mean_of([]))
    assert np.isnan(mean_of([missing, np.zeros(1 + RESAMPLES)])).all()


def test_a_difference_has_the_interval_of_its_resamples() -> None:
    values = np.concatenate([[0.3], np.linspace(-1, 1, RESAMPLES)])
    found = bootstrap_estimate(values, 5, 4)
    assert (found.value, found.n, found.clusters) == (0.3, 5, 4)
    assert found.low == pytest.approx(-0.95)
    assert found.high == pytest.approx(0.95)


@pytest.mark.heavy
def test_measuring_needs_no_torch_and_no_scipy_before_it_is_used() -> None:
    code = (
        "import sys\n"
        "from pluralbench_measures import agreement, bootstrap, calibration, intervals, paired, rankings\n"
        "print([name for name in ('torch', 'scipy', 'statsmodels', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
