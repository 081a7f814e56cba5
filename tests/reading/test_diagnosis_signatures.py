"""Rules that are patterns of single lines: a line that fires each, and a near miss that doesn't."""

import pytest

from tests.reading import samples
from tests.reading.diagnosing import after_reading, ids

STEP = "{{'loss': 1.5, 'grad_norm': 0.9, 'global_step/max_steps': '{}/90', 'train_speed(s/it)': 0.5}}\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.10 GiB. GPU 0 has 0.9 GiB free.\n"

CASES = {
    "oom-first-step": (
        "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB. GPU 0 is full.",
        "[INFO:swift] the guide says what to do about CUDA out of memory errors",
    ),
    "oom-later": (STEP.format(1) + STEP.format(7) + OOM, STEP.format(1) + OOM),
    "host-oom": (
        "  exitcode  : -9 (pid: 4321)\n  traceback : Signal 9 (SIGKILL) received by PID 4321",
        "  exitcode  : -15 (pid: 4321)\n  traceback : Signal 15 (SIGTERM) received by PID 4321",
    ),
    "nccl-timeout": (
        "[rank0]:[E1201 10:00:00.1 PG.cpp:1] [Rank 0] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
        "ran for 600004 milliseconds before timing out.",
        "[INFO] a watchdog looks after collective operations, timeout 600000 ms",
    ),
    "nccl-error": (
        "[rank1]: torch.distributed.DistBackendError: NCCL error in: /build/PG.cpp:33, "
        "unhandled system error, NCCL version 2.28.9",
        "no NCCL error in: sight",
    ),
    "unbatched-p2p": (
        "UserWarning: An unbatched P2P op (send/recv) was called on this ProcessGroup with size 2.",
        "batched P2P op was called",
    ),
    "peer-lost": (
        "[rank0]: RuntimeError: [tcp/pair.cc:547] Read error [10.0.0.2]:4711: Connection reset by peer",
        "Connection established with peer",
    ),
    "port-taken": (
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
        "address. port: 29511, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        "[INFO] the server socket listens on port 29511",
    ),
    "rendezvous-unreachable": (
        "[E1201 10:00:00.1 socket.cpp:1] [c10d] The client socket has timed out after 900000ms while trying "
        "to connect to (10.0.0.1, 29500).",
        "[c10d] The client socket has connected to (10.0.0.1, 29500).",
    ),
    "rendezvous-unresolvable": (
        "[W1201 10:00:00.1 socket.cpp:7] [c10d] The IPv6 network addresses of (node-z, 29500) cannot be "
        "retrieved (gai error: -2 - Name or service not known).",
        "[c10d] The IPv6 network addresses of (node-a, 29500) were retrieved.",
    ),
    "rendezvous-incomplete": (
        "torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. "
        "1/2 clients joined.",
        "waiting for clients. 2/2 clients joined.",
    ),
    "rank-unset": (
        "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK "
        "expected, but not set",
        "environment variable RANK is 0",
    ),
    "flash-attention": (
        "ImportError: FlashAttention2 has been toggled on, but it cannot be used: flash_attn is missing.",
        "[INFO:swift] attn_impl: flash_attn",
    ),
    "transformer-engine": (
        "ModuleNotFoundError: No module named 'transformer_engine'",
        "UserWarning: Transformer Engine and Apex are not installed. Falling back to Torch optimizers.",
    ),
    "attention-backend": (
        "[rank0]: ValueError: No dot product attention backend is available for the provided inputs.",
        "[DEBUG] Selected dot product attention backend = FlashAttention",
    ),
    "megatron-missing": (
        "ModuleNotFoundError: No module named 'megatron.core'",
        "[INFO:swift] megatron.core.__version__: 0.19.2",
    ),
    "apex-broken": (
        "[rank0]: RuntimeError: the CUDA extension fused_weight_gradient_mlp_cuda module is not found.",
        "[WARNING:swift] apex is not installed, so gradient accumulation fusion is disabled.",
    ),
    "wrong-gpu-build": (
        "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device",
        "UserWarning: Found GPU0 NVIDIA GB10 which is of cuda capability 12.1.",
    ),
    "dataset": (
        "[ERROR:swift] Dataset /data/none.jsonl load failed: subset_name=default,split=train with error: x",
        "[INFO:swift] Downloading the dataset from ModelScope, dataset_id: a/b",
    ),
    "model-download": (
        "modelscope_hub.errors.NetworkError: [E1020] Connection failed",
        "2026-01-01 10:00:00,108 | WARNING | legacy_api | page=1 listing failed (NetworkError), retry in 1s",
    ),
    "nan-gradient": (
        "RuntimeError: Rank 1, node node-b, device 0, iteration 14: Unexpected result nan "
        "(message='found NaN in local grad norm for bucket #0 in backward pass')",
        "[INFO] check for NaN in local grad norm is on",
    ),
    "unknown-flag": (
        "ValueError: remaining_argv: ['--train_type', 'lora']",
        "[WARNING:swift] remaining_argv: ['--old_flag', 'x'] (ignored)",
    ),
    "batch-indivisible": (
        "[rank0]: ValueError: global batch size (16) is not divisible by micro batch size (16) times data "
        "parallel size (2).",
        "global batch size (16) is divided into 8 micro batches",
    ),
    "world-indivisible": ("RuntimeError: world_size (1) is not divisible by 2", "world_size (2) is fine"),
    "report-to-none": ("KeyError: 'none'", "KeyError: 'nothing'"),
    "ready-twice": (
        "[rank1]: RuntimeError: Expected to mark a variable ready only once. This error is caused by ...",
        "every variable was marked once",
    ),
}


OTHER_WORDINGS = [
    (
        "oom-first-step",
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23 GiB capacty)",
    ),
    ("host-oom", "torchrun: Signal 9 (SIGKILL) received by PID 4321"),
    ("host-oom", "failed (exitcode: -9) local_rank: 0 (pid: 4321) of binary: /usr/bin/python3"),
    ("nccl-error", "ncclInternalError: Internal check failed."),
    ("peer-lost", "[rank1]: RuntimeError: [tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:4711"),
    (
        "peer-lost",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting",
    ),
    ("port-taken", "RuntimeError: bind failed, errno: 98, EADDRINUSE"),
    (
        "rendezvous-unreachable",
        "[c10d] TCP client failed to connect/validate to host 10.0.0.1:29500 - timed out",
    ),
    (
        "rendezvous-unreachable",
        "The client socket has timed out after 60s while trying to connect to (a, 29500)",
    ),
    (
        "flash-attention",
        "[rank0]: ValueError: flash-attn v3 is not installed. Detected installations: FA2=True",
    ),
    ("flash-attention", "ImportError: /py/flash_attn_2_cuda.so: undefined symbol: _ZN3c105ErrorC2E"),
    ("flash-attention", "ValueError: The padding_free feature requires a flash attention implementation"),
    ("transformer-engine", "OSError: libtransformer_engine.so: cannot open shared object file"),
    ("transformer-engine", "ImportError: transformer_engine_torch.so: undefined symbol: nvrtcCompile"),
    ("megatron-missing", "ModuleNotFoundError: No module named 'mcore_bridge'"),
    ("megatron-missing", "ImportError: Megatron mode requires mcore-bridge>=1.5.0"),
    ("nan-gradient", "RuntimeError: found Inf in local grad norm for bucket #3 in backward pass"),
    ("dataset", "[ERROR:swift] Get dataset: /data/none from default file list failed"),
    (
        "model-download",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool: Max retries exceeded with url: /",
    ),
    ("wrong-gpu-build", "FATAL: kernel built for sm80-sm90, but running on sm121"),
    (
        "unknown-flag",
        "sft.py: error: argument --tuner_type: invalid choice: 'lorra' (choose from 'lora', 'full')",
    ),
]


@pytest.mark.parametrize(("rule", "line"), OTHER_WORDINGS)
def test_another_wording_fires_the_same_rule_alone(rule: str, line: str):
    assert ids(after_reading(f"{line}\n".encode())) == {rule}


@pytest.mark.parametrize("rule", CASES)
def test_a_line_that_training_goes_on_after_is_no_finding_any_more(rule: str):
    went_on = "".join(STEP.format(number) for number in (80, 81, 82))
    assert after_reading(f"{CASES[rule][0]}\n{went_on}".encode()).active == ()


@pytest.mark.parametrize("rule", CASES)
def test_the_line_fires_its_rule_alone_and_names_its_place(rule: str):
    text = CASES[rule][0]
    watched = after_reading(text.encode())
    assert ids(watched) == {rule}
    finding = watched.active[0]
    assert finding.line is not None
    assert finding.start_byte is not None
    assert finding.end_byte is not None
    assert 0 <= finding.start_byte < finding.end_byte <= len(text.encode())
    assert finding.seen
    assert finding.suspects
    assert finding.node == "node-a"


@pytest.mark.parametrize("rule", CASES)
def test_a_near_miss_does_not_fire(rule: str):
    assert rule not in ids(after_reading(CASES[rule][1].encode()))


@pytest.mark.parametrize("rule", [rule for rule in CASES if CASES[rule][0][0].isalpha()])
def test_the_prefix_of_a_rank_changes_nothing(rule: str):
    assert ids(after_reading(f"[rank0]: {CASES[rule][0]}".encode())) == {rule}


def test_text_of_a_log_that_looks_like_a_template_is_shown_as_it_is():
    (finding,) = after_reading(b"ValueError: {seen.__class__} {0} {\n").active
    assert finding.seen == "ValueError: {seen.__class__} {0} {"


@pytest.mark.parametrize("name", samples.HEALTHY)
def test_no_rule_fires_on_a_healthy_log(name: str):
    assert after_reading(samples.raw(name)).active == ()


def test_trouble_that_training_survived_is_cleared_and_one_late_line_is_not_enough():
    one_more = (STEP.format(5) + OOM + STEP.format(6)).encode()
    assert ids(after_reading(one_more)) == {"oom-later"}
    assert ids(after_reading(one_more + STEP.format(7).encode())) == set()


def test_the_source_line_of_a_traceback_is_no_symptom():
    text = b"Traceback (most recent call last):\n  File \"a.py\", line 1, in x\n    raise KeyError: 'none'\n"
    assert "report-to-none" not in ids(after_reading(text + b"OSError: gone\n"))


def test_an_exception_that_no_rule_knows_is_reported_with_its_message():
    text = b'Traceback (most recent call last):\n  File "a.py", line 1, in x\nsome.OddError: never seen\n'
    (finding,) = after_reading(text).active
    assert finding.id == "exception"
    assert finding.seen == "some.OddError: never seen"


def test_an_exception_that_a_pattern_explains_is_not_reported_twice():
    text = b'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: remaining_argv: [1]\n'
    assert ids(after_reading(text)) == {"unknown-flag"}


def test_wrappers_and_a_stop_that_was_asked_for_are_no_exceptions():
    wrapper = b"Traceback (most recent call last):\n  x\ntorch.distributed.elastic.ChildFailedError: \n"
    stopped = b"Traceback (most recent call last):\n  x\nSignalException: Process 7 got signal: 15\n"
    assert after_reading(wrapper + stopped).active == ()


def test_a_progress_bar_in_front_of_a_log_head_is_left_out() -> None:
    said = "E0301 10:00:02.105000 8046 api.py:986] failed (exitcode: -9) local_rank: 0 (pid: 4321)"
    (found,) = after_reading(f"Train:  12%|#2   | 3/24 [00:12<01:02,  2.96s/it]{said}\n".encode()).active
    assert found.seen == said
