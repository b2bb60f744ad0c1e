"""A Stack Exchange dump (`Posts.xml`): each user's newest question, with the earlier ones as the profile.

The dump is read as a stream and its questions go to a SQLite file, so memory does not grow with the dump; only the
texts of the users that are kept are held at the end.
"""

import hashlib
import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree.ElementTree import Element, ParseError

import polars as pl
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse
from inscriptis import get_text
from inscriptis.css_profiles import CSS_PROFILES
from inscriptis.html_properties import WhiteSpace
from inscriptis.model.config import ParserConfig
from inscriptis.model.html_element import HtmlElement
from pluralbench_release import Source

from build_personalized.errors import SourceError
from build_personalized.recipe import SourceTable, public_source, site_of
from build_personalized.sources.loaded import QUESTIONS, Loaded, drops_frame, rows_digest

QUESTION = "1"  # PostTypeId
POST = 500_000  # characters of a title or body; the sites take 30,000 of Markdown
ROW = 2_000_000  # bytes; the parser takes time by their square
DEPTH = 2  # of a row within the root
LONGEST_ID = 18  # digits
STEP = "source"
BATCH = 200  # users at a time as Python objects, which are several times larger than their rows
COLUMNS = (
    "site TEXT",
    "user TEXT",
    "date TEXT",
    "id INT",
    "title TEXT",
    "body TEXT",
    "text",
    "tags TEXT",
    "licence TEXT",
)
TAG = re.compile(r"<[^<>]*>")
# Inside <pre><code> inscriptis would join the lines of a program.
HTML = ParserConfig(css=CSS_PROFILES["strict"] | {"code": HtmlElement(tag="code", whitespace=WhiteSpace.pre)})
BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
# A post is under the licence of its day, and an adaptation may go under a later version of the same licence, so
# rows are released under the newest one. Dumps since 2020 state the licence of each post; before, the date decides.
LICENCE_STARTS = [("2018-05-02", "cc-by-sa-4.0"), ("2011-04-08", "cc-by-sa-3.0"), ("", "cc-by-sa-2.5")]


def load(paths: Sequence[Path], source: SourceTable, scratch: Path) -> Loaded:
    """People with at least `source.min_questions` questions in a community, a dump each; ids are `SITE-POST`.

    Left out, each counted: posts of deleted users, with an empty body, or with a text that was posted before, be it
    in another of the dumps. Users come in the order of their newest questions, so a later dump adds at the end.

    Raises `SourceError` for a dump that is missing, truncated or not XML, and when nobody has enough questions.
    """
    with tempfile.TemporaryDirectory(dir=scratch) as folder, closing(sqlite3.connect(Path(folder) / "posts")) as posts:
        posts.row_factory = sqlite3.Row
        posts.execute("PRAGMA journal_mode = OFF")
        posts.execute(f"CREATE TABLE post ({', '.join(COLUMNS)})")
        drops = [drop for path in paths for drop in _store(path, posts)]
        posts.execute("CREATE INDEX by_text ON post (text, date, id)")
        drops += _remove_repeated(posts)
        posts.execute("CREATE INDEX by_user ON post (site, user, date, id)")
        parts = [_people(path, posts, source) for path in paths]
    questions = pl.concat([rows for rows, _ in parts])
    return Loaded(questions, drops_frame(drops), [entry for _, entry in parts])


def _people(path: Path, posts: sqlite3.Connection, source: SourceTable) -> tuple[pl.DataFrame, Source]:
    site = site_of(path)
    users = posts.execute(
        "SELECT user FROM post WHERE site = ? GROUP BY user HAVING count(*) >= ? ORDER BY max(date), min(id) LIMIT ?",
        (site, source.min_questions, -1 if source.limit is None else source.limit),
    ).fetchall()
    if not users:
        raise SourceError(f"{path}: no user has {source.min_questions} questions or more; lower `min_questions`.")
    licences = Counter[str]()
    frames = []
    for batch in range(0, len(users), BATCH):
        rows = []
        for (user,) in users[batch : batch + BATCH]:
            query = "SELECT * FROM post WHERE site = ? AND user = ? ORDER BY date DESC, id DESC LIMIT ?"
            most = -1 if source.max_posts is None else source.max_posts + 1
            theirs = posts.execute(query, (site, user, most)).fetchall()
            licences.update(post["licence"] for post in theirs)
            rows.append(_question(theirs, site))
        frames.append(pl.DataFrame(rows, schema=QUESTIONS))
    questions = pl.concat(frames)
    entry = Source(
        name=source.name or f"Stack Exchange dump of {site}",
        location=public_source(f"stack-exchange:{path}"),
        digest=rows_digest(questions),
        rows=questions.height,
        licence=max(licences),
        attribution=source.attribution
        or (
            f"Posts by users of {site}; the post of id `{site}-N` is question N of that community. "
            f"Posts by licence: {', '.join(f'{name} {count}' for name, count in sorted(licences.items()))}."
        ),
    )
    return questions, entry


def _store(path: Path, posts: sqlite3.Connection) -> list[tuple[str, str, str, str]]:
    """Put the questions of the dump into `posts`; returns the drops."""
    site, drops = site_of(path), []
    for row in _read(path):
        if row.get("PostTypeId") != QUESTION:
            continue
        post_id, body = row.get("Id", ""), row.get("Body", "")
        if not (post_id.isascii() and post_id.isdecimal()) or len(post_id) > LONGEST_ID:
            raise SourceError(f"{path} has a question without a number (Id {post_id[:50]!r}).")
        longest = max(len(text) for text in row.values())
        if longest > POST:
            raise SourceError(
                f"{path}: post {post_id} has a text of {longest:,} characters, and at most {POST:,} are read; "
                "shorten it, or leave it out."
            )
        plain = " ".join(unescape(TAG.sub(" ", body)).lower().split())
        if not row.get("OwnerUserId"):
            drops.append((site, STEP, "deleted user", f"{site}-{post_id}"))
        elif not plain:
            drops.append((site, STEP, "empty body", f"{site}-{post_id}"))
        else:
            posts.execute(
                f"INSERT INTO post VALUES ({', '.join('?' * len(COLUMNS))})",  # noqa: S608 - no input in it
                (
                    site,
                    row["OwnerUserId"],
                    row.get("CreationDate", ""),
                    int(post_id),
                    row.get("Title", ""),
                    body,
                    hashlib.blake2b(plain.encode(), digest_size=12).digest(),
                    row.get("Tags", ""),
                    _licence(row),
                ),
            )
    return drops


def _remove_repeated(posts: sqlite3.Connection) -> list[tuple[str, str, str, str]]:
    """Keep the oldest of the posts with the same text; returns the drops."""
    query = "SELECT rowid, site, id, lag(text) OVER (ORDER BY text, date, id) = text AS repeated FROM post"
    repeated = posts.execute(f"SELECT * FROM ({query}) WHERE repeated").fetchall()  # noqa: S608 - no input in it
    posts.executemany("DELETE FROM post WHERE rowid = ?", [(post["rowid"],) for post in repeated])
    return [(post["site"], STEP, "text posted before", f"{post['site']}-{post['id']}") for post in repeated]


class _Dump:
    """The bytes of a dump for the parser, counted from row to row."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        self._left = ROW
        self._post = ""

    def read(self, size: int = ROW, /) -> bytes:
        """The next bytes. Raises `SourceError` when a row is too long."""
        self._left -= size
        if self._left < 0:
            place = f"the row after post {self._post}" if self._post else "the first row"
            raise SourceError(
                f"{self.path}: {place} has more than {ROW:,} bytes, which are as many as are read; leave it out."
            )
        return self._file.read(size)

    def next_row(self, post: str) -> None:
        """Begin to count anew after a post of this number."""
        self._left = ROW
        self._post = post[:LONGEST_ID]


def _rows(dump: _Dump) -> Iterator[dict[str, str]]:
    events: Iterator[tuple[str, Element]] = iterparse(dump, events=("start", "end"))
    open_elements: list[Element] = []
    for event, element in events:
        if event == "start":
            open_elements.append(element)
            if len(open_elements) > DEPTH:
                raise SourceError(f"{dump.path} is no Stack Exchange dump, whose rows hold no other elements.")
            continue
        open_elements.pop()
        if open_elements:
            dump.next_row(element.get("Id", ""))
            if element.tag == "row":
                yield dict(element.attrib)
            open_elements[0].clear()


def _read(path: Path) -> Iterator[dict[str, str]]:
    """The attributes of each `<row>`, one at a time."""
    try:
        with path.open("rb") as file:
            yield from _rows(_Dump(path, file))
    except FileNotFoundError:
        raise SourceError(f"There is no dump {path}.") from None
    except IsADirectoryError:
        raise SourceError(f"{path} is a directory; give the Posts.xml in it.") from None
    except ParseError as error:
        line = error.position[0]
        raise SourceError(f"{path} is truncated or no XML: {str(error).split(':')[0]} at line {line}.") from None
    except DefusedXmlException:
        raise SourceError(f"{path} is no Stack Exchange dump.") from None
    except (LookupError, ValueError) as error:
        raise SourceError(f"{path} is in an encoding that cannot be read ({error}).") from None


def _licence(row: dict[str, str]) -> str:
    stated = row.get("ContentLicense")
    if stated:
        return stated.lower().replace(" ", "-")
    return next(name for start, name in LICENCE_STARTS if row.get("CreationDate", "") >= start)


def html_to_text(html: str) -> str:
    """The text of a post's HTML: paragraphs apart, lists marked, programs with their lines."""
    # inscriptis resolves entities once more after the parser did, so one level is added for it to take away.
    text = get_text(html.replace("&amp;", "&amp;amp;"), HTML) if html else ""
    return BLANK_LINES.sub("\n\n", text).strip()


def _question(posts: Sequence[sqlite3.Row], site: str) -> dict[str, Any]:
    """A row from a user's posts, newest first."""
    newest, *earlier = posts
    narrative = html_to_text(newest["body"])
    return {
        "config": site,
        "id": f"{site}-{newest['id']}",
        "question": newest["title"].strip() or narrative.split("\n")[0],
        "category": _category(newest["tags"], site),
        "narrative": narrative,
        "rubric_aspects": [],
        "profile": [
            {
                "id": f"{site}-{post['id']}",
                "category": _category(post["tags"], site),
                "text": f"{post['title'].strip()}\n{html_to_text(post['body'])}".strip(),
            }
            for post in earlier
        ],
    }


def _category(tags: str, site: str) -> str:
    """The first tag of `<a><b>` or `|a|b|`."""
    names = [name for name in re.split(r"[<>|]", tags) if name]
    return names[0] if names else site
