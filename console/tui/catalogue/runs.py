"""The Runs screen and its charts."""

RUNS = {
    "runs.no_run": (
        "No run yet. With the first one come here:\n"
        " · charts of loss, grad_norm, step time, tokens/s, memory and power\n"
        " · what is found in the run, with what to do first\n"
        " · the live log of every node, to follow, search and filter\n"
        "Until then: 1 shows the nodes, 2 the checklist, 4 what the runs should cost.",
        "还没有运行。首次运行开始后，这里显示：\n"
        " · 损失、梯度范数、步时、词元/秒、内存、功率的图\n"
        " · 运行中的发现，以及首先该做什么\n"
        " · 每个节点的实时日志，可跟随、搜索、过滤\n"
        "在此之前：1 看节点，2 看清单，4 看各运行的预计开销。",
    ),
    "runs.step": ("step", "步"),
    "runs.since": ("last step", "上一步"),
    "runs.global": ("global", "全局"),
    "runs.log": ("log", "日志"),
    "runs.following": ("following", "跟随中"),
    "runs.stopped": ("not following", "未跟随"),
    "runs.lines": ("{n} lines", "{n} 行"),
    "runs.line": ("1 line", "1 行"),
    "runs.merged": ("merged", "合并"),
    "runs.order": (
        "order: arrival, stamp, step, text; ~ unknown",
        "顺序：到达、时间戳、步、共同行；~ 未知",
    ),
    "runs.begins": (
        "⋯ merged from the last {n} lines of each log on; v: one log, whole",
        "⋯ 仅合并每份日志的最后 {n} 行起的内容；v：看整份日志",
    ),
    "runs.one_log": ("this run has one log", "此运行只有一份日志"),
    "runs.heard": ("heard {age}", "读数 {age}"),
    "runs.ago": ("{age} ago", "{age}前"),
    "runs.others": (
        "{n} others: {up} links up, readings at most {age}",
        "其余 {n} 个：{up} 条链路连通，读数最久 {age}",
    ),
    "runs.log_whole": ("log complete", "日志完整"),
    "runs.log_open": ("log not complete", "日志不完整"),
    "runs.filtered": ("filter", "过滤"),
    "runs.log_rank": ("rank {rank}, its log counts", "rank {rank}，以其日志为准"),
    "runs.rank": ("rank {rank}", "rank {rank}"),
    "runs.no_log": ("no log yet", "还没有日志"),
    "runs.older": ("older text is not on this computer", "更早的内容不在本机"),
    "runs.findings": ("findings", "发现"),
    "runs.none": ("none", "无"),
    "runs.bad_pattern": ("not a regular expression", "正则表达式有误"),
    "runs.too_slow": (
        "this expression takes too long on the line “{line}”; simplify it",
        "此表达式在“{line}”一行上耗时过长；请简化",
    ),
    "runs.looking": ("looking through the log", "正在查找日志"),
    "runs.no_match": ("no match", "无匹配"),
    "runs.copied": ("lines copied: {n}", "已复制 {n} 行"),
    "runs.byte": ("byte {byte}", "偏移 {byte}"),
    "runs.marked": ("marked; move and copy", "已标记；移动后复制"),
    "runs.no_findings": ("no finding has a place in this log", "此日志中无发现"),
    "runs.raw": ("raw bytes, line {line}, byte {byte}", "原始字节，第 {line} 行，偏移 {byte}"),
    "chart.loss": ("loss", "损失"),
    "chart.grad_norm": ("grad_norm", "梯度范数"),
    "chart.step_seconds": ("step time, s", "步时，秒"),
    "chart.tokens": ("tokens/s", "词元/秒"),
    "chart.memory": ("memory, GiB", "内存，GiB"),
    "chart.device_memory": ("GPU memory, GiB", "显存，GiB"),
    "chart.power": ("GPU power, W", "GPU 功率，W"),
    "chart.clock": ("GPU clock, MHz", "GPU 频率，MHz"),
    "chart.validation": ("validation", "验证"),
    "chart.total": ("total", "总量"),
    "chart.floor": ("guard acts", "守护触发"),
    "chart.predicted": ("predicted", "预计"),
    "chart.not_finite": ("{n} not finite, first at step {step}", "{n} 个非有限值，首见于第 {step} 步"),
    "chart.not_positive": ("{n} not above 0, first at step {step}", "{n} 个不大于 0，首见于第 {step} 步"),
    "chart.minutes": ("min", "分"),
    "chart.log": (", log", "，对数"),
    "chart.ema": ("EMA {weight}", "EMA {weight}"),
    "chart.smoothed": (", EMA {weight}", "，EMA {weight}"),
    "chart.no_steps": ("no values yet: no step was logged", "还没有数值：尚无步的记录"),
    "chart.not_in_steps": ("no values yet: the logged steps have none", "还没有数值：已记录的步中没有此值"),
    "chart.no_clock": (
        "no values yet: two steps with the elapsed time are needed",
        "还没有数值：需要两步带用时的记录",
    ),
    "chart.no_lengths": (
        "no values yet: the log has not named the mean tokens per sample",
        "还没有数值：日志尚未给出每样本平均词元数",
    ),
    "chart.no_gpu": ("no values: {why}", "没有数值：{why}"),
    "chart.no_readings": ("no values yet: no reading of this run", "还没有数值：此运行尚无读数"),
    "chart.at_step": ("step {step}", "第 {step} 步"),
}
