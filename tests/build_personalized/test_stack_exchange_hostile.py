"""Dumps that would take too long, too much memory, or no number."""

from pathlib import Path

import pytest
from build_personalized.recipe import SourceTable
from build_personalized.sources import load
from build_personalized.sources.dump import POST
from build_personalized.sources.markup import TAGS
from pluralbench_release.errors import SourceError

ROW = '<row Id="{id}" PostTypeId="1" OwnerUserId="1" CreationDate="2020-01-01" Title="t" Body="{body}"/>'


def refused(folder: Path, rows: str) -> str:
    (folder / "beer").mkdir()
    dump = folder / "beer" / "Posts.xml"
    dump.write_text(f"<posts>{rows}</posts>", encoding="utf-8")
    with pytest.raises(SourceError) as caught:
        load(SourceTable(locations=[f"stack-exchange:{dump}"], min_questions=2), folder)
    return str(caught.value).replace(f"{dump}", "Posts.xml")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            ROW.format(id=7, body="x" * (POST + 1)),
            "Posts.xml: post 7 has a text of 500,001 characters, and at most 500,000 are read; shorten it, "
            "or leave it out.",
        ),
        (
            ROW.format(id=7, body="x") + ROW.format(id=8, body="x" * 3_000_000),
            "Posts.xml: the row after post 7 has more than 2,000,000 bytes, which are as many as are read; "
            "leave it out.",
        ),
        (
            ROW.format(id="9" * 20, body="x"),
            f"Posts.xml has a question without a number (Id {'9' * 20!r}).",
        ),
        (
            ROW.format(id=7, body="x") + ROW.format(id=8, body="&lt;blockquote&gt;" * 40 + "y"),
            "Post 8 of beer has elements nested deeper than 32, which is as deep as is read; leave it out of the dump.",
        ),
        (
            ROW.format(id=7, body="x") + ROW.format(id=8, body="&lt;ol&gt;" + "&lt;li&gt;x" * TAGS),
            "Post 8 of beer has more than 10,000 tags, which are as many as are read; leave it out of the dump.",
        ),
        ("<row>" * 10_000, "Posts.xml is no Stack Exchange dump, whose rows hold no other elements."),
    ],
    ids=["long text", "long row", "large number", "deep HTML", "many tags", "deep"],
)
def test_a_dump_has_limits(tmp_path: Path, rows: str, sentence: str) -> None:
    assert refused(tmp_path, rows) == sentence
