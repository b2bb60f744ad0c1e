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
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse
from pluralbench_release import Source
from pluralbench_release.errors import SourceError
from pluralbench_runs import one_line, open_file

from build_personalized.recipe import UserSource, check_site, public_source, site_of
from build_personalized.sources.markup import to_markdown

QUESTION, ANSWER = "1", "2"  # PostTypeId
COMMUNITY = "-1"  # user id of the Community user, under which the sites themselves post
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
    """Load the posts of dumps, and their answers on request, into a temporary database with the tables `TABLES`.

    A question whose text was posted before, in any of the dumps, is dropped. Posts of other kinds are ignored.

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
    site, drops = site_of(path), []
    for row in _read(path):
        kind = row.get("PostTypeId")
        if kind != QUESTION and not (answers and kind == ANSWER):
            continue
        post_id = row.get("Id", "")
        if not (post_id.isascii() and post_id.isdecimal()):
            post_kind = "a question" if kind == QUESTION else "an answer"
            raise SourceError(f"{path} has {post_kind} without a number (Id {post_id[:50]!r}).")
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


def _read(path: Path) -> Iterator[dict[str, str]]:
    try:
        with open_file(path) as file:
            root: Element | None = None
            for event, element in iterparse(file, events=("start", "end")):
                root = element if root is None else root
                if event == "end" and element.tag == "row":
                    yield dict(element.attrib)
                    root.clear()
    except FileNotFoundError:
        raise SourceError(f"The dump {path} does not exist.") from None
    except IsADirectoryError:
        raise SourceError(f"{path} is a directory; give the Posts.xml in it.") from None
    except (ParseError, DefusedXmlException, LookupError, ValueError) as error:
        raise SourceError(f"{path} is truncated, or not a Stack Exchange dump: {one_line(error)}.") from None


def _license(row: Mapping[str, str]) -> str:
    stated = row.get("ContentLicense")
    if stated:
        return stated.lower().replace(" ", "-")
    return next(name for start, name in LICENSE_STARTS if row.get("CreationDate", "") >= start)


def profile_post(post: sqlite3.Row, site: str) -> dict[str, str]:
    """Convert a question to a post of a profile: `id`, `category`, and `text` (title and body)."""
    text = f"{post['title'].strip()}\n{to_markdown(post['body'])}".strip()
    return {"id": f"{site}-{post['id']}", "category": first_tag(post["tags"], site), "text": text}


def dump_entry(
    path: Path, source: UserSource, posts: str, digest: str, rows: int, licenses: Mapping[str, int]
) -> Source:
    """Describe a dump for the release, with a note on which posts the ids name and the number of each license."""
    site = site_of(path)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(licenses.items()))
    return Source(
        name=source.name or f"Stack Exchange dump of {site}",
        location=public_source(f"stack-exchange:{path}"),
        digest=digest,
        rows=rows,
        license=max(licenses),
        attribution=source.attribution
        or f"Posts by users of {site}; {posts.format(site=site)} of that community. Posts by license: {counts}.",
    )


def first_tag(tags: str, site: str) -> str:
    """Return the first tag of `<a><b>` or `|a|b|`. Default: the site."""
    names = [name for name in re.split(r"[<>|]", tags) if name]
    return names[0] if names else site
