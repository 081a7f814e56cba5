"""The five acceptance criteria, judged from what is in the journal."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from console.core.plan.checklist import ItemState
from console.core.record.experiment import Experiment
from console.core.record.figures import Row
from console.core.record.gaps import (
    Both,
    blank_cells,
    complete_rows,
    degradation,
    ended_well,
    rows_in_order,
    without_row,
)
from console.core.record.stand_in import whose_figures
from console.core.record.views import ItemView

Lang = Literal["en", "zh"]

ROWS_NEEDED, ROWS_NEEDED_DEGRADED = 3, 2

TEXTS: tuple[Both, ...] = (
    (
        "Every checklist item has a conclusion: passed, or failed with its raw error; none untested",
        "冒烟清单逐项有结论：通过，或失败并附原始报错；没有未测项",
    ),
    (
        "At least three configurations compared (degraded path: at least two, and the three-way comparison); "
        "no blank cell in the record sheet",
        "至少三组配置完成对照（降级路径至少两组，加三方数据对照）；记录表无空格",
    ),
    (
        "Every configuration has its MFU, with the peak it is measured against",
        "每组配置都有 MFU，并注明所用峰值口径",
    ),
    (
        "The one page answers which parallelism to choose for a 7B LoRA on two Sparks and why, "
        "with own figures",
        "一页纸回答双机 Spark 上 7B 级 LoRA 选哪种并行、为什么，并引用自己的实测数字",
    ),
    (
        "The production service is restored and has passed its health check",
        "生产服务已恢复并通过健康检查",
    ),
)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion. `met` None: can't be judged yet. `proof` and `missing` are in the language asked for."""

    number: int
    text: str
    text_zh: str
    met: bool | None
    proof: str
    missing: str


class Judged(NamedTuple):
    """A criterion's outcome, with proof and what is missing in both languages."""

    met: bool | None
    proof: Both
    missing: Both = ("", "")


def criteria(experiment: Experiment, lang: Lang = "en") -> tuple[Criterion, ...]:
    """All five, in order."""
    judged = (
        _checklist(experiment),
        _comparison(experiment),
        _utilisation(experiment),
        _answer(experiment),
        _service(experiment),
    )
    which = _which(lang)
    return tuple(
        Criterion(number, *TEXTS[number - 1], one.met, one.proof[which], one.missing[which])
        for number, one in enumerate(judged, start=1)
    )


def accepted(experiment: Experiment) -> bool:
    """Every criterion is met."""
    return all(criterion.met is True for criterion in criteria(experiment))


def verdict(experiment: Experiment, lang: Lang = "en") -> str:
    """The conclusion in one sentence, naming what falls short."""
    judged = criteria(experiment, lang)
    unmet = [str(one.number) for one in judged if one.met is False]
    later = [str(one.number) for one in judged if one.met is None]
    path = (" on the degraded path", "（降级路径）")[_which(lang)] if degradation(experiment) else ""
    if lang == "zh":
        if unmet:
            tail = f"；第 {'、'.join(later)} 条尚不能判定" if later else ""
            return f"未达标{path}：第 {'、'.join(unmet)} 条未满足{tail}。"
        return (
            f"尚无结论{path}：第 {'、'.join(later)} 条尚不能判定。"
            if later
            else f"验收通过{path}：五条全部满足。"
        )
    if unmet:
        tail = f"; not to be judged yet: {', '.join(later)}" if later else ""
        return f"Fell short{path}: not met: {', '.join(unmet)}{tail}."
    if later:
        return f"No conclusion yet{path}: not to be judged yet: {', '.join(later)}."
    return f"Accepted{path}: all five criteria are met."


def _which(lang: Lang) -> int:
    return 1 if lang == "zh" else 0


def _listed(parts: list[str], which: int) -> str:
    return ("; ", "；")[which].join(parts)


def _checklist(experiment: Experiment) -> Judged:
    good: list[str] = []
    failed: list[str] = []
    lacking: list[Both] = []
    open_items = False
    for item in experiment.checklist.items:
        view = experiment.items[item.id]
        if view.state.good:
            good.append(str(item.number))
        elif view.state in (ItemState.FAILED, ItemState.TIMED_OUT):
            failed.append(str(item.number))
            if not _raw_error(view):
                lacking.append(
                    (f"{item.number} failed without its raw error", f"第 {item.number} 项失败但无原始报错")
                )
        elif view.state is ItemState.SKIPPED:
            why = f" ({view.reason})" if view.reason else ""
            lacking.append(
                (f"{item.number} was skipped, so not tested{why}", f"第 {item.number} 项被跳过，即未测{why}")
            )
        else:
            open_items = True
            lacking.append((f"{item.number} has no conclusion", f"第 {item.number} 项没有结论"))
    proof = (
        f"passed: {', '.join(good) or 'none'}" + (f"; failed: {', '.join(failed)}" if failed else ""),
        f"通过：{'、'.join(good) or '无'}" + (f"；失败：{'、'.join(failed)}" if failed else ""),
    )
    if not lacking:
        return Judged(True, proof)
    pending = open_items and experiment.verdict is None and experiment.outcome is None
    missing = (_listed([en for en, _ in lacking], 0), _listed([zh for _, zh in lacking], 1))
    return Judged(None if pending else False, proof, missing)


def _raw_error(view: ItemView) -> str:
    return next((step.error for step in view.evidence if step.error), view.reason)


def _comparison(experiment: Experiment) -> Judged:
    degraded = degradation(experiment) is not None
    needed = ROWS_NEEDED_DEGRADED if degraded else ROWS_NEEDED
    complete = complete_rows(experiment)
    lacking = _blanks(experiment)
    if len(complete) < needed:
        en = f"{len(complete)} of at least {needed} configurations are complete"
        lacking.insert(0, (en, f"完整的配置只有 {len(complete)} 组，至少要 {needed} 组"))
    if degraded and not any(_measured_peak(row) for row in complete):
        lacking.append(("the three-way comparison lacks an own measured peak", "三方对照缺少自测峰值"))
    proof = _compared(experiment, complete, degraded and not lacking)
    missing = (_listed([en for en, _ in lacking], 0), _listed([zh for _, zh in lacking], 1))
    return Judged(_met(experiment, not lacking), proof, missing)


def _compared(experiment: Experiment, complete: tuple[Row, ...], three_ways: bool) -> Both:
    ids = ", ".join(row.id for row in complete)
    en, zh = f"complete: {ids or 'none'}", f"完整：{ids or '无'}"
    never = ", ".join(config for config in without_row(experiment) if not experiment.runs_of(config))
    if never:
        en, zh = f"{en}; not run: {never}", f"{zh}；未运行：{never}"
    if three_ways:
        en += "; compared three ways: own micro-benchmark, own runs, published A800 table"
        zh += "；三方对照：自测微基准、自测训练、官方 A800 表"
    return en, zh


def _blanks(experiment: Experiment) -> list[Both]:
    """Blank cells, runs that ended badly, runs without a row. A configuration never started is no blank."""
    found: list[Both] = []
    for row in rows_in_order(experiment):
        blanks = blank_cells(row)
        if blanks:
            names = [name for name, _ in blanks]
            en, zh = ", ".join(en for en, _ in names), "、".join(zh for _, zh in names)
            found.append((f"{row.id} lacks {en}", f"{row.id} 缺 {zh}"))
        elif not ended_well(experiment, row):
            found.append((f"the run of {row.id} did not end well", f"{row.id} 的运行没有正常结束"))
    for config, (why, why_zh) in without_row(experiment).items():
        if experiment.runs_of(config):
            found.append((f"{config} has no row ({why})", f"{config} 没有记录（{why_zh}）"))
    return found


def _measured_peak(row: Row) -> bool:
    return row.mfu_6n is not None and row.peak_source.startswith("measured")


def _utilisation(experiment: Experiment) -> Judged:
    rows = rows_in_order(experiment)
    lacking = [row.id for row in rows if row.mfu_6n is None or row.mfu_lora is None or not row.peak_source]
    proof = "; ".join(
        f"{row.id} {row.mfu_6n:.1%}" for row in rows if row.mfu_6n is not None and row.peak_source
    )
    peaks = "; ".join(dict.fromkeys(row.peak_source for row in rows if row.peak_source))
    both = (f"6N: {proof}. Peak: {peaks}", f"6N：{proof}。峰值：{peaks}") if proof else ("none", "无")
    if not rows:
        return Judged(_met(experiment, False), both, ("no configuration has a row", "没有任何配置的记录"))
    missing = ", ".join(lacking)
    return Judged(
        _met(experiment, not lacking),
        both,
        (f"no MFU or no named peak: {missing}", f"MFU 或峰值口径：{missing}") if lacking else ("", ""),
    )


def _answer(experiment: Experiment) -> Judged:
    complete = complete_rows(experiment)
    nodes = {row.id: len(row.peak_memory_bytes) for row in complete}
    compared = len(complete) >= 2 and (
        degradation(experiment) is not None or len(set(nodes.values())) > 1 or min(nodes.values()) > 1
    )
    figures = ", ".join(f"{row.id} {row.tokens_per_second:.4g} tokens/s" for row in complete)
    if not compared:
        return Judged(
            _met(experiment, False),
            (figures or "none", figures or "无"),
            (
                "needs at least two complete rows, one of them over both nodes",
                "至少需要两行完整记录，其中一行跨两台机器",
            ),
        )
    en, zh = whose_figures(experiment)
    return Judged(True, (f"section 3 cites {figures}{en}", f"第 3 节引用 {figures}{zh}"))


def _service(experiment: Experiment) -> Judged:
    service, name = experiment.service, experiment.profile.service.name
    if experiment.profile.service.kind == "none":
        return Judged(
            True,
            (
                "no service was borrowed, so nothing had to be restored; this proves nothing about a restore",
                "没有借用任何服务，无需恢复；这不能证明恢复流程可用",
            ),
        )
    since = f", {service.since:%Y-%m-%d %H:%M} UTC" if service.since else ""
    words = f" ({service.words})" if service.words else ""
    if service.state == "healthy":
        return Judged(
            True,
            (f"{name} is healthy{since}{words}", f"{name} 已恢复并通过健康检查{since}{words}"),
        )
    if not service.was_stopped and service.state == "serving":
        return Judged(
            True,
            (f"{name} was never stopped and serves{since}", f"{name} 从未停止，仍在服务{since}"),
        )
    return Judged(
        None if experiment.outcome is None else False,
        (
            f"last state of {name}: {service.state}{since}{words}",
            f"{name} 最后状态：{service.state}{since}{words}",
        ),
        (f"{name} is not proven healthy", f"{name} 尚未证明健康"),
    )


def _met(experiment: Experiment, met: bool) -> bool | None:
    """False only when nothing that is still to come can change it."""
    if met:
        return True
    settled = all(
        (runs := experiment.runs_of(config)) and runs[-1].outcome is not None
        for config in experiment.configurations
    )
    return False if experiment.outcome is not None or settled else None
