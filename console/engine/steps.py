"""One step of the checklist carried out: its answer, before any rule is held against it."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.core.plan.checklist import Step
from console.core.plan.infer import infer_argv, read_infer_result
from console.core.plan.launch import fill, run_environment
from console.core.plan.profile import ContainerEnvironment, Profile
from console.core.reading.steady import steady_step_seconds
from console.core.record.views import RunView
from console.engine.contact import with_contact
from console.engine.crew import Crew, Member
from console.engine.memory import peak_memory
from console.engine.planning import master_port, smoke_of, smoke_run, smoke_settings
from console.engine.recorder import Recorder
from console.engine.running import Running
from console.engine.watching import mirrored_log
from console.nodes.all_reduce import Rank, check_all_reduce
from console.nodes.pair import Place, check_pair
from console.nodes.probes import run_probe

STARTS_SECONDS = 15.0
"""Part of a step's time that a probe's own start and way may take."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a step came to. `error` is raw text; empty means that the step itself worked."""

    answer: Mapping[str, Any]
    output: str = ""
    error: str = ""
    exit_status: int | None = None


@dataclass(slots=True)
class StepRunner:
    """Carries out steps of every kind."""

    recorder: Recorder
    crew: Crew
    running: Running

    @property
    def profile(self) -> Profile:
        return self.recorder.experiment.profile

    def members(self, step: Step) -> Sequence[Member | None]:
        """Who carries the step out; None stands for all nodes together."""
        if step.on == "pair":
            return [None]
        members = list(self.crew.values())
        return members[:1] if step.on == "first" else members

    def command(self, step: Step, member: Member | None) -> str:
        """The step in words that a person could repeat."""
        if step.command:
            assert member is not None
            return shlex.join(fill(part, member.places) for part in step.command)
        if step.train:
            return f"{'swift' if step.train == 'ordinary' else 'megatron'} sft (short run)"
        if step.infer_after:
            return "swift infer with the run's checkpoint"
        return f"probe {step.probe}"

    async def run(self, step: Step, member: Member | None, limit: float) -> Done:
        """Carry the step out. Raises `NodeError`; a failure that the step expects is in the answer."""
        if step.on == "pair" or member is None:
            return await (self._all_reduce(step, limit) if step.probe == "all_reduce" else self._pair())
        if step.command:
            return await self._command(step, member, limit)
        if step.train:
            return await self._train(step, member, limit)
        if step.infer_after:
            return await self._infer(member, limit)
        return await self._probe(step, member, limit)

    def abandon(self, why: str) -> None:
        """End the short run that a step out of time leaves under way."""
        run = self.recorder.experiment.current_run
        if run is not None and run.purpose == "smoke":
            self.running.abandon(run.id, f"{why}; whether its job still runs there is not known")

    async def _probe(self, step: Step, member: Member, limit: float) -> Done:
        assert step.probe is not None
        interpreter = member.node.target.interpreter if step.probe == "baseline" else member.python
        if step.probe == "environment":
            interpreter = member.node.target.interpreter
        arguments = self._arguments(step.probe, member) | step.args
        answer = await run_probe(member.node, interpreter, step.probe, arguments, timeout=limit)
        return Done(answer, error="" if answer.get("ok") else str(answer.get("error", "")))

    def _arguments(self, probe: str, member: Member) -> dict[str, Any]:
        """What the profile says to a probe; a step's own `args` come on top."""
        if probe == "microbench":
            return {"dtype": self.profile.settings.dtype, "gpu": member.spec.gpu or 0}
        if probe == "environment":
            environment = self.profile.environment
            if isinstance(environment, ContainerEnvironment):
                return {"kind": "container", "image": environment.image}
            path = fill(environment.path, member.places) if environment.path else None
            return {
                "kind": "venv",
                "python": member.python,
                "path": path,
                "create": environment.create,
                "requirements": list(environment.requirements),
            }
        if probe == "tiny_model":
            return self._model_arguments(member)
        return {}

    def _model_arguments(self, member: Member) -> dict[str, Any]:
        smoke, _ = smoke_of(self.profile, "ordinary")
        model, dataset = smoke.model or self.profile.model, smoke.dataset or self.profile.dataset
        sources = [fill(source, member.places) for source in dataset.sources]
        arguments: dict[str, Any] = {
            "model_path": fill(model.path, member.places),
            "data_sources": [source.split("#")[0] for source in sources] if model.build else sources,
            "cache": f"{member.shared}/modelscope",
        }
        return arguments | (model.build.model_dump() if model.build else {})

    async def _pair(self) -> Done:
        places = [
            Place(member.node, member.spec.address, member.shared, f"{member.shared}/modelscope")
            for member in self.crew.values()
        ]
        answer = await check_pair(
            places,
            port=self.profile.network.master_port,
            seconds=self.profile.network.check_port_seconds,
            create_shared=True,
        )
        return Done(answer, error=str(answer.get("error", "")))

    async def _all_reduce(self, step: Step, limit: float) -> Done:
        port = await master_port(self.profile, self.crew)
        nodes, name = self.profile.nodes, self.recorder.experiment.name
        # runs on the CPU talk over gloo, also where there is a device
        extra = {"CUDA_VISIBLE_DEVICES": ""} if self.profile.settings.use_cpu else {}
        ranks = []
        for number, member in enumerate(self.crew.values()):
            places = member.in_run(name, step.id)
            env = run_environment(self.profile, number, nodes, port, places, extra)
            ranks.append(Rank(member.node, member.python, env))
        answer = await check_all_reduce(ranks, seconds=max(5.0, limit - STARTS_SECONDS), **step.args)
        return Done(answer, error=str(answer.get("error", "")))

    async def _command(self, step: Step, member: Member, limit: float) -> Done:
        answer = await member.node.run(self.command(step, member), timeout=limit, check=False)
        return Done(
            {"exit_code": answer.exit_status, "output": answer.text},
            output=answer.text,
            error=answer.error_text if answer.exit_status else "",
            exit_status=answer.exit_status,
        )

    async def _train(self, step: Step, member: Member, limit: float) -> Done:
        assert step.train is not None
        attempt = self._attempt(step.train)
        experiment = self.recorder.experiment
        request = await smoke_run(self.profile, self.crew, experiment.name, step.train, attempt, limit)
        run = await self.running.carry(request)
        folder = self.recorder.journal.folder
        log = mirrored_log(folder, run.log_node, run.id, request.framework)
        memory = peak_memory(self.recorder, run, {run.log_node: log})[run.log_node]
        checkpoint = await self._checkpoint(member, run.id)
        job = run.jobs.get(member.name)
        nonfinite = [s for s in run.steps if not (_finite(s.loss) and _finite(s.grad_norm))]
        filtered = [
            s for s in run.steps if s.loss == 0.0 and s.grad_norm is not None and math.isnan(s.grad_norm)
        ]
        answer = {
            "run": run.id,
            "exit_code": job.exit_code if job else None,
            "ended": log.ended,
            "steps": len(run.steps),
            "max_step": run.steps[-1].step if run.steps else None,
            "nonfinite_steps": len(nonfinite),
            "filtered_nan_steps": len(filtered),
            "first_loss": run.steps[0].loss if run.steps else None,
            "last_loss": run.steps[-1].loss if run.steps else None,
            "peak_memory_bytes": memory.size_bytes,
            "checkpoint": checkpoint,
            "log_on_expected_rank": bool(run.steps),
            "steady_step_seconds": steady_step_seconds(log.steps).seconds,
        }
        error = run.cause if run.outcome != "done" else ""
        return Done(answer, error=error, exit_status=job.exit_code if job else None)

    def _attempt(self, which: str) -> int:
        """The number of the next short run, or of the one that an earlier console left under way."""
        last = self._last_smoke(which)
        if last is None:
            return 1
        return last.attempt if last.outcome is None else last.attempt + 1

    async def _checkpoint(self, member: Member, run: str) -> str | None:
        folder = f"{member.places['home']}/.lab/{self.recorder.experiment.name}/{run}/out"
        node = member.node
        answer = await with_contact(
            self.crew,
            lambda: run_probe(
                node, node.target.interpreter, "checkpoint", {"output_dir": folder}, timeout=60
            ),
        )
        found = answer.get("checkpoint")
        return str(found) if found else None

    async def _infer(self, member: Member, limit: float) -> Done:
        run = self._last_smoke("megatron") or self._last_smoke("ordinary")
        assert run is not None
        smoke, mode = smoke_of(self.profile, "megatron" if "megatron" in run.id else "ordinary")
        model, dataset = smoke.model or self.profile.model, smoke.dataset or self.profile.dataset
        checkpoint = await self._checkpoint(member, run.id)
        result = f"{member.places['home']}/.lab/{self.recorder.experiment.name}/{run.id}/infer.jsonl"
        argv = infer_argv(
            checkpoint=checkpoint or "",
            model=model,
            prompt_source=dataset.sources[0],
            result_path=result,
            dtype=smoke_settings(self.profile, smoke, mode).dtype,
            adapter=self.profile.settings.tuner == "lora",
        )
        filled = [fill(part, member.places) for part in argv]
        env = {**self.profile.env, **member.spec.env}
        if member.spec.gpu is not None:
            env["CUDA_VISIBLE_DEVICES"] = str(member.spec.gpu)
        exports = "".join(
            f"export {key}={shlex.quote(fill(value, member.places))}\n" for key, value in env.items()
        )
        script = f'{exports}r=$1; shift; rm -f -- "$r"; "$@" >&2; s=$?; cat -- "$r"; exit $s'
        answer = await member.node.run(script, args=(result, *filled), timeout=limit, check=False)
        found = read_infer_result(answer.text.splitlines(), answer.error_text)
        return Done(
            {
                "exit_code": answer.exit_status,
                "answered": found.answered,
                "response": found.response,
                "generated_tokens": found.generated_tokens,
            },
            output=answer.error_text[-4000:],
            error=answer.error_text[-2000:] if answer.exit_status else "",
            exit_status=answer.exit_status,
        )

    def _last_smoke(self, which: str) -> RunView | None:
        runs = [run for run in self.recorder.experiment.runs.values() if run.config == f"smoke-{which}"]
        return runs[-1] if runs else None


def _finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
