"""A release in which one byte is another is told by `verify`, whichever byte it is."""

import shutil

import pytest
from children import ended
from conftest import Tried
from inputs import BUILDERS, released

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
BYTES = 50


@pytest.mark.parametrize("builder", BUILDERS)
def test_one_byte_of_a_release(builder: str, tried: Tried) -> None:
    release = released(builder)
    assert ended(["pluralbench-release", "verify", "release"], release.parent).status == 0
    for number, draw, copied in tried.cases(BYTES):
        shutil.copytree(release, copied / "release")
        file = draw.choice(sorted(path for path in (copied / "release").rglob("*") if path.is_file()))
        data = bytearray(file.read_bytes())
        at, flipped = draw.randrange(len(data)), draw.randrange(1, 256)
        data[at] ^= flipped
        file.write_bytes(data)
        result = ended(["pluralbench-release", "verify", "release"], copied)
        if tried.end(number, result) and result.status not in {1, 2}:
            tried.failure(number, "lost", f"byte {at} of {file.relative_to(copied)} ^ {flipped} went unseen")
        shutil.rmtree(copied)
