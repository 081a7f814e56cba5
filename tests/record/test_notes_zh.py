"""Every kind of note that the console writes has its Chinese words; what machines wrote stays as it is."""

import re

import pytest

from console.core.record.notes_zh import in_chinese

NOTES = [
    ("not ended yet", "尚未结束"),
    ("not ended yet at step 61 of 93", "第 61 步"),
    ("run failed at step 12 of 93: CUDA out of memory", "CUDA out of memory"),
    ("run was stopped before its first step: asked for", "第一步之前"),
    ("run ran out of time", "超时"),
    ("loss or grad_norm not finite in 2 of 10 steps (3, 4)", "（3, 4）"),
    (
        "loss or grad_norm not finite in 6 of 10 steps (1, 2, 3, 4, 5 …); loss 0.0 there is a NaN that the "
        "framework filtered",
        "过滤",
    ),
    ("attempt 2 (before it: E1-1 failed)", "E1-1 failed"),
    ("adopted while running, on spark-a, spark-b", "spark-a, spark-b"),
    ("transport: gloo over TCP (no CUDA)", "gloo"),
    ("transport: not known, the log holds no NCCL lines", "NCCL"),
    ("transport: NCCL 2.28: network IB; P2P/CUMEM", "NCCL 2.28: network IB"),
    ("steps were read on spark-a, not on spark-b as expected", "spark-a"),
    ("steady step time: too few steps", "too few steps"),
    ("12 lines of logs/a/E0-1.log look like metrics and were not read, the first is line 40", "第 40 行"),
    ("warning: spark-b: one rail of two in use (NCCL lists one HCA)", "spark-b: one rail"),
    ("MFU above 1: the peak is too low for what was run (another dtype, or a disturbed measurement)", "MFU"),
]


@pytest.mark.parametrize(("note", "kept"), NOTES)
def test_a_note_in_chinese(note: str, kept: str) -> None:
    words = in_chinese(note)
    assert kept in words
    assert re.search("[\u4e00-\u9fff]", words)


def test_an_unknown_note_stays() -> None:
    assert in_chinese("something new: 3") == "something new: 3"
