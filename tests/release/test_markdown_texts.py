"""Texts of unknown origin in Markdown: whoever renders it shows them as they are, and no element is made of them."""

import re
from html.parser import HTMLParser

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pluralbench_release import markdown_table
from pluralbench_release.markdown import escape_markdown, markdown_code
from pluralbench_runs.console import clean

GITHUB = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
PAYLOADS = [
    "<img src=x onerror=alert(1)>", "</td><script>x</script>", "<!-- x", "<details>", "[x](javascript:alert(1))",
    "![x](https://e.org/x.png)", "[x]: https://e.org", "https://e.org/x", "www.e.org", "me@e.org", "<https://e.org>",
    "# x", "1. x", "- x", "> x", "---", "===", "```x", "~~~", "~~x~~", "`x", "``x` y", "*x*", "__x__", "_x_ a_b_c",
    "a | b", "a\n\n# b", "a\r\n| b |", "&lt;b&gt; &#60; & x", "\\", "\\*x*\\", "a\\|b", "$x$", "\x1b[2J\u202ex", "",
    "![1](x) [1][2] [1]: x", "- [ ] x", "[^1]", "[1]",
    "org/model_name-2.5 (v1, 95% [3, 4])", "-1.5", "+ 3", "\ud800", "👨‍👩‍👧 علی‌رضا",
]  # fmt: skip
TEXTS = st.sampled_from(PAYLOADS) | st.lists(
    st.sampled_from([*"<>[]()!`*_~|\\&#;:/@.$-+=1ax \n", "www", "http", "e.org", "//"]), max_size=12
).map("".join)


FRAMED = TEXTS.filter(lambda text: text.isprintable() or "\ud800" not in text)


class Shown(HTMLParser):
    """The elements of a rendered page, and its text."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(GITHUB.render(markdown))
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """Keep an element."""
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        """Keep a text."""
        self.text += data


@pytest.mark.parametrize(
    ("frame", "tags"),
    [
        ("{}", ["p"]),
        ("# {}", ["h1"]),
        ("- {}", ["ul", "li"]),
        ("a **{}** b", ["p", "strong"]),
        ("a [{}](x) b", ["p", "a"]),
    ],
)
@given(text=TEXTS)
@example(text=PAYLOADS[0])
@example(text="< ##")  # in a heading it would be closing marks
def test_a_text_is_shown_as_it_is(frame: str, tags: list[str], text: str) -> None:
    line = clean(text)
    shown = Shown(frame.format(escape_markdown(f"x{text}" if "**" in frame else text)))
    assert [tag for tag in shown.tags if tag != "p"] == [tag for tag in tags if tag != "p"]
    assert line in shown.text
    assert not re.search(r"https?://|www\.|\w@\w", escape_markdown(text))  # of which GitHub makes links


@given(text=TEXTS)
def test_code_is_shown_as_it_is(text: str) -> None:
    shown = Shown(f"a {markdown_code(text)} b")
    assert shown.tags == ["p", "code"]
    assert clean(text) in shown.text


@given(st.lists(FRAMED, min_size=1, max_size=3), FRAMED)
def test_a_table_has_its_cells(texts: list[str], name: str) -> None:
    table = markdown_table(pl.DataFrame({name: texts, f"{name} 2": texts}))
    shown = Shown(table)
    assert set(shown.tags) <= {"table", "thead", "tbody", "tr", "th", "td"}
    assert shown.tags.count("td") == 2 * len(texts)
    for text in texts:
        assert clean(text) in shown.text
