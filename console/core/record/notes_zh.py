"""The notes of a row in Chinese. The journal has them in English; what machines said stays as it is."""

import re

_ENDS = {"failed": "失败", "was stopped": "被停止", "ran out of time": "超时"}
_SEVERITIES = {"warning": "警告", "error": "错误"}

_AT = r"(?: at step (?P<step>\d+)(?: of (?P<total>\d+))?| before its first step)?"
_OUTCOME = re.compile(
    rf"(?:run (?P<end>{'|'.join(_ENDS)})|not ended yet){_AT}(?:: (?P<cause>.+))?", re.DOTALL
)
_FINDING = re.compile(r"(warning|error): (.+)", re.DOTALL)

_WHOLE = {
    "transport: gloo over TCP (no CUDA)": "传输：gloo，走 TCP（无 CUDA）",
    "transport: not known, the log holds no NCCL lines": "传输：未知，日志中没有 NCCL 行",
    "nodes of this run share a computer, perhaps a device: its peak may count more than once": (
        "本次运行的节点同在一台计算机上，可能共用一个设备：峰值可能重复计数"
    ),
    "the nodes of this run are devices of one computer: nothing crosses a network between them": (
        "本次运行的节点是同一台计算机的不同设备：节点之间不经过网络"
    ),
    "MFU above 1: the peak is too low for what was run (another dtype, or a disturbed measurement)": (
        "MFU 大于 1：峰值对所跑的内容偏低（精度不同，或测量受干扰）"
    ),
}
_PARTS = (
    (
        r"nodes of this run share one computer: they slow each other(?: down)?",
        "本次运行的节点同在一台计算机上：互相拖慢",
    ),
    (
        r"loss or grad_norm not finite in (\d+) of (\d+) steps \((.+?)\); loss 0\.0 there is .+",
        "{1} 步中有 {0} 步的 loss 或 grad_norm 非有限（{2}）；其中 loss 0.0 是被框架过滤的 NaN",
    ),
    (
        r"loss or grad_norm not finite in (\d+) of (\d+) steps \((.+?)\)",
        "{1} 步中有 {0} 步的 loss 或 grad_norm 非有限（{2}）",
    ),
    (r"attempt (\d+) \(before it: (.+)\)", "第 {0} 次尝试（此前：{1}）"),
    (r"adopted while running, on (.+)", "运行途中被接管，节点 {0}"),
    (r"transport: (.+)", "传输：{0}"),
    (r"steps were read on (\S+), not on (\S+) as expected", "步数取自 {0}，而不是预期的 {1}"),
    (r"steady step time: (.+)", "稳态步时：{0}"),
    (
        r"(\d+) lines of (.+) look like metrics and were not read, the first is line (\d+)",
        "{1} 中有 {0} 行像指标而未能读取，首行是第 {2} 行",
    ),
)
"""Pattern -> words with the pattern's groups by number; the first that fits the whole note counts."""


def in_chinese(note: str) -> str:
    """The note in Chinese; one of an unknown form is given back unchanged."""
    if note in _WHOLE:
        return _WHOLE[note]
    if found := _OUTCOME.fullmatch(note):
        return _outcome(found)
    if found := _FINDING.fullmatch(note):
        return f"{_SEVERITIES[found[1]]}：{found[2]}"
    for pattern, words in _PARTS:
        if found := re.fullmatch(pattern, note, re.DOTALL):
            return words.format(*found.groups())
    return note


def _outcome(found: re.Match[str]) -> str:
    end = f"运行{_ENDS[found['end']]}" if found["end"] else "尚未结束"
    of = f"，共 {found['total']} 步" if found["total"] else ""
    if found["step"]:
        end += f"（第 {found['step']} 步{of}）"
    elif "before its first step" in found[0]:
        end += "（第一步之前）"
    return end + (f"：{found['cause']}" if found["cause"] else "")
