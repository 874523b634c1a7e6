import hmac
import os
from pathlib import Path

import pytest

from etude.files import Files, armed
from etude.people.errors import SerialKeyInvalidError, SerialKeysUnreadableError
from etude.people.serial_keys import FILE, SerialKeys, import_keys, parse_keys

KEY = "00112233445566778899aabbccddeeff"


def test_lines_are_read() -> None:
    """A heading, empty lines and white space do no harm."""
    assert parse_keys(["serial,key\n", "\n", f" SN-1 , {KEY} \n"]) == {"SN-1": KEY}


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (["SN-1\n"], 1),
        ([f"SN-1,{KEY}\n", f"SN 2,{KEY}\n"], 2),
        (["SN-1,short\n"], 1),
        ([f"SN-1,{KEY}\n", f"SN-1,{KEY}\n"], 2),
        (['SN-1,"\n'], 1),
    ],
)
def test_a_wrong_line_is_named_without_its_key(lines: list[str], line: int) -> None:
    """The error says where and what, never the key."""
    with pytest.raises(SerialKeyInvalidError) as caught:
        parse_keys(lines)
    assert caught.value.params["line"] == line
    assert KEY not in str(caught.value)


def test_proofs_of_firmware_and_of_py_xiaozhi_are_both_taken(tmp_path: Path) -> None:
    """The key's bytes or its digits sign; anything else does not."""
    import_keys(Files(), tmp_path, {"SN-1": KEY})
    keys = SerialKeys(tmp_path)
    keys.refresh()
    for secret in (bytes.fromhex(KEY), KEY.encode()):
        signed = hmac.digest(secret, b"challenge", "sha256").hex()
        assert keys.proves("SN-1", "challenge", signed)
        assert keys.proves("SN-1", "challenge", signed.upper())
        assert not keys.proves("SN-1", "other", signed)
        assert not keys.proves("SN-2", "challenge", signed)
    assert not keys.proves("SN-2", "challenge", hmac.digest(b"", b"challenge", "sha256").hex())
    assert not keys.proves("SN-1", "challenge", "\ud800")


def test_a_second_import_adds_and_is_seen(tmp_path: Path) -> None:
    """Keys that are there stay; a running gateway sees the new ones."""
    keys = SerialKeys(tmp_path)
    keys.refresh()
    assert not keys.knows("SN-1")
    assert import_keys(Files(), tmp_path, {"SN-1": KEY}) == 1
    keys.refresh()
    assert keys.knows("SN-1")
    assert import_keys(Files(), tmp_path, {"SN-2": KEY}) == 2
    keys.refresh()
    assert keys.knows("SN-1")
    assert keys.knows("SN-2")
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_a_damaged_file_is_not_written_over(tmp_path: Path) -> None:
    """Import stops; the gateway keeps what it knew."""
    import_keys(Files(), tmp_path, {"SN-1": KEY})
    keys = SerialKeys(tmp_path)
    keys.refresh()
    (tmp_path / FILE).write_bytes(b"{")
    os.utime(tmp_path / FILE, ns=(1, 1))
    keys.refresh()
    assert keys.knows("SN-1")
    with pytest.raises(SerialKeysUnreadableError):
        import_keys(Files(), tmp_path, {"SN-2": KEY})
    assert (tmp_path / FILE).read_bytes() == b"{"


def test_a_kill_leaves_all_keys_or_the_old_ones(tmp_path: Path) -> None:
    """Killed before the rename the old file is whole, after it the new one."""

    class KilledError(BaseException):
        pass

    import_keys(Files(), tmp_path, {"SN-1": KEY})

    def kill_at(instant: str) -> None:
        def kill(name: str) -> None:
            if name == instant:
                raise KilledError

        with armed(kill), pytest.raises(KilledError):
            import_keys(Files(), tmp_path, {"SN-2": KEY})

    keys = SerialKeys(tmp_path)
    kill_at("files.replace.written")
    keys.refresh()
    assert (keys.knows("SN-1"), keys.knows("SN-2")) == (True, False)
    kill_at("people.serial_keys.imported")
    keys.refresh()
    assert (keys.knows("SN-1"), keys.knows("SN-2")) == (True, True)
