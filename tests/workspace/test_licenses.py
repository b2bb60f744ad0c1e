"""What the packages depend on, each with all its extras, may go with them under Apache-2.0."""

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from itertools import chain

from members import MEMBERS, load
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

COPYLEFT = re.compile(r"GPL|GNU|Affero|EUPL|SSPL", re.IGNORECASE)
ALLOWED: dict[str, str] = {}
"""Dependencies under such a license, and why they may stay."""
UNNAMED = {
    "cuda-toolkit": "NVIDIA's collection of libraries, which torch brings along and which has no file of its own",
    "torchrl": "MIT, which stands in its file LICENSE alone",
}


def closure() -> set[str]:
    """The names of all that a member needs here, directly or not, whichever of its extras is wanted."""
    projects = [load(member)["project"] for member in MEMBERS]
    ours = {canonicalize_name(project["name"]) for project in projects}
    waiting: list[tuple[str, frozenset[str]]] = []
    for project in projects:
        lines = [*project["dependencies"], *chain(*project.get("optional-dependencies", {}).values())]
        waiting += needed_by(lines, frozenset())
    done: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        name, extras = one = waiting.pop()
        if one in done or name in ours:
            continue
        try:
            lines = distribution(name).requires or []
        except PackageNotFoundError:  # which the workspace's overrides leave out
            continue
        done.add(one)
        waiting += needed_by(lines, extras)
    return {name for name, _ in done}


def needed_by(lines: Iterable[str], extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The names, and the extras, of the requirements that hold on this machine."""
    for needed in map(Requirement, lines):
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ["", *extras]):
            yield canonicalize_name(needed.name), frozenset(needed.extras)


def license(name: str) -> str:
    """What a distribution says of its license: an expression, else classifiers, else the first line of its text."""
    told = distribution(name).metadata.json
    classifiers = [line for line in told.get("classifier", []) if line.startswith("License ::")]
    text = str(told.get("license", "")).strip().partition("\n")[0]
    return str(told.get("license_expression", "")) or "; ".join(classifiers) or text


def test_no_dependency_binds_those_who_pass_it_on() -> None:
    names = closure()
    assert {"numpy", "torch", "transformers", "openai", "polars"} <= names
    said = {name: license(name) for name in sorted(names)}
    assert {name: text for name, text in said.items() if COPYLEFT.search(text) and name not in ALLOWED} == {}
    assert {name for name, text in said.items() if not text} <= UNNAMED.keys()
