"""The load generator of `etude bench ingest`: a process of its own that posts ready-made bodies.

Reads one JSON object from standard input (`host`, `ports`, `connections`, `requests`: base64), and
sends every request once over keep-alive connections; writes what it saw as one JSON object.
Requests are built before the clock starts: what is measured is the server.
"""

import asyncio
import base64
import json
import sys
import time
from collections import deque
from typing import Any


async def _send_all(host: str, port: int, waiting: deque[bytes], seen: dict[str, Any]) -> None:
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
    while waiting:
        request = waiting.popleft()
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        body = await reader.readexactly(length)
        seen["latencies_ms"].append((time.perf_counter() - began) * 1000)
        if b" 200 " in head[:16]:
            seen["received"] += json.loads(body)["events_received"]
        else:
            seen["refused"] += 1
    writer.close()


async def _run(order: dict[str, Any]) -> dict[str, Any]:
    waiting = deque(base64.b64decode(request) for request in order["requests"])
    seen: dict[str, Any] = {"latencies_ms": [], "received": 0, "refused": 0}
    began, cpu = time.perf_counter(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for number in range(order["connections"]):
            port = order["ports"][number % len(order["ports"])]
            group.create_task(_send_all(order["host"], port, waiting, seen))
    return seen | {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}


if __name__ == "__main__":
    json.dump(asyncio.run(_run(json.load(sys.stdin))), sys.stdout)
