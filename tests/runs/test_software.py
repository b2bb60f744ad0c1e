"""What a result was made with: versions of what is installed, digests of files."""

import hashlib
from importlib.metadata import version
from pathlib import Path

from pluralbench_runs import file_digest, versions


def test_versions_are_of_what_is_installed_in_the_order_asked_for() -> None:
    found = versions(["rich", "no-such-distribution", "pydantic"])
    assert list(found.items()) == [("rich", version("rich")), ("pydantic", version("pydantic"))]


def test_a_file_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "茶.bin"
    content = bytes(range(256)) * 5000
    path.write_bytes(content)
    assert file_digest(path) == hashlib.sha256(content).hexdigest()
    path.write_bytes(b"")
    assert file_digest(path) == hashlib.sha256().hexdigest()
