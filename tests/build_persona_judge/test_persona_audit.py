"""The audit of the items: what a scorer could go by that knows nothing of the person, and the limits to it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import persona_sources as files
import persona_tables
import polars as pl
import pytest
from build_persona_judge.figures import audit_of, audits_of, figures_of
from build_persona_judge.pairing import ITEMS
from written_tables import write

Run = Callable[..., tuple[int, str]]
COOK = {"occupation": "cook", "town": "Cork, Ireland", "age": None}


def item(number: int, own: str, other: str, **changes: Any) -> files.Row:
    """An item whose own option is A when its number is even."""
    texts = {"option_a": own, "option_b": other} if number % 2 == 0 else {"option_a": other, "option_b": own}
    known = persona_tables.persona(**changes.pop("persona", COOK))
    about = {"user": f"u{number}", "persona": known, "context": ""}
    return persona_tables.item("empathic", number, **{"truth": "AB"[number % 2]} | texts | about | changes)


def frame(*rows: files.Row) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=ITEMS)


def audit(*rows: files.Row) -> dict[str, Any]:
    found = audit_of(frame(*rows))
    assert found is not None
    return found


def test_a_scorer_that_looks_for_the_values_of_the_persona_is_found_out() -> None:
    found = audit(
        item(0, "As a COOK I work late.", "I paint houses."),
        item(1, "It rains in cork.", "I am a cook in Cork, Ireland."),
        item(2, "I live in Ireland, as a cook.", "I play chess."),
        item(3, "I said nothing.", "Nor did I."),
    )
    assert {key: found["more_overlap"][key] for key in ("wins", "losses", "ties")} == {
        "wins": 2,
        "losses": 1,
        "ties": 1,
    }
    assert found["overlap"]["chosen_mean"] == pytest.approx((1 + 1 + 2 + 0) / 3 / 4, abs=1e-4)
    assert (found["longer"]["wins"], found["length"]["mean_gap"]) == (3, 4.0)


def test_ties_are_left_out_and_a_task_of_ties_has_no_audit() -> None:
    tie = item(1, "a much longer text", "short", truth="tie")
    assert audit(item(0, "a", "bc"), tie)["pairs"] == 1
    assert audit_of(frame(tie)) is None
    figures = figures_of(
        {"posts": (frame(tie), pl.DataFrame(schema=dict.fromkeys(("task", "what", "reason"), pl.String)))}
    )
    assert audits_of(figures) == {}


def test_near_duplicates_are_of_two_people_and_of_one_persona() -> None:
    text = "I came home late and fed the cat before I had my tea."
    other = {"occupation": "nurse"}
    found = audit(
        item(0, text, "Something else."),
        item(1, text.upper(), "Another one.", persona=other),
        item(2, text, "A third one.", user="u0"),
        item(3, "The same words twice", "twice the same words", persona={"occupation": "pilot"}),
    )
    assert found["near_duplicates"] == {"sides": 1, "chosen": 1, "personas": 0}
    twins = audit(item(0, "a", "b"), item(1, "c", "d"), item(2, "e", "f", persona=other), item(4, "g", "h", user="u0"))
    assert twins["near_duplicates"]["personas"] == 2


LEAKING = [
    files.post(job, f"q{number}", f"As a {job} I would say so." if number else "I would not say so.")
    for job in ("cook", "nurse", "pilot", "baker")
    for number in (0, 1, 2)
]


def built(run: Run, folder: Path, limits: str) -> tuple[int, str]:
    data = write(folder / "pr.jsonl", LEAKING)
    recipe = folder / "recipe.toml"
    recipe.write_text(
        f'retriever = "bm25"\n[personal_reddit]\nlocation = "{data}"\n[audit]\n{limits}\n', encoding="utf-8"
    )
    return run("--recipe", recipe, "--out", folder / "out")


def test_the_card_says_what_leaks_and_a_limit_stops_the_build(run: Run, tmp_path: Path) -> None:
    status, said = built(run, tmp_path, "max_chosen_overlap = 0.9")
    assert (status, "The audit of personal_reddit fails: max_chosen_overlap = 0.9 (found 1)" in said) == (1, True), said
    assert not (tmp_path / "out").exists()
    status, said = built(run, tmp_path, "max_near_duplicates = 0")
    assert (status, "max_near_duplicates = 0 (found " in said) == (1, True), said
    status, said = built(run, tmp_path, "")
    assert (status, "Accuracy of a scorer" in said) == (0, True), said
    [entry] = json.loads((tmp_path / "out/provenance/statistics.json").read_text(encoding="utf-8"))["tasks"]
    decided = entry["audit"]["more_overlap"]["wins"]
    assert (entry["audit"]["more_overlap"]["losses"], decided > 4) == (0, True)
    assert f"{decided} of {decided} (100%, 95 % interval" in (tmp_path / "out/README.md").read_text(encoding="utf-8")


def test_an_answer_that_many_could_choose_is_no_duplicate() -> None:
    asked = {"context": "Tea or coffee?", "kind": "opinion"}
    rows = [
        item(number, *options, **asked) for number, options in enumerate([("Tea", "Coffee"), ("Coffee", "Tea")] * 2)
    ]
    assert audit(*rows)["near_duplicates"]["chosen"] == 0
