"""Read the posts of Stack Exchange dumps (`Posts.xml`) as a stream into a SQLite file.

Memory use does not grow with the dump. The rules for dropped posts and for licenses are shared by all builds of dumps.
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

from build_personalized.recipe import check_site, site_of
from build_personalized.sources.markup import to_markdown

QUESTION, ANSWER = "1", "2"  # PostTypeId
MAX_TEXT = 500_000  # characters of a title or body; the sites accept 30,000 of Markdown
MAX_ROW = 2_000_000  # bytes; the parser's time grows with their square
COMMUNITY = "-1"  # user id of the Community user, under which the sites themselves post
DEPTH = 2  # of a row within the root
MAX_ID = 18  # digits
STEP = "source"
TABLES = {
    "post": "site TEXT, user TEXT, date TEXT, id INT, title TEXT, body TEXT, text, tags TEXT, license TEXT, "
    "accepted TEXT",
    "answer": "site TEXT, user TEXT, id INT, body TEXT, text, question TEXT, license TEXT",
}
TAG = re.compile(r"<[^<>]*>")
# A post has the license of its date, and an adaptation may use a later version of the same license, so rows are
# released under the newest one. Dumps since 2020 state the license of each post; for older dumps the date decides.
LICENSE_STARTS = [("2018-05-02", "cc-by-sa-4.0"), ("2011-04-08", "cc-by-sa-3.0"), ("", "cc-by-sa-2.5")]

Drop = tuple[str, str, str, str]
"""Config, step, reason and id of a dropped row."""


@contextmanager
def open_posts(
    paths: Sequence[Path], scratch: Path, *, answers: bool = False
) -> Iterator[tuple[sqlite3.Connection, list[Drop]]]:
    """Load the posts of dumps into a temporary database with the tables `TABLES`.

    A question whose text was posted before, in any of the dumps, is dropped.

    Args:
        paths: Dumps (`Posts.xml`).
        scratch: Directory for the database.
        answers: Whether to load answers too; posts of other kinds are ignored.

    Returns:
        The database and the drops.

    Raises:
        SourceError: A dump is missing, truncated, not XML, or not named after its site.
    """
    for path in paths:
        check_site(path)
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


def _store_question(posts: sqlite3.Connection, site: str, row: Mapping[str, str]) -> str:
    """Store a question, or return why it is dropped."""
    plain = plain_text(row)
    if not row.get("OwnerUserId"):
        return "deleted user"
    if row["OwnerUserId"] == COMMUNITY:
        return "Community user"
    if not plain:
        return "empty body"
    values = (
        site,
        row["OwnerUserId"],
        row.get("CreationDate", ""),
        int(row["Id"]),
        row.get("Title", ""),
        row.get("Body", ""),
        _digest(plain),
        row.get("Tags", ""),
        _license(row),
        row.get("AcceptedAnswerId"),
    )
    _insert(posts, "post", values)
    return ""


def _store_answer(posts: sqlite3.Connection, site: str, row: Mapping[str, str]) -> str:
    """Store an answer, also one of a deleted user, or return why it is dropped."""
    plain = plain_text(row)
    if not plain:
        return "answer with an empty body"
    user, question = row.get("OwnerUserId"), row.get("ParentId")
    values = (site, user, int(row["Id"]), row.get("Body", ""), _digest(plain), question, _license(row))
    _insert(posts, "answer", values)
    return ""


def plain_text(row: Mapping[str, str]) -> str:
    """Return the words of a post's body in lower case, for comparing posts."""
    return " ".join(unescape(TAG.sub(" ", row.get("Body", ""))).lower().split())


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=12).digest()


def _insert(posts: sqlite3.Connection, table: str, values: Sequence[object]) -> None:
    posts.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608 - no input in it


def _store(path: Path, posts: sqlite3.Connection, *, answers: bool) -> list[Drop]:
    """Store the posts of a dump and return the drops."""
    site, drops = site_of(path), []
    for row in _read(path):
        kind = row.get("PostTypeId")
        if kind != QUESTION and not (answers and kind == ANSWER):
            continue
        post_id = row.get("Id", "")
        if not (post_id.isascii() and post_id.isdecimal()) or len(post_id) > MAX_ID:
            post_kind = "a question" if kind == QUESTION else "an answer"
            raise SourceError(f"{path} has {post_kind} without a number (Id {post_id[:50]!r}).")
        longest = max(len(text) for text in row.values())
        if longest > MAX_TEXT:
            raise SourceError(
                f"{path}: post {post_id} has a text of {longest:,} characters (limit: {MAX_TEXT:,}); shorten or "
                "remove it."
            )
        reason = (_store_question if kind == QUESTION else _store_answer)(posts, site, row)
        if reason:
            drops.append((site, STEP, reason, f"{site}-{post_id}"))
    return drops


def _remove_repeated(posts: sqlite3.Connection) -> list[Drop]:
    """Keep the oldest of the posts with the same text and return the drops."""
    query = "SELECT rowid, site, id, lag(text) OVER (ORDER BY text, date, id) = text AS repeated FROM post"
    repeated = posts.execute(f"SELECT * FROM ({query}) WHERE repeated").fetchall()  # noqa: S608 - no input in it
    posts.executemany("DELETE FROM post WHERE rowid = ?", [(post["rowid"],) for post in repeated])
    return [(post["site"], STEP, "text posted before", f"{post['site']}-{post['id']}") for post in repeated]


class _Dump:
    """File object for the parser that limits the bytes of each row."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        self._left = MAX_ROW
        self._post = ""

    def read(self, size: int = MAX_ROW, /) -> bytes:
        """Read the next bytes. Raises `SourceError` if a row is too long."""
        self._left -= size
        if self._left < 0:
            place = f"the row after post {self._post}" if self._post else "the first row"
            raise SourceError(f"{self.path}: {place} has more than {MAX_ROW:,} bytes, the limit; remove it.")
        return self._file.read(size)

    def next_row(self, post: str) -> None:
        """Restart the count after the post with this id."""
        self._left = MAX_ROW
        self._post = post[:MAX_ID]


def _rows(dump: _Dump) -> Iterator[dict[str, str]]:
    events: Iterator[tuple[str, Element]] = iterparse(dump, events=("start", "end"))
    open_elements: list[Element] = []
    for event, element in events:
        if event == "start":
            open_elements.append(element)
            if len(open_elements) > DEPTH:
                raise SourceError(f"{dump.path} is not a Stack Exchange dump: a row contains other elements.")
            continue
        open_elements.pop()
        if open_elements:
            dump.next_row(element.get("Id", ""))
            if element.tag == "row":
                yield dict(element.attrib)
            open_elements[0].clear()


def _read(path: Path) -> Iterator[dict[str, str]]:
    """Yield the attributes of each `<row>`."""
    try:
        with open_file(path) as file:
            yield from _rows(_Dump(path, file))
    except FileNotFoundError:
        raise SourceError(f"The dump {path} does not exist.") from None
    except IsADirectoryError:
        raise SourceError(f"{path} is a directory; give the Posts.xml in it.") from None
    except ParseError as error:
        line = error.position[0]
        raise SourceError(f"{path} is truncated or not XML: {str(error).split(':')[0]} at line {line}.") from None
    except DefusedXmlException:
        raise SourceError(f"{path} is not a Stack Exchange dump: it declares entities.") from None
    except (LookupError, ValueError) as error:
        raise SourceError(f"{path} has an encoding that cannot be read ({error}).") from None


def _license(row: Mapping[str, str]) -> str:
    stated = row.get("ContentLicense")
    if stated:
        return stated.lower().replace(" ", "-")
    return next(name for start, name in LICENSE_STARTS if row.get("CreationDate", "") >= start)


def post_text(post: sqlite3.Row) -> str:
    """Convert the body of a question or an answer to Markdown.

    Raises:
        SourceError: The HTML has too many tags or is nested too deeply.
    """
    try:
        return to_markdown(post["body"])
    except ValueError as error:
        raise SourceError(f"Post {post['id']} of {post['site']} {error}; remove it from the dump.") from None


def profile_post(post: sqlite3.Row, site: str) -> dict[str, str]:
    """Convert a question to a post of a profile: `id`, `category`, and `text` (title and body)."""
    text = f"{post['title'].strip()}\n{post_text(post)}".strip()
    return {"id": f"{site}-{post['id']}", "category": first_tag(post["tags"], site), "text": text}


def license_note(licenses: Mapping[str, int]) -> str:
    """Return a sentence with the number of posts of each license."""
    return f"Posts by license: {', '.join(f'{name} {count}' for name, count in sorted(licenses.items()))}."


def first_tag(tags: str, site: str) -> str:
    """Return the first tag of `<a><b>` or `|a|b|`. Default: the site."""
    names = [name for name in re.split(r"[<>|]", tags) if name]
    return names[0] if names else site
