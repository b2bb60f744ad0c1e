"""Names of models in tables and figures: short, and unlike where the models are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench.results.names import short_names

PARTS = st.lists(st.sampled_from(["..", ".", "a", "b", "c"]), min_size=1, max_size=4)


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["models/tiny-a", "../models/tiny-b"], ["tiny-a", "tiny-b"]),
        (["tiny-b", "../models/tiny-b"], ["tiny-b", "models/tiny-b"]),
        (["/x/a/step-1", "/x/b/step-1", "/x/b/step-1"], ["a/step-1", "b/step-1", "b/step-1"]),
        (["../m", "m"], ["../m", "m"]),
    ],
)
def test_the_end_of_a_path_is_its_name(names: list[str], short: list[str]) -> None:
    assert short_names(names) == short


@given(st.lists(PARTS.map("/".join), min_size=1, max_size=6))
def test_other_paths_have_other_names(names: list[str]) -> None:
    short = short_names(names)
    assert len(set(short)) == len(set(names))
    assert all(name.endswith(one) for name, one in zip(names, short, strict=True) if "." not in name)
