import struct

import pytest

from agent_world.environments.change_log import read_changes
from agent_world.environments.errors import CorruptStateError

PAGE = 512
SALT, OTHER_SALT = b"saltsalt", b"otherone"


def header(page_size: int = PAGE) -> bytes:
    return struct.pack(">IIII8sII", 0x377F0682, 3007000, page_size, 0, SALT, 0, 0)


def frame(page: int, content: bytes, *, pages_after_commit: int = 0, salt: bytes = SALT) -> bytes:
    return struct.pack(">II8sII", page, pages_after_commit, salt, 0, 0) + content * PAGE


def test_the_last_commit_of_a_page_counts_and_nothing_after_it():
    log = header() + frame(2, b"a") + frame(3, b"b", pages_after_commit=5) + frame(2, b"c", pages_after_commit=4)
    changes = read_changes(log + frame(3, b"x") + frame(1, b"x"), b"", PAGE)
    assert changes.pages == {2: b"c" * PAGE, 3: b"b" * PAGE}
    assert changes.count == 4


def test_frames_of_an_earlier_log_are_none_of_this_one():
    log = header() + frame(2, b"a", pages_after_commit=3) + frame(3, b"x", pages_after_commit=3, salt=OTHER_SALT)
    assert read_changes(log, b"", PAGE).pages == {2: b"a" * PAGE}


def test_pages_beyond_the_end_of_the_file_are_gone():
    log = header() + frame(9, b"a", pages_after_commit=9) + frame(2, b"b", pages_after_commit=5)
    assert read_changes(log, b"", PAGE).pages == {2: b"b" * PAGE}


def test_half_a_frame_is_no_frame():
    log = header() + frame(2, b"a", pages_after_commit=3)
    assert read_changes(log + frame(3, b"b", pages_after_commit=3)[:-1], b"", PAGE).pages == {2: b"a" * PAGE}
    assert not read_changes(log[:-1], b"", PAGE)
    assert not read_changes(b"", b"", PAGE)


@pytest.mark.parametrize("log", [b"x", b"x" * 32, header(1024)])
def test_a_log_that_is_none_is_named_so(log):
    with pytest.raises(CorruptStateError, match="write-ahead log"):
        read_changes(log, b"", PAGE)


def test_the_last_text_of_a_document_counts():
    log = b'[0, {"a.md": "one", "b/c.md": "two"}]\n[0, {"a.md": "three"}]\n'
    assert read_changes(b"", log, PAGE).documents == {"a.md": "three", "b/c.md": "two"}


def test_a_line_without_its_newline_counts_when_the_pages_of_its_call_were_committed():
    first = header() + frame(2, b"a", pages_after_commit=3)
    second = frame(3, b"b") + frame(2, b"c", pages_after_commit=3)
    log = b'[0, {"a.md": "one"}]\n[%d, {"a.md": "two", "b.md": "new"}] ' % len(first)
    before, after = {"a.md": "one"}, {"a.md": "two", "b.md": "new"}
    assert read_changes(first + second, log, PAGE).documents == after
    for torn in range(len(second)):
        assert read_changes(first + second[:torn], log, PAGE).documents == before
    for torn in range(log.index(b"\n") + 1, len(log) - 1):
        assert read_changes(first + second, log[:torn], PAGE).documents == before
