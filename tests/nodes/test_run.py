"""Scripts on a node: what goes in, what comes back, and what is refused."""

import asyncio
import contextlib
import json
import shutil
import sys

import psutil
import pytest
from support.hosts import Host
from support.processes import processes_with
from support.waiting import until

from console.core.errors import AnswerUnreadable, ScriptFailed, ScriptTimedOut
from console.nodes.ssh import Node


async def test_arguments_stdin_and_both_outputs_arrive_unchanged(node: Node) -> None:
    words = ("a b", "c'd\"e", "$HOME `id` \\ *", "", "zeile\nzwei", "ü\udcff")
    script = 'for word; do printf "[%s]" "$word"; done; cat; printf oops >&2'
    answer = await node.run(script, args=words, timeout=20, stdin=b"\0in")
    expected = "".join(f"[{word}]" for word in words).encode("utf-8", "surrogateescape") + b"\0in"
    assert (answer.stdout, answer.stderr, answer.exit_status) == (expected, b"oops", 0)


async def test_a_script_starts_in_the_home_folder_with_the_c_locale(node: Node, host: Host) -> None:
    answer = await node.run('echo "$PWD $LC_ALL $HOSTNAME"', timeout=20)
    assert answer.stdout.decode().split() == [str(host.home), "C", "node-a"]


@pytest.mark.parametrize("ending", [b"", b"\n", b"\n\n"])
async def test_the_last_newlines_of_an_answer_are_kept(node: Node, ending: bytes) -> None:
    answer = await node.run("cat", timeout=20, stdin=b"x" + ending)
    assert answer.stdout == b"x" + ending


async def test_bytes_that_are_no_text_come_back_as_they_are(node: Node) -> None:
    everything = bytes(range(256)) * 1024
    answer = await node.run("cat", timeout=20, stdin=everything)
    assert answer.stdout == everything
    assert "\x1b" not in answer.text


async def test_a_large_answer_and_a_long_script_are_whole(node: Node) -> None:
    answer = await node.run("# " + "x" * 300_000 + "\nhead -c 8000000 /dev/zero", timeout=60)
    assert len(answer.stdout) == 8_000_000


async def test_a_failing_script_says_its_status_and_last_words(node: Node) -> None:
    with pytest.raises(ScriptFailed, match="status 3") as caught:
        await node.run("echo 'no \x1b]0;title\x07room' >&2; exit 3", timeout=20)
    assert caught.value.exit_status == 3
    assert caught.value.why == "no room"
    assert (await node.run("exit 3", timeout=20, check=False)).exit_status == 3


async def test_secrets_do_not_get_into_messages(node: Node) -> None:
    with pytest.raises(ScriptFailed) as caught:
        await node.run("echo 'token hf_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefgh' >&2; exit 1", timeout=20)
    assert "hf_ABC" not in caught.value.render()


async def test_chatty_start_up_files_do_not_spoil_an_answer(host: Host, node: Node) -> None:
    (host.home / ".bashrc").write_text("echo Welcome; printf '\\033]0;hi\\007END-0 0'; echo noise >&2\n")
    first = await node.run("echo answer", timeout=20)
    assert (first.stdout, first.stderr) == (b"answer\n", b"")


async def test_a_start_up_file_that_waits_is_named(host: Host, node: Node) -> None:
    (host.home / ".bashrc").write_text("cat >/dev/null; sleep 60\n")
    with pytest.raises(ScriptTimedOut, match="shell did not come up") as caught:
        await node.run("true", timeout=2)
    assert "start-up" in caught.value.next_step


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
async def test_the_login_shell_need_not_be_bash(make_host, make_node) -> None:  # type: ignore[no-untyped-def]
    host = await make_host("node-a", shell=str(shutil.which("fish")))
    node = await make_node(host.target)
    answer = await node.run('set -o pipefail; echo "${1^^} $BASH_VERSION"', args=("it's",), timeout=20)
    assert answer.text.startswith("IT'S 5")


async def test_a_node_without_bash_is_told_apart(make_host, make_node) -> None:  # type: ignore[no-untyped-def]
    host = await make_host("node-a", environment={"PATH": "/nonexistent"})
    node = await make_node(host.target)
    with pytest.raises(AnswerUnreadable, match="no bash answered") as caught:
        await node.run("true", timeout=20)
    assert "coreutils" in caught.value.next_step


async def test_an_answer_that_was_cut_short_is_refused(node: Node) -> None:
    with pytest.raises(AnswerUnreadable, match="cut short"):
        await node.run("echo half; kill -KILL $$", timeout=20)


async def test_a_script_that_prints_no_end_of_line_and_background_output_ends(node: Node) -> None:
    answer = await node.run("sleep 30 & printf done", timeout=20)
    assert answer.stdout == b"done"
    assert answer.seconds < 20


async def test_a_time_limit_ends_all_processes_of_a_script(node: Node, host: Host) -> None:
    script = "setsid sleep 321 & (trap '' TERM; sleep 322) & while :; do sleep 0.1; done"
    with pytest.raises(ScriptTimedOut, match="after 1 s"):
        await node.run(script, timeout=1)
    await until(lambda: not _sleeping(host, "321", "322"), "the script's processes are gone")
    assert (await node.run("echo on", timeout=20)).stdout == b"on\n"


async def test_giving_up_on_a_script_ends_it(node: Node, host: Host) -> None:
    task = asyncio.create_task(node.run("sleep 323", timeout=60))
    await until(lambda: _sleeping(host, "323"), "the script runs")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not _sleeping(host, "323"), "the script is gone")


async def test_no_more_than_eight_channels_are_open_at_once(node: Node) -> None:
    script = 'mkdir -p open; : >"open/$1"; ls open | wc -l; sleep 0.4; rm "open/$1"'
    answers = await asyncio.gather(*(node.run(script, args=(str(n),), timeout=30) for n in range(20)))
    counts = [int(answer.stdout) for answer in answers]
    assert len(counts) == 20
    assert 2 <= max(counts) <= 8


async def test_python_answers_with_one_document_after_any_chatter(node: Node) -> None:
    source = "import json, sys; print('on'); print(json.dumps({'args': sys.argv[1:], 'x': float('nan')}))"
    document = await node.run_python(sys.executable, source, args=("a b", "\x1b[31m"), timeout=20)
    assert document["args"] == ["a b", ""]
    assert document["x"] != document["x"]


async def test_python_that_is_not_there_names_interpreter_and_remedy(node: Node) -> None:
    with pytest.raises(ScriptFailed, match="no Python at /opt/none/python") as caught:
        await node.run_python("/opt/none/python", "print(1)", timeout=20)
    assert "interpreter of node-a" in caught.value.next_step


async def test_a_program_that_is_no_python_or_fails_says_so(node: Node) -> None:
    with pytest.raises(AnswerUnreadable, match="no JSON document"):
        await node.run_python("/bin/true", "print(1)", timeout=20)
    with pytest.raises(ScriptFailed, match="failed with status 1") as caught:
        await node.run_python(sys.executable, "import no_such_module", timeout=20)
    assert "no_such_module" in caught.value.why
    with pytest.raises(AnswerUnreadable):
        await node.run_python(sys.executable, f"print({json.dumps('[1]')})", timeout=20)


def _sleeping(host: Host, *seconds: str) -> list[int]:
    found = []
    for process in processes_with(f"HOME={host.home}"):
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if words[:1] == ["sleep"] and words[1] in seconds:
                found.append(process.pid)
    return found
