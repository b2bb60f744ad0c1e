"""The shape of the workspace: imports go down, members agree on versions, nothing is left to chance."""

import ast
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from members import MEMBERS, ROOT, load


def modules() -> set[str]:
    return {path.parent.name for member in MEMBERS for path in member.glob("src/*/__init__.py")}


@cache
def distributions() -> dict[str, list[str]]:
    """The distributions of each module of the environment, and ours: looking for them takes half a second."""
    return {**packages_distributions(), **{name: [name] for name in modules()}}


def test_imports_only_go_down() -> None:
    result = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout


def test_the_contract_on_imports_names_every_member() -> None:
    contract = load(ROOT)["tool"]["importlinter"]
    assert set(contract["root_packages"]) == modules()
    floors = next(item for item in contract["contracts"] if item["type"] == "layers")["layers"]
    assert {name.strip() for floor in floors for name in floor.split("|")} == modules()


def test_package_versions_move_together() -> None:
    versions = {load(member)["project"]["version"] for member in MEMBERS}
    assert len(versions) == 1
    pins = {
        dependency.split("==")[1]
        for member in MEMBERS
        for dependency in map(str, load(member)["project"]["dependencies"])
        if dependency.startswith(("pluralbench-", "build-"))
    }
    assert pins == versions


def declared(member: Path) -> set[str]:
    project = load(member)["project"]
    extras = project.get("optional-dependencies", {})
    lists = [project["dependencies"], *extras.values()]
    return {normalized(re.split(r"[^A-Za-z0-9_.-]", item)[0]) for items in lists for item in items}


def normalized(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def imported(member: Path) -> set[str]:
    roots = set()
    for path in member.glob("src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            roots |= {name.split(".")[0] for name in names}
    own = {module.parent.name for module in member.glob("src/*/__init__.py")}
    return roots - sys.stdlib_module_names - own


@pytest.mark.heavy
@pytest.mark.parametrize("member", MEMBERS, ids=lambda path: path.name)
def test_a_member_declares_what_it_imports(member: Path) -> None:
    missing = [
        name
        for name in sorted(imported(member))
        if not {normalized(item) for item in distributions()[name]} & declared(member)
    ]
    assert not missing


@pytest.mark.parametrize("member", MEMBERS, ids=lambda path: path.name)
def test_a_member_has_a_test_that_runs_in_an_environment_of_its_own(member: Path) -> None:
    """.ci/run runs the tests that are marked so in each member's folder, with nothing but the member installed."""
    [module] = [path.parent.name for path in member.glob("src/*/__init__.py")]
    tests = (ROOT / "tests" / module.removeprefix("pluralbench_")).glob("test_*.py")
    assert any("@pytest.mark.smoke" in path.read_text(encoding="utf-8") for path in tests)
