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
    ("failure: spark-b: one rail of two in use (NCCL lists one HCA)", "spark-b: one rail"),
    ("MFU above 1: the peak is too low for what was run (another dtype, or a disturbed measurement)", "MFU"),
]


REASONS = [
    ("no training step was logged", "没有记录任何训练步"),
    (
        "no training step was logged; the run failed: ValueError: a; b",
        "没有记录任何训练步；运行失败：ValueError: a; b",
    ),
    (
        "the log of spark-b, which carries the steps, was not kept; the run has not ended",
        "spark-b 上记有训练步的日志没有保存；运行尚未结束",
    ),
    ("no steady step time: 1 logged step: no difference to take", "没有稳态步时：只记录了 1 步：无从取差"),
    (
        "no steady step time: only 3 logged steps up to step 3; the first 5 are warm-up",
        "没有稳态步时：到第 3 步只记录了 3 步；前 5 步是预热",
    ),
    (
        "tokens per step are not known: the log holds neither a count of tokens nor the data set's mean "
        "token length",
        "每步 token 数未知：日志中既没有 token 计数，也没有数据集的平均 token 长度",
    ),
    ("the loss of step 9, the last one, is nan", "最后的第 9 步的损失为 nan"),
    ("the node's sampler delivered nothing during the run", "运行期间，此节点的采样器没有送来任何读数"),
    (
        "steady step time: printed with few digits: exact to ±0.5 s only; logging.jsonl of this run is "
        "exact; 1 earlier run in this file left out",
        "稳态步时：打印的位数少：只精确到 ±0.5 s；此运行的 logging.jsonl 是精确的；"
        "此文件中更早的 1 次运行未计入",
    ),
]


@pytest.mark.parametrize(("reason", "words"), REASONS)
def test_why_a_cell_is_blank_in_chinese(reason: str, words: str) -> None:
    assert in_chinese(reason) == words


@pytest.mark.parametrize(("note", "kept"), NOTES)
def test_a_note_in_chinese(note: str, kept: str) -> None:
    words = in_chinese(note)
    assert kept in words
    assert re.search("[\u4e00-\u9fff]", words)


def test_an_unknown_note_stays() -> None:
    assert in_chinese("something new: 3") == "something new: 3"


def test_a_note_of_endless_notes_is_not_followed() -> None:
    assert in_chinese("transport: " * 5000 + "x").startswith("传输：传输：传输：transport: ")
