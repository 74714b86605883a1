"""``opgrow serve`` under load, and under clients that mean it ill.

    python tests/attack/serving.py --clients 200 --seconds 20

starts servers of their own and reports latencies, and what was lost, wrong or leaked; with nothing of these
it exits with 0. Phases: many clients at once; a part of them hostile (not HTTP, malformed, too large, slow
heads, slow bodies, clients that never read, that vanish, that send nothing); more work than the queue takes;
and a server that is ended while requests are under way. Linux only: it looks at /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from opgrow import HeMLGOPClassifier

N_COLUMNS = 8
#: What a server may have more than before: kB of memory (arenas of the allocator), threads, files.
EXTRA_MEMORY, EXTRA_THREADS, EXTRA_FILES = 150_000, 2, 2
Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


class Server:
    """A server process."""

    def __init__(self, model: Path, *options: str) -> None:
        order = [sys.executable, "-m", "opgrow", "serve", str(model), "--port", "0", *options]
        self.process = subprocess.Popen(order, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "http://127.0.0.1:" not in line:
            raise RuntimeError(f"the server does not start: {line}")
        self.port = int(line.split("http://127.0.0.1:")[1].split()[0])

    def facts(self) -> tuple[int, int, int]:
        """Memory in kB, threads and open files."""
        folder = Path(f"/proc/{self.process.pid}")
        status = (folder / "status").read_text()
        memory, threads = (int(status.partition(f"{key}:")[2].split()[0]) for key in ("VmRSS", "Threads"))
        return memory, threads, len(list((folder / "fd").iterdir()))

    def end(self) -> tuple[int, str]:
        """Ask it to end; its exit code and what it has printed."""
        self.process.send_signal(signal.SIGTERM)
        printed, _ = self.process.communicate(timeout=60)
        return self.process.returncode, printed


class Found:
    """What the clients have seen."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []

    def percentile(self, q: float) -> float:
        return 1000 * float(np.percentile(self.seconds, q)) if self.seconds else float("nan")


class Load:
    """Requests to one server, with the answers that are right."""

    def __init__(self, port: int, model: Any, rows: int) -> None:
        self.port, self.found = port, Found()
        rng = np.random.default_rng(1)
        self.requests = []
        for _ in range(20):
            x = rng.normal(size=(rows, N_COLUMNS)).astype(np.float32).astype(float)
            labels, shares = model.predict(x).tolist(), model.predict_proba(x).tolist()
            self.requests.append((json.dumps({"matrix": x.tolist()}).encode(), labels, shares))

    async def connect(self) -> tuple[Reader, Writer]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def honest(self, until: float, seed: int, busy_is_fine: bool = False) -> None:
        """A client that asks again and again over one connection, and checks each answer."""
        rng, found = Random(seed), self.found
        reader, writer = await self.connect()
        try:
            while time.monotonic() < until:
                body, labels, shares = rng.choice(self.requests)
                started = time.perf_counter()
                writer.write(head(len(body)) + body)
                status, headers, answer = await asyncio.wait_for(response(reader), 90)
                found.seconds.append(time.perf_counter() - started)
                found.counts[f"{status}"] += 1
                if status == 503 and busy_is_fine:
                    if "retry-after" not in headers:
                        found.problems.append("503 without Retry-After")
                    found.seconds.pop()
                    await asyncio.sleep(rng.random())
                elif status != 200:
                    found.problems.append(f"{status}: {answer[:100]!r}")
                else:
                    data = json.loads(answer)
                    if data["predictions"] != labels or not np.allclose(data["probabilities"], shares, 1e-5):
                        found.problems.append("a wrong answer")
                if headers.get("connection") == "close":
                    writer.close()
                    reader, writer = await self.connect()
        except (OSError, EOFError, TimeoutError) as error:
            found.problems.append(f"lost: {error!r:.100}")
        finally:
            writer.close()

    async def hostile(self, until: float, seed: int) -> None:
        """A client that does something bad again and again."""
        rng = Random(seed)
        kinds: list[Callable[[Random, Reader, Writer], Coroutine[Any, Any, None]]]
        kinds = [not_http, malformed, oversized, slow_head, slow_body, never_reads, vanishes, says_nothing]
        while time.monotonic() < until:
            kind = kinds[seed % len(kinds)] if rng.random() < 0.5 else rng.choice(kinds)
            try:
                reader, writer = await self.connect()
            except OSError as error:
                self.found.problems.append(f"cannot connect: {error!r:.100}")
                return
            try:
                await asyncio.wait_for(kind(rng, reader, writer), max(0.1, until - time.monotonic()))
            except (OSError, EOFError, TimeoutError):
                pass
            except Wrong as error:
                self.found.problems.append(f"{kind.__name__}: {error}")
            finally:
                writer.transport.abort()
            self.found.counts[kind.__name__] += 1


class Wrong(Exception):
    """An answer that a bad request should not get."""


def head(length: int, kind: str = "application/json") -> bytes:
    text = f"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    return text.encode()


async def response(reader: Reader) -> tuple[int, dict[str, str], bytes]:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
    return int(lines[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))


async def expect(reader: Reader, *statuses: int) -> None:
    status, _, body = await response(reader)
    if status not in statuses:
        raise Wrong(f"{status}: {body[:100]!r}")
    sentence = json.loads(body)["error"]
    if "\n" in sentence or "Traceback" in sentence or len(sentence) > 1500:
        raise Wrong(f"not one sentence: {sentence[:200]!r}")


async def not_http(rng: Random, reader: Reader, writer: Writer) -> None:
    writer.write(
        rng.choice([rng.randbytes(200) + b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01" + rng.randbytes(90)])
    )
    await expect(reader, 400)


async def malformed(rng: Random, reader: Reader, writer: Writer) -> None:
    json_bodies = [
        *(b"{", b"\xff\xfe", b"[" * 100_000, b"3", b"null", b'{"rows": 3}', b'{"matrix": [[1, 2]]}', b"[]"),
        b'{"rows": [{"x0": NaN}]}',
        b'{"matrix": [[1, 2, 3, 4, 5, 6, 7, "x"]]}',
        b'{"matrix": [[1, 2, 3, 4, 5, 6, 7, 1e999]]}',
        b'{"matrix": [[1, 2, 3, 4, 5, 6, 7, ' + b"9" * 5000 + b"]]}",
        b'{"columns": {"x0": [1], "nosuch": [1]}}',
        rng.randbytes(300),
    ]
    csv_bodies = [b"", b"x0\n1\n", b"\0\0", b"x0,x0\n1,2\n", b'"' * 999, rng.randbytes(300)]
    kind, bodies = rng.choice([("application/json", json_bodies), ("text/csv", csv_bodies)])
    for _ in range(5):
        body = rng.choice(bodies)
        writer.write(head(len(body), kind) + body)
        await expect(reader, 400, 422, 503)


async def oversized(rng: Random, reader: Reader, writer: Writer) -> None:
    """A body over the limit, said in advance or not."""
    if rng.random() < 0.5:
        writer.write(head(1 << 40))
        await expect(reader, 413)
        return
    writer.write(
        b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: text/csv\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    for _ in range(20):
        writer.write(b"10000\r\n" + b"1" * 65536 + b"\r\n")
        await writer.drain()
    await expect(reader, 413, 503)


async def slow_head(rng: Random, reader: Reader, writer: Writer) -> None:
    """Slowloris: a head that never ends."""
    writer.write(b"POST /predict HTTP/1.1\r\n")
    while not reader.at_eof():
        writer.write(b"X-A: b\r\n")
        await writer.drain()
        with suppress(TimeoutError):
            await asyncio.wait_for(reader.read(1000), 0.3)


async def slow_body(rng: Random, reader: Reader, writer: Writer) -> None:
    """A body that comes a byte at a time; the server has to say that it took too long."""
    writer.write(head(10_000))
    answer = asyncio.create_task(expect(reader, 408))
    try:
        while not answer.done():
            writer.write(b"1")
            await asyncio.sleep(0.2)
        await answer
    finally:
        answer.cancel()


async def never_reads(rng: Random, reader: Reader, writer: Writer) -> None:
    """Many requests, and no answer is taken."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for _ in range(300):
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await writer.drain()
    await asyncio.sleep(5)


async def vanishes(rng: Random, reader: Reader, writer: Writer) -> None:
    """A reset within a request, or right after one."""
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.write(head(1000) + b"1" * rng.choice([0, 10, 1000]))
    await writer.drain()


async def says_nothing(rng: Random, reader: Reader, writer: Writer) -> None:
    """A connection that is open, and that is all."""
    await reader.read(1)


async def crowd(load: Load, seconds: float, honest: int, hostile: int, busy_is_fine: bool = False) -> float:
    """Clients of both kinds for some seconds; how long it took."""
    started = time.monotonic()
    until = started + seconds
    honest_ones = (load.honest(until, seed, busy_is_fine) for seed in range(honest))
    await asyncio.gather(*honest_ones, *(load.hostile(until, 1000 + seed) for seed in range(hostile)))
    return time.monotonic() - started


def report(name: str, load: Load, seconds: float) -> int:
    """Print what came of a phase; the number of problems."""
    found = load.found
    print(
        f"{name}: {len(found.seconds)} answers, {len(found.seconds) / seconds:.0f} a second, "
        f"p50 {found.percentile(50):.0f} ms, p99 {found.percentile(99):.0f} ms, "
        f"{len(found.problems)} lost or wrong; {dict(sorted(found.counts.items()))}",
        flush=True,
    )
    for problem, count in Counter(found.problems).most_common(10):
        print(f"  {count} x {problem}")
    return len(found.problems)


def settled(server: Server, before: tuple[int, int, int], seconds: float = 30.0) -> int:
    """Wait until connections are gone, and print what the server has more than before; 1 if it leaks."""
    end = time.monotonic() + seconds
    while True:
        more = [now - then for now, then in zip(server.facts(), before, strict=True)]
        leaks = more[0] > EXTRA_MEMORY or more[1] > EXTRA_THREADS or more[2] > EXTRA_FILES
        if not leaks or time.monotonic() > end:
            break
        time.sleep(0.5)
    facts = f"{more[0] / 1024:+.0f} MiB, {more[1]:+d} threads, {more[2]:+d} open files"
    print(f"  afterwards {facts} ({before[0] / 1024:.0f} MiB before)", flush=True)
    return int(leaks)


async def ended_while_busy(server: Server, load: Load, clients: int) -> None:
    """Requests whose bodies are under way when the server is told to end: all are answered."""

    async def one(number: int, begun: asyncio.Semaphore) -> None:
        body, labels, _ = load.requests[number % len(load.requests)]
        reader, writer = await load.connect()
        writer.write(head(len(body)) + body[:-10])
        await writer.drain()
        begun.release()
        await told.wait()
        writer.write(body[-10:])
        try:
            status, _, answer = await asyncio.wait_for(response(reader), 60)
            load.found.counts[str(status)] += 1
            if status != 200 or json.loads(answer)["predictions"] != labels:
                load.found.problems.append(f"{status}: {answer[:100]!r}")
        except (OSError, EOFError, TimeoutError) as error:
            load.found.problems.append(f"lost: {error!r:.100}")
        writer.close()

    begun, told = asyncio.Semaphore(0), asyncio.Event()
    tasks = [asyncio.create_task(one(number, begun)) for number in range(clients)]
    for _ in range(clients):
        await begun.acquire()
    await asyncio.sleep(0.5)  # until the server has seen them
    server.process.send_signal(signal.SIGTERM)
    await asyncio.sleep(0.3)
    told.set()
    await asyncio.gather(*tasks)


def attack(folder: Path, given: argparse.Namespace) -> int:
    """All phases; the number of things that are wrong."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, N_COLUMNS))
    model = HeMLGOPClassifier(random_state=0).fit(x, (x[:, 0] * x[:, 1] > 0) + (x[:, 2] > 0))
    file, n = folder / "model.safetensors", given.clients
    model.save(file)
    wrong = 0
    server = Server(file, "--max-body", "1M", "--timeout", "3")
    load = Load(server.port, model, given.rows)
    asyncio.run(crowd(load, 1.0, 8, 0))  # threads and caches come into being
    before = server.facts()
    load = Load(server.port, model, given.rows)
    seconds = asyncio.run(crowd(load, given.seconds, n, 0))
    wrong += report(f"{n} clients", load, seconds) + settled(server, before)
    load = Load(server.port, model, given.rows)
    seconds = asyncio.run(crowd(load, given.seconds, n // 4, n - n // 4))
    wrong += report(f"{n // 4} clients beside {n - n // 4} hostile ones", load, seconds) + settled(
        server, before
    )
    code, printed = server.end()
    wrong += report_end(code, printed)

    server = Server(file, "--queue", "8", "--workers", "1")
    load = Load(server.port, model, given.rows)
    asyncio.run(crowd(load, 0.5, 2, 0))
    before = server.facts()
    load = Load(server.port, model, 100 * given.rows)
    seconds = asyncio.run(crowd(load, given.seconds, n, 0, busy_is_fine=True))
    wrong += report(f"{n} clients for a queue of 8", load, seconds) + settled(server, before)
    code, printed = server.end()
    wrong += report_end(code, printed)

    server = Server(file)
    load = Load(server.port, model, given.rows)
    asyncio.run(ended_while_busy(server, load, n))
    printed, _ = server.process.communicate(timeout=60)
    wrong += report(f"{n} requests under way at SIGTERM", load, 1.0)
    return wrong + report_end(server.process.returncode, printed)


def report_end(code: int, printed: str) -> int:
    if code == 0 and not printed:
        print("  ended with 0 and printed nothing")
        return 0
    print(f"  the server ended with {code} and printed {printed[-1000:]!r}")
    return 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each phase")
    parser.add_argument("--rows", type=int, default=10, help="of each request")
    with tempfile.TemporaryDirectory() as folder:
        wrong = attack(Path(folder), parser.parse_args())
    print(f"{wrong} wrong")
    sys.exit(int(wrong > 0))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
