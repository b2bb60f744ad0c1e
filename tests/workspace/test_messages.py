"""What an error or a hint tells a user to install or to run exists."""

import ast
import re
from collections.abc import Iterator

import pytest
from members import MEMBERS, ROOT, load

PIP = re.compile(r'pip install (?:--\S+ )*"?([A-Za-z0-9._-]+)(?:\[([^\]]+)\])?')
UV = re.compile(r"uv (?:run|sync)((?: --(?:package|extra|group) \S+)*)")
PROJECTS = {load(member)["project"]["name"]: load(member)["project"] for member in MEMBERS}
GROUPS = load(ROOT)["dependency-groups"]
FILLED_IN = "{}"


def messages() -> Iterator[tuple[str, str, str]]:
    """Member, file and text of each string in the members' sources; what a format string fills in is `{}`."""
    for member in MEMBERS:
        name = load(member)["project"]["name"]
        for path in sorted(member.glob("src/**/*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
            parts = {id(part) for node in formatted for part in ast.walk(node)}
            for node in ast.walk(tree):
                if isinstance(node, ast.JoinedStr):
                    text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
                    yield name, str(path.relative_to(ROOT)), text
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
                    yield name, str(path.relative_to(ROOT)), node.value


def extras(project: str) -> set[str]:
    return set(PROJECTS[project].get("optional-dependencies", {}))


def bare(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement)[0]


DECLARED = {
    bare(item)
    for project in PROJECTS.values()
    for items in [project["dependencies"], *project.get("optional-dependencies", {}).values()]
    for item in items
} | {bare(item) for items in GROUPS.values() for item in items if isinstance(item, str)}


def faults(member: str, text: str) -> list[str]:
    """What the text names that is not there."""
    found = []
    for distribution, extra in PIP.findall(text):
        if distribution not in PROJECTS.keys() | DECLARED:
            found.append(f"no distribution {distribution}")
        elif extra and distribution in PROJECTS:
            wanted = extras(distribution) if extra == FILLED_IN else set()
            missing = {extra} - extras(distribution) if extra != FILLED_IN else {FILLED_IN} if not wanted else set()
            found += [f"no extra {distribution}[{name}]" for name in missing]
    for flags in UV.findall(text):
        words = flags.split()
        asked = dict(zip(words[::2], words[1::2], strict=True))
        if asked.get("--group", "test") not in GROUPS:
            found.append(f"no group {asked['--group']}")
        if "--extra" in asked:
            wanted = extras(member) if asked["--extra"] == FILLED_IN else {asked["--extra"]}
            package = asked.get("--package", "")
            # A word in capitals stands for any member that depends on the one that speaks.
            packages = (
                [package]
                if package in PROJECTS
                else [name for name, project in PROJECTS.items() if member in map(bare, project["dependencies"])]
                if package.isupper()
                else []
            )
            found += [f"no extra {name}[{extra}]" for name in packages for extra in wanted - extras(name)]
            found += [f"no package {package}"] * (not packages)
    return found


def test_what_a_message_names_exists() -> None:
    told = [(file, text, faults(member, text)) for member, file, text in messages() if "pip" in text or "uv " in text]
    assert any("pip install" in text for _, text, _ in told)
    assert not [(file, text, wrong) for file, text, wrong in told if wrong]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('`pip install "build-chinese[trian]"`', ["no extra build-chinese[trian]"]),
        ("pip install pluralbench-reward", ["no distribution pluralbench-reward"]),
        ("uv run --group evaluators pluralbench", ["no group evaluators"]),
        ("uv run --package build-chinese --extra nllb build-chinese", ["no extra build-chinese[nllb]"]),
        ("uv run --extra nllb build-multilingual", ["no package "]),
        ('pip install "pluralbench-runs[{}]"', ["no extra pluralbench-runs[{}]"]),
        ('pip install "build-chinese[train]", or `uv run --package build-multilingual --extra nllb x`', []),
    ],
)
def test_what_does_not_exist_is_noticed(text: str, wrong: list[str]) -> None:
    assert faults("pluralbench-retrieval", text) == wrong
