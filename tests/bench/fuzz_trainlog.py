"""A million mutated chunks of log through the reader: no exception, no unsafe character, bounded memory.

Run it from the repository: `python tests/bench/fuzz_trainlog.py [CHUNKS] [SEED]`. The seed is printed, so
that a failure can be had again. It exits 1 on the first failure and leaves the bytes of that reader in a
file.
"""

import dataclasses
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from console.core.reading.diagnosis import load_rules  # noqa: E402
from console.core.reading.facts import LogFact  # noqa: E402
from console.core.reading.trainlog import TrainLogReader  # noqa: E402

CHUNKS, CHUNKS_PER_READER = 1_000_000, 500
MOST_GROWTH_BYTES = 200 * 2**20
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SPICE = (
    b"\r", b"\n", b"\x1b[A", b"\x1b[2J", b"\x1b]0;x\x07", b"\x00", b"\xff", b"\xc3", b"nan", b"-inf", b"{",
    b"}", b"'", b'"', b": ", b"%|", b"[rank1]: ", b"Traceback (most recent call last):\n", b"Error: ",
    b"'iteration': '", b"'global_step/max_steps': '", b"999999999999999999999999", b"1e999", b"`",
)  # fmt: skip


def corpus() -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / "tests/reading/fixtures").iterdir())]


def mutated(random_: random.Random, texts: list[bytes]) -> bytes:
    """A piece of a real log with a few things broken."""
    text = random_.choice(texts)
    begin = random_.randrange(len(text))
    chunk = bytearray(text[begin : begin + random_.choice((1, 7, 60, 300, 1500))])
    for _ in range(random_.randrange(4)):
        at = random_.randrange(len(chunk) + 1)
        match random_.randrange(4):
            case 0:
                chunk[at:at] = random_.choice(SPICE)
            case 1:
                del chunk[at : at + random_.randrange(1, 20)]
            case 2:
                chunk[at : at + 1] = bytes([random_.randrange(256)])
            case _:
                chunk[at:at] = chunk[:at][-random_.randrange(1, 200) :]
    return bytes(chunk)


def texts_of(fact: LogFact) -> Iterator[str]:
    for field in dataclasses.fields(fact):
        value = getattr(fact, field.name)
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from (part for part in value if isinstance(part, str))
        elif isinstance(value, dict):
            yield from (part for pair in value.items() for part in pair if isinstance(part, str))


def examine(facts: tuple[LogFact, ...], size: int) -> None:
    for fact in facts:
        if not 0 <= fact.start_byte <= fact.end_byte <= size:
            raise ValueError(f"{type(fact).__name__} lies outside what was read")
        for text in texts_of(fact):
            if UNSAFE.search(text):
                raise ValueError(f"unsafe character in {type(fact).__name__}: {text!r}")


def feed(reader: TrainLogReader, chunks: list[bytes]) -> int:
    count = size = 0
    for chunk in chunks:
        size += len(chunk)
        facts = reader.feed(chunk)
        examine(facts, size)
        count += len(facts)
    facts = reader.finish()
    examine(facts, size)
    return count + len(facts)


def peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> int:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else CHUNKS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    random_, texts = random.Random(seed), corpus()
    rules = (ROOT / "checklists" / "diagnosis.yaml").read_text(encoding="utf-8")
    signatures = load_rules(rules, "diagnosis.yaml").signatures
    print(f"seed {seed}, {wanted:,} chunks, {len(signatures)} signatures")
    begin, floor, done, facts = time.perf_counter(), peak_bytes(), 0, 0
    while done < wanted:
        chunks = [mutated(random_, texts) for _ in range(min(CHUNKS_PER_READER, wanted - done))]
        try:
            facts += feed(TrainLogReader(signatures=signatures), chunks)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what this looks for
            with tempfile.NamedTemporaryFile(prefix="fuzz-", suffix=".log", delete=False) as file:
                file.write(b"".join(chunks))
            print(f"after {done:,} chunks: {type(error).__name__}: {error}; the bytes are in {file.name}")
            return 1
        done += len(chunks)
    growth = peak_bytes() - floor
    seconds = time.perf_counter() - begin
    print(f"{done:,} chunks, {facts:,} facts, {seconds:.0f} s, {growth / 2**20:.0f} MiB grown")
    return 0 if growth < MOST_GROWTH_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
