"""What a scorer could go by in the pairs of a release, and that no prompt is in two of its parts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from build_chinese.audit import audit, prompt_figures
from chinese_project import Row, annotated, prompt, write_rows

Run = Callable[..., tuple[int, str]]
LONG = "龙井茶要用八十度左右的水来泡，先温杯，再投茶，等一分钟就可以喝了。"


def row(number: int, *texts: str, **changes: Any) -> Row:
    """A prompt with these responses, r0 being the best."""
    responses = [{"id": f"r{place}", "content": text} for place, text in enumerate(texts)]
    return prompt(number) | {"responses": responses} | changes


def test_what_a_scorer_could_go_by_is_counted() -> None:
    rows = [row(0, LONG, "好茶。", "一座山。"), row(1, "好", LONG + "！"), row(2, "一样长", "也三字")]
    found = audit(rows, [[("r0", "r1"), ("r0", "r2")], [("r0", "r1")], [("r0", "r1")]])
    assert found["pairs"] == 4
    assert {name: found["longer"][name] for name in ("wins", "losses", "ties")} == {"wins": 2, "losses": 1, "ties": 1}
    assert found["more_overlap"]["losses"] == 1, "only `一座山` repeats what the prompt says"
    assert found["near_duplicates"] == {"chosen": 1, "sides": 0}, "the long answer stands under two prompts"


def test_prompts_that_are_nearly_the_same_are_counted_across_and_within_the_parts() -> None:
    text = "请介绍一下杭州西湖边上最值得一看的三处风景，并说明理由。"
    benchmarks = [row(0, input=text), row(1, input="完全不同的一个问题，问的是如何泡茶。")]
    training = [row(2, input=text.replace("，并", "并")), row(3, input="第三个问题"), row(4, input="第三个 问题")]
    assert prompt_figures(benchmarks, training) == {
        "in the benchmarks and to learn from": 1,
        "in the benchmarks": 0,
        "to learn from": 1,
    }
    assert prompt_figures([], []) == dict.fromkeys(prompt_figures(benchmarks, training), 0)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with annotated prompts of both parts, where commands run."""
    monkeypatch.chdir(tmp_path)
    rows = [annotated(number, "open" if number < 3 else "preference") for number in range(6)]
    write_rows(tmp_path / "annotated.jsonl", rows)
    return tmp_path


@pytest.mark.heavy
def test_a_release_tells_its_audit_and_nothing_of_where_it_was_built(run: Run, project: Path) -> None:
    recipe = project / "named.toml"
    recipe.write_text(
        f'[annotated]\nlocation = "{project}/annotated.jsonl"\nname = "Mountains"\nlicense = "cc-by-4.0"\n'
        'attribution = "Their authors."\n',
        encoding="utf-8",
    )
    status, said = run("--recipe", "named.toml", "--out", "dist")
    assert status == 0, said
    words = " ".join(said.split())
    assert "How often the better response is the longer one, or repeats more of the prompt" in words
    assert "Pairs of prompts that are nearly the same" in words
    found = json.loads((project / "dist/provenance/statistics.json").read_text(encoding="utf-8"))
    assert [(entry["annotator"], entry["config"]) for entry in found["audit"]] == [
        ("people", "open"),
        ("people", "preference"),
    ]
    assert set(found["prompts"]) == set(prompt_figures([], []))
    card = (project / "dist/README.md").read_text(encoding="utf-8")
    assert "How often the better response is the longer one" in card
    assert "Mountains" in card
    assert "Their authors." in card
    for path in (project / "dist").rglob("*"):
        assert not path.is_file() or str(project).encode() not in path.read_bytes(), path
