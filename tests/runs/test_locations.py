"""A location as others may read it: without the folders of the machine, and the same when it is written once more."""

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_runs import FrozenModel, Location, public_location

NAMES = st.text(st.characters(exclude_characters="/\0:", exclude_categories=["Cs"]), min_size=1).filter(
    lambda name: name not in {".", ".."}
)


class Made(FrozenModel):
    """What was read."""

    location: Location


@pytest.mark.parametrize(
    ("location", "public"),
    [
        ("/home/me/data/pairs.jsonl", "pairs.jsonl"),
        ("/home/me/data/", "data"),
        ("../data/pairs.jsonl", "pairs.jsonl"),
        ("lamp-qa:/home/me/lamp", "lamp-qa:lamp"),
        ("sentence-transformers:/home/me/minilm", "sentence-transformers:minilm"),
        ("data/pairs.jsonl", "data/pairs.jsonl"),
        ("sample", "sample"),
        ("org/name@main", "org/name@main"),
        ("lamp-qa:org/name@main", "lamp-qa:org/name@main"),
    ],
)
def test_a_recipe_is_written_with_public_places(location: str, public: str) -> None:
    made = Made(location=location)
    assert (made.location, made.model_dump(mode="json")) == (location, {"location": public})


@given(st.lists(NAMES, min_size=1), NAMES)
def test_an_absolute_path_leaves_its_name_alone(folders: list[str], name: str) -> None:
    path = str(PurePosixPath("/", *folders, name))
    assert public_location(path) == public_location(public_location(path)) == name
