"""Mirrors read as one stream: where lines come from, lines without an end, files that begin anew."""

from pathlib import Path

from console.tui.widgets.merged_logs import LINES_A_LOOK, MergedLogs


def texts(logs: MergedLogs) -> list[str]:
    """Rows as `01 text`."""
    return [
        f"{''.join(str(log) for log, _ in logs.said(n))} {logs.text(n)}".rstrip() for n in range(len(logs))
    ]


def mirrors(folder: Path, *contents: bytes) -> list[Path]:
    paths = [folder / f"{n}.log" for n in range(len(contents))]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)
    return paths


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as stream:
        stream.write(data)


def test_common_lines_stand_once_without_their_rank(tmp_path: Path) -> None:
    paths = mirrors(tmp_path, b"[rank0]: up\nonly 0\n", b"[rank1]: up\nonly 1\n")
    logs = MergedLogs(paths)
    assert logs.look(0.0) is not None
    assert texts(logs) == ["01 up", "0 only 0", "1 only 1"]
    assert logs.raw(0) == [(0, 0, b"[rank0]: up"), (1, 0, b"[rank1]: up")]
    assert logs.look(1.0) is None, "nothing was appended"


def test_lines_that_arrive_stand_at_the_end_and_an_unfinished_one_below_all(tmp_path: Path) -> None:
    paths = mirrors(tmp_path, b"a\n", b"a\n")
    logs = MergedLogs(paths)
    logs.look(0.0)
    append(paths[1], b"later\nnot yet wh")
    logs.look(1.0)
    append(paths[0], b"latest\n")
    logs.look(2.0)
    assert texts(logs) == ["01 a", "1 later", "0 latest", "1 not yet wh"]
    append(paths[1], b"ole\n")
    logs.look(3.0)
    assert texts(logs) == ["01 a", "1 later", "0 latest", "1 not yet whole"]


def test_a_mirror_that_does_not_exist_yet_joins_when_it_does(tmp_path: Path) -> None:
    paths = [*mirrors(tmp_path, b"a\n"), tmp_path / "later.log"]
    logs = MergedLogs(paths)
    logs.look(0.0)
    append(paths[1], b"a\nb\n")
    logs.look(1.0)
    assert texts(logs) == ["01 a", "1 b"]


def test_a_mirror_that_begins_anew_begins_the_stream_anew(tmp_path: Path) -> None:
    paths = mirrors(tmp_path, b"old\nold 2\n", b"same\n")
    logs = MergedLogs(paths)
    logs.look(0.0)
    paths[0].write_bytes(b"new\n")
    for now in (1.0, 2.0, 3.0):
        logs.look(now)
    assert texts(logs) == ["0 new", "1 same"]


def test_more_than_one_look_takes_is_not_lost(tmp_path: Path) -> None:
    paths = mirrors(tmp_path, b"", b"")
    logs = MergedLogs(paths)
    logs.look(0.0)
    count = 2 * LINES_A_LOOK + 7
    append(paths[0], b"".join(b"line %d\n" % n for n in range(count)))
    logs.look(1.0)
    assert logs.behind
    looks = 1
    while logs.behind:
        looks += 1
        logs.look(float(looks))
    assert len(logs) == count
    assert texts(logs)[-1] == f"0 line {count - 1}"


def test_a_finding_is_on_the_row_that_holds_its_byte(tmp_path: Path) -> None:
    logs = MergedLogs(mirrors(tmp_path, b"up\nsecond\n", b"up\n"))
    logs.look(0.0)
    assert logs.rests_on(0, 1, 0)
    assert logs.rests_on(1, 0, 5)
    assert not logs.rests_on(0, 0, 5)
