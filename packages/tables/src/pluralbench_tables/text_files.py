"""Text files as people hand them in: UTF-8 with or without a mark at the beginning, and a clear word on the others."""

import codecs
import gzip
import io
import shlex
import zlib
from pathlib import Path

from pluralbench_runs import UserError, open_file

from pluralbench_tables.errors import TableFileError
from pluralbench_tables.limits import FILE_BYTES

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"


def read_text(path: Path, error: type[UserError] = TableFileError) -> str:
    """The text of a UTF-8 file, without the byte order mark that it may begin with; a gzip file is expanded.

    Raises `error` for a file that is not there, not UTF-8 or larger than `limits.FILE_BYTES`; for GBK and UTF-16 it
    says how to convert it.
    """
    data = _data(path, error)
    if data.startswith(UTF_16) or data[:2].count(0) == 1:
        # Without a mark, iconv needs to be told the order of the bytes.
        name = "UTF-16" if data.startswith(UTF_16) else "UTF-16BE" if data[0] == 0 else "UTF-16LE"
        raise error(f"{path} is UTF-16 and not UTF-8; convert it with `{_iconv(name, path)}`.")
    if data.startswith(ZIP):
        raise error(f"{path} is a workbook or an archive, not a text file; save it as CSV in UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        if fault.reason == "unexpected end of data":
            raise error(f"{path} ends in the middle of a character; it was cut off, so get it again.") from None
        try:
            data.decode("gb18030")
        except UnicodeDecodeError:
            raise error(f"{path}, line {line:,}: this is not UTF-8; save the file as UTF-8.") from None
        command = _iconv("GB18030", path)
        raise error(f"{path}, line {line:,}: this is GBK and not UTF-8; convert it with `{command}`.") from None


def check_size(path: Path, error: type[UserError], *, any_size: bool = False) -> None:
    """Raise `error` for what is no file, and for one larger than `limits.FILE_BYTES` unless it may be of any size."""
    try:
        found = path.stat()
    except (OSError, ValueError) as fault:
        raise error(f"{path} cannot be read: {getattr(fault, 'strerror', None) or fault}.") from None
    if path.is_dir():
        raise error(f"{path} cannot be read: it is a folder; give a file.")
    if not path.is_file():
        raise error(f"{path} cannot be read: it is no ordinary file.")
    if found.st_size > FILE_BYTES and not any_size:
        raise error(f"{path} has {found.st_size:,} bytes, and at most {FILE_BYTES:,} are read; split it.")


def _data(path: Path, error: type[UserError]) -> bytes:
    check_size(path, error)
    try:
        with open_file(path) as opened:
            data = opened.read()
        if not data.startswith(GZIP):
            return data
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            data = file.read(FILE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as fault:
        raise error(f"{path} cannot be read: {getattr(fault, 'strerror', None) or fault}.") from None
    if len(data) > FILE_BYTES:
        raise error(f"{path} expands to more than {FILE_BYTES:,} bytes, which is as much as is read; split it.")
    return data


def _iconv(encoding: str, path: Path) -> str:
    new = f"{path.stem}-utf8{path.suffix}"
    return f"iconv -f {encoding} -t UTF-8 {shlex.quote(str(path))} > {shlex.quote(new)}"
