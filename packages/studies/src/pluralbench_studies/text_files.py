"""Text files as people hand them in: UTF-8 with or without a mark at the beginning, and a clear word on the others."""

import codecs
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pluralbench_runs import UserError

SURROGATE = re.compile("[\\ud800-\\udfff]")
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: Path, error: type[UserError]) -> str:
    """The text of a UTF-8 file, without the byte order mark that it may begin with.

    Raises `error` for a file that is not there or not UTF-8; for GBK and UTF-16 it says how to convert it.
    """
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise error(f"{path} cannot be read: {fault.strerror or fault}.") from None
    if data.startswith(UTF_16):
        raise error(f"{path} is UTF-16 and not UTF-8; convert it with `{_iconv('UTF-16', path)}`.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        if fault.reason == "unexpected end of data":
            raise error(f"{path} ends in the middle of a character; it was cut off, so get it again.") from None
        try:
            data.decode("gb18030")
        except UnicodeDecodeError:
            raise error(f"{path}, line {line}: this is not UTF-8; save the file as UTF-8.") from None
        command = _iconv("GB18030", path)
        raise error(f"{path}, line {line}: this is GBK and not UTF-8; convert it with `{command}`.") from None


def _iconv(encoding: str, path: Path) -> str:
    new = f"{path.stem}-utf8{path.suffix}"
    return f"iconv -f {encoding} -t UTF-8 {shlex.quote(str(path))} > {shlex.quote(new)}"


def read_jsonl(path: Path, error: type[UserError]) -> list[dict[str, Any]]:
    """The object of each line that is not blank. Raises `error` for a line that is no JSON object, and for no line."""
    rows: list[dict[str, Any]] = []
    # Only "\n" ends a line: str.splitlines would also cut at separators that JSON allows inside a text.
    for number, line in enumerate(read_text(path, error).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as fault:
            raise error(f"{path}, line {number}: this is not JSON ({fault}).") from None
        if not isinstance(row, dict):
            raise error(f"{path}, line {number}: this is not a JSON object.")
        if "\\ud" in line.lower() and SURROGATE.search(json.dumps(row, ensure_ascii=False)):
            raise error(f"{path}, line {number}: this holds half a character (a lone surrogate); mend the text.")
        rows.append(row)
    if not rows:
        raise error(f"{path} holds no rows.")
    return rows


def write_jsonl(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write objects, one a line, characters as they are. A failure leaves the file that was there."""
    new = path.with_name(path.name + ".new")
    try:
        with new.open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
