"""Evidence is quoted from the narrative: compared without case, kinds of quotes and of white space."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_schemas import POST, RUBRIC_ASPECT, VERBATIM_PERSONALIZED_QUESTIONS, evidence_in_narrative, normalized
from pluralbench_schemas import validate as validate_table

NARRATIVES = [
    "我住在上海，喜欢喝“龙井”茶。",
    "أعيش في القاهرة وأحب الشاي «الأخضر».",
    "אני גר בחיפה ואוהב תה ירוק.",
    "मैं दिल्ली में रहता हूँ और चाय पीता हूँ।",
    "Ich mag STRASSE, naïve cafés und Ærø.",
    "I grow tea 🍵 with my family 👩‍👩‍👧‍👦 every spring 🌱.",
]


def quoted(narrative: str | None, *evidence: str | None) -> bool:
    """Whether each `evidence` is in `narrative`."""
    aspects = [{"aspect": "a", "evidence": text, "reason": None} for text in evidence]
    frame = pl.DataFrame(
        {"narrative": [narrative], "rubric_aspects": [aspects]},
        schema={"narrative": pl.String, "rubric_aspects": pl.List(RUBRIC_ASPECT)},
    )
    return bool(frame.select(evidence_in_narrative()).item())


@pytest.mark.parametrize(
    ("narrative", "evidence", "expected"),
    [
        ("I grow tea.", "i GROW Tea", True),
        ("I don't “grow” it.", 'don’t "grow"', True),
        ("I don’t 'grow' it.", "don't ‘grow’", True),
        ("I grow\r\n\u00a0green \u3000 tea.", " grow green\ttea ", True),
        ("I grow tea.", "", True),
        ("", "", True),
        ("", "tea", False),
        ("I grow tea.", "I drink tea", False),
        ("I grow tea.", "I grow tea. Much of it.", False),
        ("I grow tea.", "Igrow", False),
        ("ÉTÉ, ÇA VA", "été, ça", True),
    ],
)
def test_how_evidence_is_compared(narrative: str, evidence: str, expected: bool) -> None:
    assert quoted(narrative, evidence) is expected


@pytest.mark.parametrize("narrative", NARRATIVES)
def test_any_script_can_be_quoted(narrative: str) -> None:
    words = narrative.split()
    quotes = [narrative, narrative[2:-2], words[0], "\n\u00a0".join(words[-2:]), narrative.upper()]
    frame = pl.DataFrame(
        {
            "id": ["q1"],
            "question": [narrative],
            "category": [narrative],
            "narrative": [narrative],
            "rubric_aspects": [[{"aspect": text, "evidence": text, "reason": text} for text in quotes]],
            "profile": [[{"id": text, "category": text, "text": text} for text in NARRATIVES]],
        },
        schema_overrides={"rubric_aspects": pl.List(RUBRIC_ASPECT), "profile": pl.List(POST)},
    )
    assert validate_table(frame, VERBATIM_PERSONALIZED_QUESTIONS, file="x.parquet", rows=1) is frame


def test_every_aspect_with_evidence_must_quote() -> None:
    assert quoted("I grow tea.", "grow", None, "tea")
    assert not quoted("I grow tea.", "grow", None, "coffee")
    assert quoted("I grow tea.")


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_normalizing_twice_is_normalizing_once(text: str) -> None:
    once = pl.select(normalized(pl.lit(text))).item()
    assert pl.select(normalized(pl.lit(once))).item() == once


@given(st.text(st.characters(codec="utf-8"), max_size=20), st.text(st.characters(codec="utf-8"), max_size=20))
def test_a_whole_line_is_always_a_quote(before: str, line: str) -> None:
    assert quoted(f"{before}\n{line}\nafter", line)
