"""The real gateway, measured: `etude gateway` with a probe on its step clock.

`python -m etude.cli.bench.speaking_gateway` takes its settings from the environment, writes a line
when it listens, and answers each line on standard input with a `Reading`. It ends with its standard
input. See `etude.cli.bench.gateway_process`.
"""

import asyncio

from etude.cli import logs
from etude.cli.bench.gateway_process import Answering, Listening, Probe
from etude.cli.gateway import open_gateway
from etude.gateway.collector import collecting_calmly
from etude.settings import load


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    probe, answering = Probe(), Answering()

    def stepped(due_s: float) -> None:
        loop.call_soon(probe.step, due_s)

    async with open_gateway(load(), stepped=stepped) as gateway:
        await answering.open(Listening(port=gateway.devices.port))
        with collecting_calmly(gateway.devices.connections.in_use):
            while await answering.asked():
                answering.answer(probe.read(len(gateway.devices.connections)))


def main() -> None:
    """Serve until standard input ends."""
    logs.configure("error", "json", process="bench")
    asyncio.run(_serve())


if __name__ == "__main__":
    main()
