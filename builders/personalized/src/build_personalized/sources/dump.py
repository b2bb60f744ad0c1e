"""The posts of a Stack Exchange dump (`Posts.xml`), read as a stream into a SQLite file.

So memory does not grow with the dump. What a post must have to be kept, and under which licence it is, is said here for
every builder of these dumps.
"""

import hashlib
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from html import unescape
from pathlib import Path
from typing import BinaryIO
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse
from pluralbench_release.errors import SourceError
from pluralbench_runs import open_file

from build_personalized.recipe import site_of
from build_personalized.sources.markup import to_markdown

QUESTION, ANSWER = "1", "2"  # PostTypeId
POST = 500_000  # characters of a title or body; the sites take 30,000 of Markdown
ROW = 2_000_000  # bytes; the parser takes time by their square
COMMUNITY = "-1"  # the user under whose name the sites themselves post
DEPTH = 2  # of a row within the root
LONGEST_ID = 18  # digits
STEP = "source"
TABLES = {
    "post": "site TEXT, user TEXT, date TEXT, id INT, title TEXT, body TEXT, text, tags TEXT, licence TEXT, "
    "accepted TEXT",
    "answer": "site TEXT, user TEXT, id INT, body TEXT, text, question TEXT, licence TEXT",
}
TAG = re.compile(r"<[^<>]*>")
# A post is under the licence of its day, and an adaptation may go under a later version of the same licence, so
# rows are released under the newest one. Dumps since 2020 state the licence of each post; before, the date decides.
LICENCE_STARTS = [("2018-05-02", "cc-by-sa-4.0"), ("2011-04-08", "cc-by-sa-3.0"), ("", "cc-by-sa-2.5")]

Drop = tuple[str, str, str, str]
"""Config, step, reason and id of what is left out."""


@contextmanager
def posts_of(
    paths: Sequence[Path], scratch: Path, *, answers: bool = False
) -> Iterator[tuple[sqlite3.Connection, list[Drop]]]:
    """The posts of dumps in the tables `TABLES` of a database in `scratch`, and the drops.

    answers: whether answers are kept beside questions; posts of other kinds are passed over. A question whose text was
    posted before, be it in another of the dumps, is a drop.

    Raises `SourceError` for a dump that is missing, truncated or not XML.
    """
    with tempfile.TemporaryDirectory(dir=scratch) as folder, closing(sqlite3.connect(Path(folder) / "posts")) as posts:
        posts.row_factory = sqlite3.Row
        posts.execute("PRAGMA journal_mode = OFF")
        for table, columns in TABLES.items():
            posts.execute(f"CREATE TABLE {table} ({columns})")
        drops = [drop for path in paths for drop in _store(path, posts, answers=answers)]
        posts.execute("CREATE INDEX by_text ON post (text, date, id)")
        drops += _remove_repeated(posts)
        posts.execute("CREATE INDEX by_user ON post (site, user, date, id)")
        posts.execute("CREATE INDEX by_question ON answer (site, question)")
        yield posts, drops


def _put_question(posts: sqlite3.Connection, site: str, row: Mapping[str, str]) -> str:
    """Store a question; those of deleted users, of the Community user and without text are left out."""
    plain = plain_text(row)
    if not row.get("OwnerUserId"):
        return "deleted user"
    if row["OwnerUserId"] == COMMUNITY:
        return "Community user"
    if not plain:
        return "empty body"
    kept = (
        site,
        row["OwnerUserId"],
        row.get("CreationDate", ""),
        int(row["Id"]),
        row.get("Title", ""),
        row.get("Body", ""),
        _digest(plain),
        row.get("Tags", ""),
        _licence(row),
        row.get("AcceptedAnswerId"),
    )
    _insert(posts, "post", kept)
    return ""


def _put_answer(posts: sqlite3.Connection, site: str, row: Mapping[str, str]) -> str:
    """Store an answer, also of a deleted user; those without text are left out."""
    plain = plain_text(row)
    if not plain:
        return "answer with an empty body"
    user, question = row.get("OwnerUserId"), row.get("ParentId")
    kept = (site, user, int(row["Id"]), row.get("Body", ""), _digest(plain), question, _licence(row))
    _insert(posts, "answer", kept)
    return ""


def plain_text(row: Mapping[str, str]) -> str:
    """The words of a post's body in lower case, by which posts are compared."""
    return " ".join(unescape(TAG.sub(" ", row.get("Body", ""))).lower().split())


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=12).digest()


def _insert(posts: sqlite3.Connection, table: str, values: Sequence[object]) -> None:
    posts.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608 - no input in it


def _store(path: Path, posts: sqlite3.Connection, *, answers: bool) -> list[Drop]:
    """Put the posts of a dump into `posts`; returns the drops."""
    site, drops = site_of(path), []
    for row in _read(path):
        kind = row.get("PostTypeId")
        if kind != QUESTION and not (answers and kind == ANSWER):
            continue
        post_id = row.get("Id", "")
        if not (post_id.isascii() and post_id.isdecimal()) or len(post_id) > LONGEST_ID:
            what = "a question" if kind == QUESTION else "an answer"
            raise SourceError(f"{path} has {what} without a number (Id {post_id[:50]!r}).")
        longest = max(len(text) for text in row.values())
        if longest > POST:
            raise SourceError(
                f"{path}: post {post_id} has a text of {longest:,} characters, and at most {POST:,} are read; "
                "shorten it, or leave it out."
            )
        reason = (_put_question if kind == QUESTION else _put_answer)(posts, site, row)
        if reason:
            drops.append((site, STEP, reason, f"{site}-{post_id}"))
    return drops


def _remove_repeated(posts: sqlite3.Connection) -> list[Drop]:
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
        with open_file(path) as file:
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


def _licence(row: Mapping[str, str]) -> str:
    stated = row.get("ContentLicense")
    if stated:
        return stated.lower().replace(" ", "-")
    return next(name for start, name in LICENCE_STARTS if row.get("CreationDate", "") >= start)


def text_of(post: sqlite3.Row) -> str:
    """The body of a question or an answer as Markdown. Raises `SourceError` for HTML that would take too long."""
    try:
        return to_markdown(post["body"])
    except ValueError as error:
        raise SourceError(f"Post {post['id']} of {post['site']} {error}; leave it out of the dump.") from None


def post_of(post: sqlite3.Row, site: str) -> dict[str, str]:
    """A question as a post of a profile: `id`, `category` and `text`, its title and then its body."""
    text = f"{post['title'].strip()}\n{text_of(post)}".strip()
    return {"id": f"{site}-{post['id']}", "category": category_of(post["tags"], site), "text": text}


def by_licence(licences: Mapping[str, int]) -> str:
    """How many posts are under each licence, as a sentence."""
    return f"Posts by licence: {', '.join(f'{name} {count}' for name, count in sorted(licences.items()))}."


def category_of(tags: str, site: str) -> str:
    """The first tag of `<a><b>` or `|a|b|`."""
    names = [name for name in re.split(r"[<>|]", tags) if name]
    return names[0] if names else site
