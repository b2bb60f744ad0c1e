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
ENCODINGS = ("Windows-1252", "Windows-1251", "GB18030", "Big5", "Shift_JIS", "EUC-KR")
"""Encodings that a file may have instead of UTF-8, by names that Python and iconv share."""
SAMPLE_BYTES = 100_000  # of the text by which Chinese is recognized
MIN_HANZI = 4
MIN_FREQUENT = 0.9
BEYOND_ASCII = re.compile(r"[^\s\"`,]{0,6}[^\x00-\x7f][^\s\"`,]{0,6}")
"""The first word with a character beyond ASCII, shortened."""


def read_text(path: Path, error: type[UserError] = TableFileError) -> str:
    """Read a UTF-8 file without its byte order mark; a gzip file is decompressed.

    Args:
        path: The file.
        error: The type of the errors.

    Raises:
        UserError: Of the type `error`: the file does not exist, is not UTF-8, or is larger than `limits.FILE_BYTES`.
            The message explains how to convert it; if its encoding is not certain, it shows how each would read.
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
    """Say what a file that is not UTF-8 may be: GBK, if its text is Chinese, or else each encoding that can read it."""
    begin = data.rfind(b"\n", 0, start) + 1
    texts = {}
    for name in ENCODINGS:
        try:
            texts[name] = codecs.getincrementaldecoder(name)().decode(data[begin : begin + SAMPLE_BYTES])
        except UnicodeDecodeError:
            continue
    if _is_chinese(texts.get("GB18030", ""), texts.get("Windows-1251", "")):
        return f"this is GBK and not UTF-8; convert it with `{_iconv('GB18030', path)}`"
    words = {name: word[0] for name, text in texts.items() if (word := BEYOND_ASCII.search(text))}
    readings = [f"`{word}` in {name}" for name, word in words.items() if word.isprintable()]
    if not readings:
        return "this is not UTF-8; save the file as UTF-8"
    return f"this is not UTF-8, but {', '.join(readings)}; convert it with `{_iconv('ENCODING', path)}`"


def _is_chinese(text: str, cyrillic: str) -> bool:
    """Whether a text that was read as GB 18030 is Chinese.

    Most characters must be frequent ones, the first 3,755 of GB 2312 or its punctuation; the second bytes of Western
    text that is read as GB 18030 are letters, which these do not have. Korean in EUC-KR ends before its row 0xC9, and
    capitals of Cyrillic or Greek are letters alone where this was read as Windows-1251.
    """
    codes = [character.encode("gb18030") for character in text if not character.isascii()]
    firsts = [code[0] for code in codes if len(code) == 2 and code[1] > 0xA0]
    frequent = [first for first in firsts if 0xB0 <= first <= 0xD7]
    punctuation = [first for first in firsts if 0xA1 <= first <= 0xA3]
    return (
        len(frequent) >= MIN_HANZI
        and len(frequent) + len(punctuation) >= MIN_FREQUENT * len(codes)
        and max(frequent) > 0xC8
        and not all(character.isascii() or character.isalpha() for character in cyrillic or "\0")
    )


def _iconv(encoding: str, path: Path) -> str:
    new = f"{path.stem}-utf8{path.suffix}"
    return f"iconv -f {encoding} -t UTF-8 {shlex.quote(str(path))} > {shlex.quote(new)}"
