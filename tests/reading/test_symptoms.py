"""Every rule that rests on a line of text: the line that raises it, and one much like it that must not."""

import pytest

from tests.reading.judging import RULES, Case, metric

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity"

LINES = {
    "oom-first-step": (OOM, "[INFO:swift] tip: CUDA out of memory is often cured by recomputation"),
    "host-oom": (
        "  exitcode  : -9 (pid: 812)",
        "  exitcode  : -15 (pid: 812)  (SIGTERM)",
    ),
    "nan-gradient": (
        "[rank1]: RuntimeError: Rank 1, node b, device 0, iteration 14: Unexpected result nan "
        "(message='found NaN in local grad norm for bucket #0 in backward pass')",
        "[INFO:swift] check_for_nan_in_grad: local grad norm for bucket sizes is checked",
    ),
    "rendezvous-unreachable": (
        "[E1 socket.cpp:1028] [c10d] The client socket has timed out after 6000ms while trying to "
        "connect to (10.0.0.1, 29500).",
        "[I1 socket.cpp:1028] [c10d] The client socket has connected to (10.0.0.1, 29500).",
    ),
    "rendezvous-unresolvable": (
        "[W1 socket.cpp:764] [c10d] The IPv6 network addresses of (spark-x, 29500) cannot be "
        "retrieved (gai error: -2 - Name or service not known).",
        "[W1 socket.cpp:764] [c10d] The IPv6 network addresses of (spark-x, 29500) were retrieved",
    ),
    "rendezvous-incomplete": (
        "torch.distributed.DistStoreError: Timed out after 900 seconds waiting for clients. 1/2 "
        "clients joined.",
        "2/2 clients joined.",
    ),
    "port-taken": (
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
        "network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: "
        "address already in use",
        "The server socket has started to listen on [::]:29500.",
    ),
    "rank-unset": (
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment "
        "variable RANK expected, but not set",
        "[INFO:swift] environment variable RANK is 0",
    ),
    "peer-lost": (
        "[rank1]: RuntimeError: [/src/gloo/transport/tcp/pair.cc:534] Connection reset by peer "
        "[10.0.0.1]:4411",
        "[rank1]: connection to 10.0.0.1 established",
    ),
    "nccl-timeout": (
        "[rank1]:[E1 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=412, OpType=ALLREDUCE, NumelIn=20, NumelOut=20, "
        "Timeout(ms)=1800000) ran for 1800061 milliseconds before timing out.",
        "[rank1]:[I1 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog started",
    ),
    "nccl-error": (
        "[rank1]: torch.distributed.DistBackendError: NCCL error in: "
        "/src/ProcessGroupNCCL.cpp:3353, unhandled system error (run with NCCL_DEBUG=INFO for "
        "details), NCCL version 2.28.9",
        "node-a:1:1 [0] NCCL INFO no NCCL error in this communicator",
    ),
    "unbatched-p2p": (
        "UserWarning: An unbatched P2P op (send/recv) was called on this ProcessGroup with size 2.",
        "UserWarning: a batched P2P op (send/recv) was called on this ProcessGroup with size 2.",
    ),
    "flash-attention": (
        "ImportError: FlashAttention2 has been toggled on, but it cannot be used due to the following error",
        "[INFO:swift] FlashAttention2 has been toggled on",
    ),
    "transformer-engine": (
        "ModuleNotFoundError: No module named 'transformer_engine'",
        "[INFO:swift] transformer_engine.__version__: 2.9",
    ),
    "attention-backend": (
        "[rank0]: ValueError: No dot product attention backend is available for the provided inputs.",
        "[INFO:swift] dot product attention backend: flash",
    ),
    "megatron-missing": (
        "ModuleNotFoundError: No module named 'megatron'",
        "[INFO:swift] megatron.core.__version__: 0.19.2",
    ),
    "apex-broken": (
        "[rank0]: RuntimeError: gradient_accumulation_fusion set to True but the custom CUDA "
        "extension fused_weight_gradient_mlp_cuda module is not found.",
        "[WARNING:swift] apex is not installed, so gradient accumulation fusion is disabled.",
    ),
    "wrong-gpu-build": (
        "[rank0]: torch.AcceleratorError: CUDA error: no kernel image is available for execution "
        "on the device",
        "    Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.",
    ),
    "dataset": (
        "[ERROR:swift] Dataset alpaca load failed: subset_name=default,split=train with error: offline",
        "[INFO:swift] Dataset alpaca loaded: subset_name=default,split=train",
    ),
    "model-download": (
        "modelscope_hub.errors.NetworkError: [E1020] Connection failed",
        "[WARNING] retry 1: Max retries exceeded with url is not the case yet",
    ),
    "unknown-flag": (
        "ValueError: remaining_argv: ['--train_type', 'lora']",
        "[INFO:swift] remaining_argv: none",
    ),
    "batch-indivisible": (
        "[rank0]: ValueError: global batch size (16) is not divisible by micro batch size (16) "
        "times data parallel size (2).",
        "[INFO:swift] global batch size (16) is divisible by micro batch size (8)",
    ),
    "world-indivisible": (
        "RuntimeError: world_size (1) is not divisible by 2",
        "[INFO:swift] 1500 samples: the last batch is not divisible by 16",
    ),
    "report-to-none": ("KeyError: 'none'", "[INFO:swift] report_to: 'none'"),
    "ready-twice": (
        "[rank0]: RuntimeError: Expected to mark a variable ready only once. This error is caused by",
        "[rank0]: Warning: find_unused_parameters=True was specified",
    ),
    "exception": ("ZeroDivisionError: division by zero", "[INFO:swift] ZeroDivisionError: none so far"),
}  # fmt: skip


@pytest.mark.parametrize("rule", LINES)
def test_the_line_raises_it(rule: str) -> None:
    case = Case().says(LINES[rule][0])
    assert case.ids == {rule}
    finding = case.finding(rule)
    assert finding.node == "a"
    assert finding.line == 1
    assert finding.suspects
    assert finding.first_action
    assert finding.facts_link
    assert "{" not in finding.title + finding.first_action


@pytest.mark.parametrize("rule", LINES)
def test_a_line_much_like_it_does_not(rule: str) -> None:
    assert Case().says(LINES[rule][1]).ids == set()


@pytest.mark.parametrize(
    "rule", [rule for rule, (line, _) in LINES.items() if not line.startswith(("[rank", "  exitcode"))]
)
def test_a_rank_prefix_changes_nothing(rule: str) -> None:
    assert rule in Case().says(f"[rank0]: {LINES[rule][0]}").ids


def test_out_of_memory_later_is_another_finding() -> None:
    case = Case().steps([3.0, 2.9, 2.8]).says(OOM)
    assert case.ids == {"oom-later"}
    assert "after step 3" in case.finding("oom-later").seen


def test_a_symptom_that_training_survives_is_cleared() -> None:
    case = Case().steps([3.0, 2.9]).says("RuntimeError: Connection reset by peer [10.0.0.1]:4411")
    assert case.ids == {"peer-lost"}
    case.says(metric(3, 2.8), metric(4, 2.7))
    assert case.ids == set()
    assert [change.what for change in case.changes] == ["raised", "cleared"]


def test_text_from_a_log_cannot_break_a_template() -> None:
    case = Case().says("ValueError: {seen.__class__} {0} {")
    assert "{seen.__class__}" in case.finding("exception").seen


def test_every_signature_is_used_and_found_by_its_literals() -> None:
    for signature in RULES.signatures:
        assert signature.contains
        assert all(len(literal) >= 5 for literal in signature.contains)
