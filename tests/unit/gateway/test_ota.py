import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etude.gateway.ota import MAX_BODY_BYTES, safe_version
from etude.testing.toy_shop import CLIENT, HEADERS, MAC, TOY, ToyShop

FIRMWARE = {
    "version": 2,
    "language": "zh-CN",
    "flash_size": 16777216,
    "minimum_free_heap_size": "8318916",
    "mac_address": MAC,
    "uuid": CLIENT,
    "chip_model_name": "esp32s3",
    "chip_info": {"model": 9, "cores": 2, "revision": 2, "features": 18},
    "application": {
        "name": "xiaozhi",
        "version": "2.2.6",
        "compile_time": "Aug 1 2026T00:00:00Z",
        "idf_version": "v5.4",
        "elf_sha256": "c" * 64,
    },
    "partition_table": [{"label": "nvs", "type": 1, "subtype": 2, "address": 1, "size": 2}],
    "ota": {"label": "ota_0"},
    "display": {"monochrome": False, "width": 240, "height": 240},
    "board": {"type": "sening", "name": "sening-toy", "ssid": "home", "rssi": -50, "ip": "1.2.3.4"},
}
PY_XIAOZHI = {
    "application": {"version": "2.1.1", "elf_sha256": "d" * 64},
    "board": {"type": "bread-compact-wifi", "name": "py-xiaozhi", "ip": "1.2.3.4", "mac": MAC},
}
SDK = {
    "application": {"version": "1.0.0"},
    "board": {"type": "xiaozhi-sdk", "name": "sdk", "ip": "1.2.3.4", "mac_addr": MAC},
}
WITHOUT = {"server_time", "firmware", "websocket"}


@pytest.fixture
def shop(tmp_path: Path) -> ToyShop:
    return ToyShop(tmp_path)


def nulls(value: Any) -> bool:
    """Whether an answer holds null or an empty section somewhere."""
    if isinstance(value, dict):
        return not value or any(nulls(each) for each in value.values())
    return value is None


@pytest.mark.parametrize("path", ["/xiaozhi/ota", "/xiaozhi/ota/"])
@pytest.mark.parametrize("body", [FIRMWARE, PY_XIAOZHI, SDK])
def test_a_bound_device_gets_the_minimum(shop: ToyShop, path: str, body: dict[str, Any]) -> None:
    """Time, the version echoed, url and token: no activation, no mqtt, nothing empty."""
    shop.bind(TOY)
    response = shop.ask(path, json=body, headers=HEADERS)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    answer = response.json()
    assert set(answer) == WITHOUT
    assert answer["firmware"] == {"version": body["application"]["version"], "url": ""}
    assert set(answer["websocket"]) == {"url", "token", "version"}
    assert answer["websocket"]["url"] == "ws://gateway.test:8000/xiaozhi/v1/"
    assert answer["websocket"]["version"] == 1
    assert set(answer["server_time"]) == {"timestamp", "timezone_offset"}
    assert answer["server_time"]["timestamp"] == 1772355600000
    assert not nulls(answer)
    assert shop.door(answer["websocket"]["token"]) == 101


def test_the_time_zone_is_the_machines(shop: ToyShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Minutes ahead of UTC, as the system (or TZ) says."""
    import time  # noqa: PLC0415 - tzset belongs to this test

    shop.bind(TOY)
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        answer = shop.ask(headers=HEADERS).json()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert answer["server_time"]["timezone_offset"] == 330


def test_what_is_set_is_where_devices_connect(tmp_path: Path) -> None:
    """`ETUDE_GATEWAY_URL` wins over the host that was asked."""
    shop = ToyShop(tmp_path, socket_url="wss://toys.example.org/xiaozhi/v1/")
    shop.bind(TOY)
    answer = shop.ask(headers=HEADERS | {"Host": "evil.test"}).json()
    assert answer["websocket"]["url"] == "wss://toys.example.org/xiaozhi/v1/"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("192.168.1.5:8003", "ws://192.168.1.5:8000/xiaozhi/v1/"),
        ("[fd00::1]:8003", "ws://[fd00::1]:8000/xiaozhi/v1/"),
        ("toys.local", "ws://toys.local:8000/xiaozhi/v1/"),
        ("a/b", None),
        ('a"b', None),
        ("x" * 300, None),
    ],
)
def test_the_host_that_was_asked_is_where_to_connect(
    shop: ToyShop, host: str, url: str | None
) -> None:
    """With the gateway's own port; a host that is none is refused."""
    shop.bind(TOY)
    response = shop.ask(headers=HEADERS | {"Host": host})
    if url is None:
        assert response.status_code == 400
    else:
        assert response.json()["websocket"]["url"] == url


def test_without_a_body_the_headers_are_enough(shop: ToyShop) -> None:
    """GET is what firmware sends when it has nothing to say."""
    shop.bind(TOY)
    answer = shop.ask(method="GET", headers=HEADERS | {"User-Agent": "sening/2.2.6"}).json()
    assert answer["firmware"]["version"] == "2.2.6"


def test_without_headers_the_body_is_enough(shop: ToyShop) -> None:
    """The same ids stand in a firmware's body."""
    shop.bind(TOY)
    assert set(shop.ask(json=FIRMWARE).json()) == WITHOUT


@pytest.mark.parametrize(
    ("version", "answered"),
    [
        ("2.2.6", "2.2.6"),
        ("v1.2", "0.0.0"),
        ("1.2-rc1", "0.0.0"),
        ("", "0.0.0"),
        ("1..2", "0.0.0"),
        ("99999999999.1", "0.0.0"),
        ("1.2\n", "0.0.0"),
        ("\u0661.\u0662", "0.0.0"),
    ],
)
def test_a_version_is_always_dotted_numbers(version: str, answered: str) -> None:
    """Anything else ends in a boot loop; `0.0.0` is never an upgrade."""
    assert safe_version(version) == answered


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b"[" * 60_000,
        b'{"application": null, "board": 7}',
        b'{"application": {"version": {"a": 1}}, "board": {"name": ["x"]}}',
        b'{"mac_address": 5, "uuid": {}}',
        b'{"application": {"version": "\\u0000\\ud83d\\ude00"}}',
        b"x" * (MAX_BODY_BYTES + 1),
    ],
)
def test_no_body_spoils_the_answer(shop: ToyShop, content: bytes) -> None:
    """Known by its headers a device gets its answer, whatever its body is."""
    shop.bind(TOY)
    response = shop.ask(content=content, headers=HEADERS | {"User-Agent": "curl"})
    assert response.status_code == 200
    assert set(response.json()) == WITHOUT
    assert response.json()["firmware"]["version"] == "0.0.0"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    application=json_values,
    board=json_values,
    mac=json_values,
    header=st.one_of(st.none(), st.text(st.characters(max_codepoint=126, min_codepoint=33))),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_comes_the_answer_is_one_that_firmware_can_read(
    shop: ToyShop, application: Any, board: Any, mac: Any, header: str | None
) -> None:
    """200 with safe values, or a refusal: never a failure, null or an unknown section."""
    body = json.dumps({"application": application, "board": board, "mac_address": mac})
    headers = {"Client-Id": CLIENT} | ({} if header is None else {"Device-Id": header})
    response = shop.ask(content=body.encode(), headers=headers)
    assert response.status_code in {200, 400, 429}
    answer = response.json()
    if response.status_code == 200:
        assert set(answer) == WITHOUT | {"activation"}
        assert not nulls(answer)
        assert safe_version(answer["firmware"]["version"]) == answer["firmware"]["version"]
        assert all(len(str(each)) < 4000 for each in answer["websocket"].values())
        assert msgspec.json.encode(answer).isascii()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Device-Id": MAC},
        {"Client-Id": CLIENT},
        {"Device-Id": "a b", "Client-Id": CLIENT},
        {"Device-Id": "../x", "Client-Id": CLIENT},
        {"Device-Id": MAC, "Client-Id": "x" * 65},
        {"Device-Id": MAC, "Client-Id": "a|b"},
    ],
)
def test_who_does_not_say_who_it_is_is_refused(shop: ToyShop, headers: dict[str, str]) -> None:
    """Without both ids there is nobody to bind."""
    response = shop.ask(headers=headers)
    assert response.status_code == 400
    assert response.json() == {"error": "DEVICE_UNREADABLE"}
    assert shop.told == []


def test_two_ids_are_none(shop: ToyShop) -> None:
    """A header that comes twice is refused: a proxy might have read the other one."""
    response = shop.ask(headers=[("Device-Id", MAC), ("Device-Id", "x"), ("Client-Id", CLIENT)])
    assert response.status_code == 400


def test_an_address_in_capitals_is_the_same_device(shop: ToyShop) -> None:
    """Hardware addresses are kept in lower case."""
    shop.bind(TOY)
    assert shop.ask(headers=HEADERS | {"Device-Id": MAC.upper()}).json()["websocket"]["token"]


def test_an_unknown_device_shows_a_code(shop: ToyShop) -> None:
    """Six digits, a message in its language, an empty token; web is told, once."""
    answer = shop.ask(json=FIRMWARE, headers=HEADERS | {"Accept-Language": "zh-CN"}).json()
    assert set(answer) == WITHOUT | {"activation"}
    assert set(answer["activation"]) == {"code", "message", "timeout_ms", "challenge"}
    assert len(answer["activation"]["challenge"]) == 32  # whether or not it has a serial number
    assert answer["activation"]["code"] == "100000"
    assert answer["activation"]["message"] == "请绑定此设备\n100000"
    assert answer["websocket"]["token"] == ""
    assert shop.ask(json=FIRMWARE, headers=HEADERS).json()["activation"]["code"] == "100000"
    (told,) = shop.told
    assert (told.code, told.device_id, told.client_id) == ("100000", MAC, CLIENT)
    assert (told.board, told.version, told.serial) == ("sening-toy", "2.2.6", "")


def test_version_1_from_code_to_token(shop: ToyShop) -> None:
    """Waiting is 202; bound it is 200 and the next answer has a token and no activation."""
    code = shop.ask(json=FIRMWARE, headers=HEADERS).json()["activation"]["code"]
    assert shop.ask("/xiaozhi/ota/activate", json={}, headers=HEADERS).status_code == 202
    assert code == "100000"
    shop.bind(TOY)
    for path in ("/xiaozhi/ota/activate", "/xiaozhi/ota/activate/"):
        assert shop.ask(path, json={}, headers=HEADERS).status_code == 200
    answer = shop.ask(json=FIRMWARE, headers=HEADERS).json()
    assert set(answer) == WITHOUT
    assert shop.door(answer["websocket"]["token"]) == 101
    assert len(shop.activations) == 0


def test_while_web_is_away_known_devices_connect_and_others_come_back(shop: ToyShop) -> None:
    """503 is what firmware tries again; no code is shown that nobody could type."""
    shop.bind(TOY)
    shop.linked = False
    assert shop.ask(headers=HEADERS).json()["websocket"]["token"]
    response = shop.ask(headers=HEADERS | {"Device-Id": "02:00:00:00:00:99"})
    assert response.status_code == 503
    assert response.headers["retry-after"] == "10"
    assert shop.told == []


def test_health_asks_nobody(shop: ToyShop) -> None:
    """It answers whatever the link does."""
    shop.linked = False
    assert shop.ask("/health", method="GET").json() == {"status": "ok"}


def test_nothing_that_a_device_sends_is_logged(
    shop: ToyShop, capsys: pytest.CaptureFixture[str]
) -> None:
    """No body, token or digest of its firmware stands in a log line."""
    shop.bind(TOY)
    token = shop.ask(json=FIRMWARE, headers=HEADERS).json()["websocket"]["token"]
    shop.ask(json=PY_XIAOZHI, headers={"Device-Id": "??"})
    logged = "".join(capsys.readouterr())
    assert "credential_issued" in logged
    for secret in (token, "c" * 64, "d" * 64, CLIENT, "ssid", "home"):
        assert secret not in logged
