"""Which version a change of rows calls for, and what a changelog and a card keep."""

import json
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_release.card import BY_HAND, merge_cards
from pluralbench_release.diff import table_diff
from pluralbench_release.markdown import parts
from pluralbench_release.versions import Version, change_lines, change_size, latest, parse_version, with_entry

Rows = dict[str, dict[str, Any]]
VALUES = st.sampled_from(["a", "b", None, 0, 1])
TABLES = st.dictionaries(
    st.sampled_from(["A/test", "B/test"]),
    st.dictionaries(st.sampled_from("qrst"), st.fixed_dictionaries({"x": VALUES, "y": VALUES}), min_size=1),
)
VERSIONS = st.builds(Version, *[st.integers(0, 12)] * 3)


def frame(rows: Rows | None) -> pl.DataFrame | None:
    if rows is None:
        return None
    listed = [
        {"id": name, **{key: json.dumps(value) if value is not None else None for key, value in row.items()}}
        for name, row in rows.items()
    ]
    return pl.DataFrame(listed, schema={"id": pl.String, "x": pl.String, "y": pl.String})


def plain(old: dict[str, Rows], new: dict[str, Rows], last: Version) -> Version:
    """The next version, by sets of whole rows."""
    before = {(table, name): row for table, rows in old.items() for name, row in rows.items()}
    after = {(table, name): row for table, rows in new.items() for name, row in rows.items()}
    if any(key not in after or after[key] != row for key, row in before.items()):
        return Version(last.major + 1, 0, 0)
    if len(after) > len(before):
        return Version(last.major, last.minor + 1, 0)
    return Version(last.major, last.minor, last.patch + 1)


@given(old=TABLES, new=TABLES, same=st.booleans(), last=VERSIONS)
def test_the_next_version_is_that_of_a_plain_count(
    old: dict[str, Rows], new: dict[str, Rows], same: bool, last: Version
) -> None:
    new = {**old, **{table: {**rows, **old.get(table, {})} for table, rows in new.items()}} if same else new
    differences = [
        table_diff((table, "test"), frame(old.get(table)), frame(new.get(table))) for table in sorted({*old, *new})
    ]
    found = last.after(change_size(differences))
    assert found == plain(old, new, last)
    assert found > last
    assert len(change_lines(differences, last)) == max(1, sum(map(bool, differences)))


@given(versions=st.sets(VERSIONS), others=st.sets(st.sampled_from(["main", "v1", "1.0.0", "v1.0.0-rc", "v01.2.3"])))
def test_the_latest_is_the_highest_by_numbers(versions: set[Version], others: set[str]) -> None:
    assert latest([*others, *(version.tag for version in versions)]) == max(versions, default=None)
    assert all(parse_version(str(version)) == version for version in versions)


@settings(max_examples=15)
@given(
    entries=st.lists(st.tuples(VERSIONS, st.lists(st.sampled_from(["Row `#`.", "`## x`."]), max_size=3)), max_size=6)
)
def test_a_changelog_has_each_version_once_and_the_newest_first(entries: list[tuple[Version, list[str]]]) -> None:
    text: str | None = None
    message: dict[Version, list[str]] = {}
    for version, lines in entries:
        text = with_entry(text, version, lines)
        assert with_entry(text, version, lines) == text
        message = {version: lines} | {key: value for key, value in message.items() if key != version}
    found = [part for part in parts(text or "") if part.title is not None]
    assert [part.title for part in found] == [str(version) for version in message]
    assert [part.text.count("\n- ") for part in found] == [len(lines) for lines in message.values()]


TITLES = st.lists(st.sampled_from(["Columns", "Uses", "Thanks", "Notes", "Old"]), unique=True)
WORDS = st.sampled_from(["One.", "Two.\n\n```\n## no heading\n```", "Three.\u2028Four.\x0cFive."])


def card(titles: list[str], words: str, below: list[str], **metadata: str) -> str:
    yaml = "".join(f"{key}: {value}\n" for key, value in {"license": "mit", **metadata}.items())
    text = "".join(f"## {title}\n\n{words}\n\n" for title in titles).rstrip() + "\n"
    hand = "".join(f"\n## {title}\n\nHand {words}\n" for title in below)
    return f"---\n{yaml}---\n\n# A title\n\n{text}" + (f"\n{BY_HAND}\n{hand}" if below else "")


@given(ours=TITLES, there=TITLES, below=TITLES, published=TITLES, words=st.tuples(WORDS, WORDS))
def test_a_merged_card_has_what_is_made_and_what_is_written_by_hand(
    ours: list[str], there: list[str], below: list[str], published: list[str], words: tuple[str, str]
) -> None:
    mine, theirs = card(ours, words[0], []), card(there, words[1], below, thumbnail="a.png", license="gpl")
    before = card(published, words[1], [])
    found = merge_cards(mine, theirs, before)
    assert (
        merge_cards(mine, found, before)
        == found
        == merge_cards(found, found, before)
        == merge_cards(found, theirs, before)
    )
    assert "license: mit\n" in found
    assert "thumbnail: a.png\n" in found
    above, _, hand = found.partition("---\n\n")[2].partition(BY_HAND)
    assert [part.title for part in parts(above)][1:] == ours
    kept = [title for title in there if title not in {*ours, *published}] + below
    assert [part.title for part in parts(hand) if part.title is not None] == kept


def test_a_column_that_came_empty_changes_its_rows() -> None:
    old = pl.DataFrame({"id": ["a"]})
    [came] = [table_diff(("A", "test"), old, old.with_columns(x=pl.lit(None, pl.String)))]
    assert came.changed == {"x": ["a"]}
    assert change_size([came]) == "major"
