"""Reader of UTF-8 text files, with clear errors for other encodings."""

import codecs
import gzip
import io
import os
import re
import shlex
import zlib
from pathlib import Path

from pluralbench_runs import UserError, open_file

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.limits import FILE_BYTES

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
ENCODINGS = ("cp1252", "cp1251", "cp1253", "gb18030", "big5", "cp932", "cp949")
"""Encodings that a file may have instead of UTF-8, by names that Python and iconv share."""
SAMPLE_LINES = 100  # by which the encoding is guessed
MAX_GUESSES = 3
BEYOND_ASCII = re.compile(r"[^\s\"`,]{0,6}[^\x00-\x7f][^\s\"`,]{0,6}")
"""The first word with a character beyond ASCII, shortened."""


def read_text(path: Path, error: type[UserError] = TableFileError) -> str:
    """Read a UTF-8 file without its byte order mark; a gzip file is decompressed.

    Raises:
        UserError: Of the type `error`: the file does not exist, is not UTF-8, or is larger than `limits.FILE_BYTES`.
            The message explains how to convert it.
    """
    data = _read_bytes(path, error)
    if data.startswith(UTF_16) or data[:2].count(0) == 1:
        # Without a byte order mark, iconv needs the name of the byte order.
        name = "UTF-16" if data.startswith(UTF_16) else "UTF-16BE" if data[0] == 0 else "UTF-16LE"
        raise error(f"{path} is UTF-16 and not UTF-8; convert it with `{_iconv(name, path)}`.")
    if data.startswith(ZIP):
        raise error(f"{path} is a workbook or an archive, not a text file; save it as CSV in UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        line = data.count(b"\n", 0, cause.start) + 1
        if cause.reason == "unexpected end of data":
            raise error(f"{path} is truncated: it ends in the middle of a character; get it again.") from None
        raise error(f"{path}, line {line:,}: {_other_encoding(data, cause.start, path)}.") from None


def check_size(path: Path, error: type[UserError], *, any_size: bool = False) -> None:
    """Raise `error` for a path that is not a file, and without `any_size` for one larger than `limits.FILE_BYTES`."""
    try:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
    except IsADirectoryError:
        raise error(f"{path} cannot be read: it is a folder; give a file.") from None
    except (OSError, ValueError) as cause:
        raise error(f"{path} cannot be read: {getattr(cause, 'strerror', None) or cause}.") from None
    if size > FILE_BYTES and not any_size:
        raise error(f"{path} has {size:,} bytes; the maximum is {FILE_BYTES:,}; split it.")


def _read_bytes(path: Path, error: type[UserError]) -> bytes:
    check_size(path, error)
    try:
        with open_file(path) as stream:
            data = stream.read()
        if not data.startswith(GZIP):
            return data
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            data = file.read(FILE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as cause:
        raise error(f"{path} cannot be read: {getattr(cause, 'strerror', None) or cause}.") from None
    if len(data) > FILE_BYTES:
        raise error(f"{path} expands to more than {FILE_BYTES:,} bytes, the maximum; split it.")
    return data


def _other_encoding(data: bytes, start: int, path: Path) -> str:
    """Say which encodings the lines from the first that is not UTF-8 may have, and how a word of each reads."""
    from charset_normalizer import from_bytes

    lines = data[data.rfind(b"\n", 0, start) + 1 :].split(b"\n", SAMPLE_LINES)[:SAMPLE_LINES]
    readings = {}
    for guess in [*from_bytes(b"\n".join(lines), cp_isolation=[*ENCODINGS])][:MAX_GUESSES]:
        word = BEYOND_ASCII.search(str(guess))
        if word and word[0].isprintable():
            readings[guess.encoding] = word[0]
    if not readings:
        return "this is not UTF-8; save the file as UTF-8"
    command = _iconv(next(iter(readings)) if len(readings) == 1 else "ENCODING", path)
    guesses = " or ".join(f"{encoding} (`{word}`)" for encoding, word in readings.items())
    return f"this is not UTF-8, but perhaps {guesses}; convert it with `{command}`"


def _iconv(encoding: str, path: Path) -> str:
    new = f"{path.stem}-utf8{path.suffix}"
    return f"iconv -f {encoding} -t UTF-8 {shlex.quote(str(path))} > {shlex.quote(new)}"
