"""The notes of a row and why its blanks are blank, in Chinese. The journal has them in English.

What machines said stays as it is.
"""

import re

_ENDS = {"failed": "失败", "was stopped": "被停止", "ran out of time": "超时"}
_SEVERITIES = {"warning": "警告", "failure": "故障"}

_AT = r"(?: at step (?P<step>\d+)(?: of (?P<total>\d+))?| before its first step)?"
_OUTCOME = re.compile(
    rf"(?:run (?P<end>{'|'.join(_ENDS)})|not ended yet){_AT}(?:: (?P<cause>.+))?", re.DOTALL
)
_FINDING = re.compile(r"(warning|failure): (.+)", re.DOTALL)

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
    "too few steps were logged": "已记录的步太少",
    "the log prints no speed": "日志没有打印速度",
    "no training step was logged": "没有记录任何训练步",
    "run has not ended": "运行尚未结束",
    "no loss was logged": "没有记录损失",
    "nothing was recorded on this node": "此节点上没有任何记录",
    "a figure came without its source, so it is not shown": "有数值而没有出处，故不显示",
    "the log holds neither a count of tokens nor the data set's mean token length": (
        "日志中既没有 token 计数，也没有数据集的平均 token 长度"
    ),
    "each rank prints its own share of the model, and the profile names no known model": (
        "各 rank 只打印自己那一份模型，而 profile 没有指明已知的模型"
    ),
    "the log prints no parameter count, and the profile names no known model": (
        "日志没有打印参数量，profile 也没有指明已知的模型"
    ),
    "the log does not print the lengths of the rows, which attention depends on": (
        "日志没有打印样本长度，而注意力的计算量取决于它"
    ),
    "the model's shapes are not known: the profile names no model of the catalogue": (
        "模型的形状未知：profile 没有指明目录中的模型"
    ),
    "the profile names no device": "profile 没有指明设备",
    "the node's sampler delivered nothing during the run": "运行期间，此节点的采样器没有送来任何读数",
    "neither the driver nor the framework gave a figure on this node": "此节点上驱动与框架都没有给出数值",
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
        r"(no training step was logged|the log of \S+, which carries the steps, was not kept); (?:the )?(.+)",
        "{0}；{1}",
    ),
    (r"the log of (\S+), which carries the steps, was not kept", "{0} 上记有训练步的日志没有保存"),
    (r"(printed with .+ is exact); (.+)", "{0}；{1}"),
    (
        r"printed with few digits: exact to (±\S+ s) only; logging\.jsonl of this run is exact",
        "打印的位数少：只精确到 {0}；此运行的 logging.jsonl 是精确的",
    ),
    (r"(\d+) earlier runs? in this file left out", "此文件中更早的 {0} 次运行未计入"),
    (r"no steady step time: (.+)", "没有稳态步时：{0}"),
    (r"(\d+) logged steps?: no difference to take", "只记录了 {0} 步：无从取差"),
    (
        r"only (\d+) logged steps? up to step (\d+); the first (\d+) are warm-up",
        "到第 {1} 步只记录了 {0} 步；前 {2} 步是预热",
    ),
    (r"tokens per step are not known: (.+)", "每步 token 数未知：{0}"),
    (
        r"the loss of step (\d+), the last one, is a NaN that the framework filtered",
        "最后的第 {0} 步的损失是被框架过滤的 NaN",
    ),
    (r"the loss of step (\d+), the last one, is (\S+)", "最后的第 {0} 步的损失为 {1}"),
    (
        r"no matrix product was measured on (.+), and the profile states no (\S+) peak",
        "{0} 上没有测过矩阵乘，profile 也没有给出 {1} 的峰值",
    ),
    (r"the adapters can't be counted: (.+)", "无法统计适配器参数：{0}"),
    (
        r"(\d+) lines of (.+) look like metrics and were not read, the first is line (\d+)",
        "{1} 中有 {0} 行像指标而未能读取，首行是第 {2} 行",
    ),
)
"""Pattern -> words with the pattern's groups by number, each in Chinese where it is a note itself.

The first that fits the whole note counts.
"""


def in_chinese(note: str, *, nested: int = 3) -> str:
    """The note in Chinese, with notes within it to that depth; an unknown form is given back unchanged."""
    if note in _WHOLE:
        return _WHOLE[note]
    if found := _OUTCOME.fullmatch(note):
        return _outcome(found)
    if found := _FINDING.fullmatch(note):
        return f"{_SEVERITIES[found[1]]}：{found[2]}"
    for pattern, words in _PARTS if nested else ():
        if found := re.fullmatch(pattern, note, re.DOTALL):
            return words.format(*(in_chinese(part, nested=nested - 1) for part in found.groups()))
    return note


def _outcome(found: re.Match[str]) -> str:
    end = f"运行{_ENDS[found['end']]}" if found["end"] else "尚未结束"
    of = f"，共 {found['total']} 步" if found["total"] else ""
    if found["step"]:
        end += f"（第 {found['step']} 步{of}）"
    elif "before its first step" in found[0]:
        end += "（第一步之前）"
    return end + (f"：{found['cause']}" if found["cause"] else "")
