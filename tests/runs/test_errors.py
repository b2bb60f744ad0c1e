"""Another library's error inside a sentence of ours."""

from hypothesis import given
from hypothesis import strategies as st
from pluralbench_runs import one_line, plural


def test_lines_and_the_full_stop_go() -> None:
    assert one_line(ValueError("no\n  such   file.\n")) == "no such file"
    assert one_line("stderr of a tool...\n") == "stderr of a tool"
    assert one_line(ValueError()) == ""


@given(st.text(), st.integers(1, 300))
def test_it_is_one_line_of_no_more_than_the_limit(text: str, limit: int) -> None:
    found = one_line(text, limit)
    assert len(found) <= limit
    assert len(found.splitlines()) <= 1
    assert not found.endswith(".")


def test_a_count_has_the_number_of_its_noun() -> None:
    assert [plural(count, "item") for count in (0, 1, 1200)] == ["0 items", "1 item", "1,200 items"]
    assert [plural(count, "batch", "batches") for count in (1, 2)] == ["1 batch", "2 batches"]
