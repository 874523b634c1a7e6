import asyncio
import hmac
from pathlib import Path
from typing import Any

import msgspec
import pytest

from etude.files import Files
from etude.gateway.activation import CODE_LIFE, MAX_AN_ADDRESS, MAX_CODES
from etude.people.binding_records import CODES, Proof, VoidCode
from etude.people.serial_keys import import_keys
from etude.testing.toy_shop import CLIENT, HEADERS, MAC, TOY, ToyShop, raw

KEY = "00112233445566778899aabbccddeeff"
SERIAL = {"Serial-Number": "SN-1", "Activation-Version": "2"}


@pytest.fixture
def shop(tmp_path: Path) -> ToyShop:
    return ToyShop(tmp_path)


def toy(number: int) -> dict[str, str]:
    return {"Device-Id": f"02:00:00:00:{number // 256:02x}:{number % 256:02x}", "Client-Id": CLIENT}


def code(shop: ToyShop, number: int, address: str = "192.0.2.1") -> Any:
    response = shop.ask(headers=toy(number), address=address)
    return response.json()["activation"]["code"] if response.status_code == 200 else response


def test_codes_are_unique_among_the_live(tmp_path: Path) -> None:
    """A number that is drawn again is drawn anew."""
    shop = ToyShop(tmp_path, draws=[7, 7, 7, 8])
    assert [code(shop, 1), code(shop, 2)] == ["000007", "000008"]


def test_a_code_ends(shop: ToyShop) -> None:
    """After its time the device shows another one, and the old place is free."""
    assert code(shop, 1) == "100000"
    shop.clock.advance(CODE_LIFE.total_seconds() - 1)
    assert code(shop, 1) == "100000"
    shop.clock.advance(1)
    assert code(shop, 1) == "100001"
    assert len(shop.activations) == 1


def test_one_address_cannot_take_every_code(shop: ToyShop) -> None:
    """Two classes behind one address get codes; who invents more from there is told to wait."""
    for number in range(MAX_AN_ADDRESS):
        code(shop, number)
    refused = code(shop, 1000)
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "60"
    assert refused.json() == {"error": "BIND_CODES_EXHAUSTED"}
    assert code(shop, 0) == "100000"
    assert code(shop, 1000, "192.0.2.2") != refused


def test_one_subscriber_is_one_address(shop: ToyShop) -> None:
    """The addresses of an IPv6 network count together."""
    for number in range(MAX_AN_ADDRESS):
        code(shop, number, f"2001:db8::{number:x}")
    assert code(shop, 1000, "2001:db8:0:0:ffff::1").status_code == 429
    assert code(shop, 1000, "2001:db8:0:1::1") == "100100"


def test_a_flood_drives_out_its_own_codes(shop: ToyShop) -> None:
    """With every place taken by a few addresses, a toy elsewhere still gets its code."""
    number = 0
    for address in range(MAX_CODES // MAX_AN_ADDRESS):
        for _ in range(MAX_AN_ADDRESS):
            code(shop, number, f"198.51.100.{address}")
            number += 1
    assert len(shop.activations) == MAX_CODES
    shown = code(shop, 5000, "192.0.2.1")
    assert shown == f"{100_000 + MAX_CODES:06}"
    assert len(shop.activations) == MAX_CODES
    assert code(shop, 5000, "192.0.2.1") == shown


def test_another_client_id_gets_a_code_and_no_token(shop: ToyShop) -> None:
    """Trust on first use: whoever comes with a bound device's id gets nothing of it."""
    shop.bind(TOY)
    own = shop.token()
    answer = shop.ask(headers=HEADERS | {"Client-Id": "somebody-else"}).json()
    assert answer["websocket"]["token"] == ""
    assert answer["activation"]["code"] == "100000"
    stranger = HEADERS | {"Client-Id": "somebody-else"}
    assert shop.ask("/xiaozhi/ota/activate", json={}, headers=stranger).status_code == 202
    assert shop.door(own) == 101
    shop.bind(msgspec.structs.replace(TOY, client_id="somebody-else"))
    assert shop.door(own) == 403
    assert shop.door(shop.token(**{"Client-Id": "somebody-else"}), client_id="somebody-else") == 101


def test_a_code_that_another_gateway_shows_too_is_dropped(shop: ToyShop) -> None:
    """Both toys get another one."""
    assert code(shop, 1) == "100000"
    handler = shop.provisioning.handlers()[CODES]
    asyncio.run(handler.apply(raw(VoidCode(code="100000"), VoidCode(code="999999"))))
    assert code(shop, 1) == "100001"


def test_a_new_link_is_told_every_live_code(shop: ToyShop) -> None:
    """What web has missed it learns when it is back."""
    code(shop, 1)
    shop.clock.advance(60)
    code(shop, 2)
    assert [item.code for _, item in shop.provisioning.standing()] == ["100000", "100001"]
    shop.clock.advance(CODE_LIFE.total_seconds() - 60)
    assert [item.code for _, item in shop.provisioning.standing()] == ["100001"]


def prove(shop: ToyShop, *, wrap: bool = False, **fields: str) -> int:
    proof = {"algorithm": "hmac-sha256", "serial_number": "SN-1"} | fields
    body = {"Payload": proof} if wrap else proof
    response = shop.ask("/xiaozhi/ota/activate", json=body, headers=HEADERS | SERIAL)
    return response.status_code


def signed(challenge: str, key: bytes = bytes.fromhex(KEY)) -> str:
    return hmac.digest(key, challenge.encode(), "sha256").hex()


@pytest.mark.parametrize("wrap", [True, False])
def test_version_2_from_challenge_to_token(tmp_path: Path, shop: ToyShop, *, wrap: bool) -> None:
    """Wrapped as py-xiaozhi does or flat as the SDK: proven it is told, bound it is done."""
    import_keys(Files(), tmp_path / "keys", {"SN-1": KEY})
    activation = shop.ask(headers=HEADERS | SERIAL).json()["activation"]
    challenge = activation["challenge"]
    assert len(challenge) == 32
    assert shop.told[-1].proof is Proof.AWAITED
    assert prove(shop, wrap=wrap, challenge=challenge, hmac=signed(challenge)) == 202
    assert (shop.told[-1].proof, shop.told[-1].serial) == (Proof.SHOWN, "SN-1")
    assert shop.told[-1].code == activation["code"]
    assert prove(shop, wrap=wrap, challenge=challenge, hmac=signed(challenge)) == 202
    assert len(shop.told) == 2
    shop.bind(TOY)
    assert prove(shop, wrap=wrap, challenge=challenge, hmac=signed(challenge)) == 200


def test_a_wrong_proof_is_refused(tmp_path: Path, shop: ToyShop) -> None:
    """Another key, another challenge, another serial: 403, and the code stays unproven."""
    import_keys(Files(), tmp_path / "keys", {"SN-1": KEY, "SN-2": KEY})
    challenge = shop.ask(headers=HEADERS | SERIAL).json()["activation"]["challenge"]
    good = signed(challenge)
    assert prove(shop, challenge=challenge, hmac=signed(challenge, b"other")) == 403
    assert prove(shop, challenge=challenge, hmac="é") == 403
    assert prove(shop, challenge="mine", hmac=signed("mine")) == 403
    assert prove(shop, challenge=challenge, hmac=good, serial_number="SN-2") == 403
    assert prove(shop, challenge=challenge) == 202
    assert shop.told[-1].proof is Proof.AWAITED
    assert len(shop.told) == 1


def test_a_serial_without_a_key_is_bound_by_its_code_alone(shop: ToyShop) -> None:
    """Nobody can check its proof, so any is passed over."""
    activation = shop.ask(headers=HEADERS | SERIAL).json()["activation"]
    assert prove(shop, challenge=activation["challenge"], hmac="00") == 202
    assert shop.told[-1].proof is Proof.NONE


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"Payload": 5}', b'{"hmac": {"a": 1}}'])
def test_no_body_of_activate_is_too_strange(shop: ToyShop, content: bytes) -> None:
    """It waits like every other."""
    shop.ask(headers=HEADERS)
    response = shop.ask("/xiaozhi/ota/activate", content=content, headers=HEADERS)
    assert response.status_code == 202


def test_activate_of_nobody_waits(shop: ToyShop) -> None:
    """A code that has ended is asked for anew by the device itself."""
    assert shop.ask("/xiaozhi/ota/activate", json={}, headers=HEADERS).status_code == 202
    assert shop.ask("/xiaozhi/ota/activate", json={}).status_code == 400
    assert MAC not in {each.device_id for each in shop.told}
