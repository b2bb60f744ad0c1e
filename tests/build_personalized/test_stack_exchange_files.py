"""Stack Exchange dumps as files: damaged, hostile, real and large ones; and posts' HTML as text."""

import json
import re
import subprocess
import sys
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from build_personalized.recipe import SourceTable
from build_personalized.sources import LoadedQuestions, load
from build_personalized.sources.markup import to_markdown
from commands import environment
from defusedxml import ElementTree
from pluralbench_release.errors import SourceError

REAL = Path(__file__).parents[3] / "shared" / "data" / "personalized"
ROW = '<row Id="{0}" PostTypeId="1" CreationDate="2016-01-01" OwnerUserId="1" Title="t {0}" Body="{1}" Tags="" />\n'
TWO = ROW.format(1, "body 1") + ROW.format(2, "body 2")
XML = '<?xml version="1.0" encoding="utf-8"?>\n'


def people(path: Path, *, min_questions: int = 2) -> LoadedQuestions:
    source = SourceTable(locations=[f"stack-exchange:{path}"], min_questions=min_questions)
    return load(source, path.parent)


def broken(content: str, path: Path) -> str:
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SourceError) as caught:
        people(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "plain text",
        f"{XML}<posts>\n{TWO}{TWO[:100]}",
        f'<?xml version="1.0" encoding="klingon"?><posts>{TWO}</posts>',
    ],
)
def test_what_is_no_complete_dump_is_refused(tmp_path: Path, content: str) -> None:
    assert "is truncated, or not a Stack Exchange dump" in broken(content, tmp_path / "beer.stackexchange.Posts.xml")


@pytest.mark.parametrize("row", [TWO.replace('Id="1" ', "", 1), TWO.replace('Id="1"', 'Id="one"', 1)])
def test_a_row_without_a_number_is_refused(tmp_path: Path, row: str) -> None:
    broken(f"{XML}<posts>{row}</posts>", tmp_path / "beer.stackexchange.Posts.xml")


@pytest.mark.parametrize(
    "declaration",
    [
        '<!DOCTYPE posts [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]>',
        '<!DOCTYPE posts [<!ENTITY c SYSTEM "file:///etc/passwd">]>',
    ],
)
def test_entities_are_refused(tmp_path: Path, declaration: str) -> None:
    content = f'<?xml version="1.0"?>{declaration}<posts>{ROW.format(1, "&c;")}</posts>'
    assert "not a Stack Exchange dump" in broken(content, tmp_path / "beer.stackexchange.Posts.xml")


@pytest.mark.parametrize("content", [f"{XML}<posts>{TWO}</posts>", f"{XML}<posts/>", f"{XML}<html><p>x</p></html>"])
def test_a_dump_in_which_nobody_asked_often_enough_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "beer.stackexchange.Posts.xml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(SourceError, match="no user has 3 questions or more; lower `min_questions`"):
        people(path, min_questions=3)


def test_a_missing_dump_and_a_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"The dump .*nowhere\.xml does not exist"):
        people(tmp_path / "nowhere.xml")
    with pytest.raises(SourceError, match=r"is a directory; give the Posts\.xml in it"):
        people(tmp_path)


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One\nline.</p>\n\n<p>Two<br>lines.</p>", "One line.\n\nTwo  \nlines."),
        ("<p>a &amp; b &lt; c &#8364; &quot;d&quot;</p>", 'a & b < c € "d"'),
        ("<p>Write &amp;lt;br&amp;gt; for a break</p>", "Write &lt;br&gt; for a break"),
        ("<p>שלום עולם</p><p>世界，你好</p><p>🍺🧑‍🚀</p>", "שלום עולם\n\n世界，你好\n\n🍺🧑‍🚀"),
        ("<p>10<sup>6</sup> at 2.5<sup>−3</sup>, x<sup>n + 1</sup></p>", "10^6 at 2.5^−3, x^(n + 1)"),
        ("<p>CO<sub>2</sub>, <code>x<sub>i j</sub></code></p>", "CO_2, `x_(i j)`"),
        (
            "<p>So</p><blockquote><p>One\ntwo</p><p>three</p></blockquote><p>four</p>",
            "So\n\n> One two\n>\n> three\n\nfour",
        ),
        ("<p>&gt; 5 %<br>&gt; 6 % &gt; 5 %</p>", "\\> 5 %  \n\\> 6 % > 5 %"),
        ("<p><img src='u.png' alt='a glass'></p><h2><img src='v'></h2>", "![a glass](u.png)\n\n## ![](v)"),
        ("<p><img src='u.png' alt='enter image description here'></p>", "![](u.png)"),
        ("<b>a</b><i>b</i><code>c</code> <b>d</b><strong>e</strong>", "**a** *b* `c` **d** **e**"),
        ("<p>a <a href='http://u.v'>link</a>, <a href='http://w'>http://w</a></p>", "a [link](http://u.v), <http://w>"),
        (
            "<pre><code>def f():\n    x = 1\n\n\n    return x\n</code></pre>",
            "```\ndef f():\n    x = 1\n\n\n    return x\n```",
        ),
        ("<pre class='lang-c++ s-code-block'><code>  a;</code></pre>", "```c++\n  a;\n```"),
        ("<pre class='lang-none'><code>```\na\n```</code></pre>", "````\n```\na\n```\n````"),
        ("<p>In <code>a`b</code> and <kbd>Ctrl</kbd> <b>bold</b></p>", "In `` a`b `` and `Ctrl` **bold**"),
        ("<p>so</p><ul><li>one<ol start='3'><li>in</li></ol></li><li>two</li></ul>", "so\n\n- one\n  3. in\n- two"),
        (
            "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>",
            "| a | b |\n| --- | --- |\n| 1 | 2 |",
        ),
        ("<!-- a > b -->", ""),
    ],
)
def test_html_becomes_markdown(html: str, text: str) -> None:
    assert to_markdown(html) == text


@pytest.mark.parametrize(("site", "users"), [("beer", 34), ("coffee", 16)])
def test_real_dumps(site: str, users: int) -> None:
    path = REAL / f"{site}.stackexchange.Posts.xml"
    if not path.is_file():
        pytest.skip(f"the real dump {path} is not here")
    loaded = load(SourceTable(locations=[f"stack-exchange:{path}"]), Path())
    assert loaded.questions["config"].to_list() == [site] * users
    assert loaded.questions["profile"].list.len().to_list() >= [3] * users
    assert loaded.questions["narrative"].str.contains("<p>").sum() == 0
    assert loaded.sources[0].license == "cc-by-sa-3.0"


MEASURE = """
import json, resource, sys
from pathlib import Path
from build_personalized.recipe import SourceTable
from build_personalized.sources import load

def read(path):
    rows = load(SourceTable(locations=[f"stack-exchange:{path}"], min_questions=3), Path(path).parent).questions.height
    return rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000  # kB on Linux

print(json.dumps([read(path) for path in sys.argv[1:]]))
"""


@pytest.mark.heavy
@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory has another unit elsewhere")
def test_memory_does_not_grow_with_the_dump(tmp_path: Path) -> None:
    row = '<row Id="{0}" PostTypeId="1" CreationDate="2016-01-01" OwnerUserId="{1}" Title="t" Body="{2}" Tags="" />\n'
    paths = {posts: tmp_path / f"{posts}.xml" for posts in (100, 20_000)}
    for posts, path in paths.items():
        with path.open("w", encoding="utf-8") as file:
            file.write(f"{XML}<posts>\n")
            for number in range(posts):
                user = number % 5 if number < 50 else number  # five people who ask often, and a crowd that asks once
                file.write(row.format(number, user, f"{number} " + "many words " * 90))
            file.write("</posts>\n")
    assert paths[20_000].stat().st_size > 20e6
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, *paths.values()], env=environment(), capture_output=True, text=True, check=True
    )
    (small, before), (large, after) = json.loads(measured.stdout)
    assert small == large == 5
    assert after - before < 8, "megabytes, for a dump of 20"


def test_no_word_of_a_real_post_is_lost() -> None:
    path = REAL / "coffee.stackexchange.Posts.xml"
    if not path.is_file():
        pytest.skip(f"the real dump {path} is not here")
    bodies = [row.get("Body", "") for row in ElementTree.fromstring(path.read_bytes())]
    for body in bodies[::5]:
        words, kept = (
            re.findall(r"[^\W_]+", text) for text in (unescape(re.sub("<[^<>]*>", " ", body)), to_markdown(body))
        )
        assert not Counter(words) - Counter(kept)
