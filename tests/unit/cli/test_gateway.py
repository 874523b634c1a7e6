import asyncio
from pathlib import Path

import pytest

from etude.cli.gateway import open_gateway
from etude.cli.installation import make_folder, make_keys
from etude.files import Files, replace_file
from etude.gateway.errors import GatewayFolderError, GatewayRunningError
from etude.people.gateway_token import path_of
from etude.settings import Settings, load
from etude.testing.ports import free_port


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = load(
        data=tmp_path / "data",
        gateway_host="127.0.0.1",
        gateway_port=0,
        gateway_http_port=0,
        web_url=f"http://127.0.0.1:{free_port()}",
    )
    make_folder(Files(), made.data)
    make_keys(Files(), made.data)
    replace_file(Files(), path_of(made.data), b"nobody-asks-for-it\n")
    return made


def test_a_second_gateway_keeps_its_hands_off_the_folder_of_the_first(settings: Settings) -> None:
    """It would resume the sessions of the other's devices, and forget which commands were done."""

    async def both() -> None:
        async with open_gateway(settings):
            with pytest.raises(GatewayRunningError) as caught:
                async with open_gateway(settings):
                    pass
            assert caught.value.params == {"path": str(settings.gateway)}
        async with open_gateway(settings):  # the first one has let go
            pass

    asyncio.run(both())


@pytest.mark.parametrize(("name", "is_file"), [(".", True), ("commands.jsonl", False)])
def test_a_folder_that_cannot_be_used_is_named(
    settings: Settings, name: str, *, is_file: bool
) -> None:
    """A file where the folder should be, a folder where a file should be: no traceback."""
    place = settings.gateway / name
    place.parent.mkdir(exist_ok=True)
    if is_file:
        place.write_text("")
    else:
        place.mkdir(parents=True)

    async def start() -> None:
        async with open_gateway(settings):
            pass

    with pytest.raises(GatewayFolderError) as caught:
        asyncio.run(start())
    assert caught.value.params["path"] == str(place)
