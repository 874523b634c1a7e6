import hmac
import logging
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
import structlog
from sqlalchemy import event, select, update

from etude.people import tokens
from etude.people.errors import (
    LearnerErasedError,
    ScopeNotAllowedError,
    TokenExpiryError,
    TokenInvalidError,
    TokenMissingError,
    TokenUnknownError,
)
from etude.people.learners import bury_learner
from etude.people.records import Principal
from etude.people.tables import staff, token
from etude.people.token_use import TokenUse

HOUR = timedelta(hours=1)


def who(school: Any, bearer: str | None) -> Principal:
    async def ask() -> Principal:
        async with school.database.read() as connection:
            return await tokens.authenticate(connection, bearer, school.now)

    return school.run(ask())


def changed(school: Any, statement: Any) -> None:
    async def change() -> None:
        async with school.database.transaction() as work:
            await work.connection.execute(statement)

    school.run(change())


def revoked(school: Any, public_id: str) -> Any:
    async def revoke() -> Any:
        async with school.database.transaction() as work:
            return await tokens.revoke_token(work.connection, public_id, school.now)

    return school.run(revoke())


def stored_row(school: Any) -> Any:
    async def read() -> Any:
        async with school.database.read() as connection:
            return (await connection.execute(select(token))).one()

    return school.run(read())


def test_each_kind_of_principal_is_known_by_its_token(school: Any) -> None:
    """A token leads to whom it was made for, with the scopes it was given."""
    device, learner, member = school.device(), school.learner(), school.member()
    made = {
        "device": (school.token("device", device.device_id), device.device_key, device.device_id),
        "learner": (
            school.token("learner", learner.learner_id),
            learner.learner_key,
            learner.learner_id,
        ),
        "staff": (school.token("staff", "op", "operate"), member.staff_key, "op"),
        "service": (school.token("service", "gateway", "upload:on-behalf"), 1, "gateway"),
    }
    for kind, (new, key, public) in made.items():
        principal = who(school, new.text)
        assert (principal.kind, principal.key, principal.id) == (kind, key, public)
        assert principal.token_key == new.token.token_key
    assert who(school, made["device"][0].text).scopes == {"sessions:write"}
    assert "sessions:write" in who(school, made["staff"][0].text).scopes


def test_two_tokens_of_one_service_are_one_principal(school: Any) -> None:
    """What belongs to a principal belongs to every token of it."""
    first = who(school, school.token("service", "gateway").text)
    second = who(school, school.token("service", "gateway").text)
    assert (first.kind, first.key) == (second.kind, second.key)
    assert first.token_key != second.token_key


@pytest.mark.parametrize("bearer", [None, ""])
def test_no_token_is_missing(school: Any, bearer: str | None) -> None:
    """Without a token the answer says that one is needed."""
    with pytest.raises(TokenMissingError):
        who(school, bearer)


def test_what_is_no_token_is_refused(school: Any) -> None:
    """Any change to a token makes it invalid, and so do texts of every other form."""
    good = school.token("device", school.device().device_id).text
    _, public_id, secret = good.split("_")
    bad = [
        good + "0",
        good[:-1],
        good.upper(),
        good + "\n",
        " " + good,
        f"etd_{public_id}_{'0' * 64}",
        f"etd_{'0' * 16}_{secret}",
        f"etd_{secret[:16]}_{secret}",
        "etd__",
        "\x00",
        "é" * 85,
        "\ud800",
        "x" * 100_000,
    ]
    for text in bad:
        with pytest.raises(TokenInvalidError):
            who(school, text)
    assert who(school, good).kind == "device"


def test_a_token_stops_at_its_expiry(school: Any) -> None:
    """A token is good until just before the time it expires."""
    text = school.token("device", school.device().device_id, expires_at=school.now + HOUR).text
    school.now += HOUR - timedelta(microseconds=1)
    assert who(school, text).kind == "device"
    school.now += timedelta(microseconds=1)
    with pytest.raises(TokenInvalidError):
        who(school, text)


def test_a_token_cannot_be_born_expired(school: Any) -> None:
    """An expiry in the past is a mistake that is told at once."""
    device = school.device()
    with pytest.raises(TokenExpiryError):
        school.token("device", device.device_id, expires_at=school.now)


def test_revocation_counts_from_the_next_request(school: Any) -> None:
    """A revoked token is refused at once, and its first revocation stands."""
    new = school.token("device", school.device().device_id)
    assert who(school, new.text).kind == "device"
    first = revoked(school, new.token.public_id)
    with pytest.raises(TokenInvalidError):
        who(school, new.text)
    school.now += HOUR
    assert revoked(school, new.token.public_id).revoked_at == first.revoked_at
    with pytest.raises(TokenUnknownError):
        revoked(school, "0" * 16)


def test_a_demoted_operator_cannot_operate_any_more(school: Any) -> None:
    """The role of staff counts at every request, whatever the token was given."""
    school.member()
    text = school.token("staff", "op", "operate", "learners:read").text
    assert "operate" in who(school, text).scopes
    changed(school, update(staff).values(role="teacher"))
    assert who(school, text).scopes == {"learners:read"}


def test_a_teacher_cannot_be_given_an_operators_token(school: Any) -> None:
    """What a role may not hold is refused when the token is made."""
    school.member("li", "teacher")
    with pytest.raises(ScopeNotAllowedError):
        school.token("staff", "li", "operate")


def test_the_secret_is_stored_as_its_hash_only(school: Any) -> None:
    """The database holds the public part and a sha256, and no reading gives the token back."""
    new = school.token("device", school.device().device_id)
    secret = new.text.rpartition("_")[2]
    row = stored_row(school)
    assert row.secret_sha256 == sha256(secret.encode()).digest()
    assert secret not in str(tuple(row))
    assert secret not in f"{new!r} {new} {new.token!r}"


def test_a_token_of_an_erased_learner_is_gone(school: Any) -> None:
    """The token of somebody erased is 410 and not 401; with a wrong secret it is 401 as ever."""
    learner = school.learner("Ada")
    text = school.token("learner", learner.learner_id, label="Ada's tablet").text

    async def bury() -> None:
        async with school.database.transaction() as work:
            await tokens.bury_tokens(work.connection, learner.learner_key, school.now)
            await bury_learner(work.connection, learner.learner_key, school.now)

    school.run(bury())
    with pytest.raises(LearnerErasedError):
        who(school, text)
    with pytest.raises(TokenInvalidError):
        who(school, text[:-64] + "0" * 64)
    row = stored_row(school)
    assert (row.label, row.scopes, row.expires_us, row.last_used_us) == (None, "", None, None)


def test_an_unknown_token_takes_the_work_of_a_known_one(
    school: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known, wrong and unknown tokens: one query and one comparison of 32 bytes each."""
    good = school.token("device", school.device().device_id).text
    work: list[Any] = []

    def compare(left: bytes, right: bytes) -> bool:
        work.append((len(left), len(right)))
        return left == right

    def count(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "token" in statement:
            work.append("query")

    engine = school.database._reader.sync_engine
    monkeypatch.setattr(hmac, "compare_digest", compare)
    event.listen(engine, "before_cursor_execute", count)
    try:
        who(school, good)
        known, work[:] = work[:], []
        for text in (good[:-64] + "0" * 64, f"etd_{'0' * 16}_{'0' * 64}"):
            with pytest.raises(TokenInvalidError):
                who(school, text)
            assert work == known == ["query", (32, 32)]
            work.clear()
    finally:
        event.remove(engine, "before_cursor_execute", count)


def test_the_one_query_uses_an_index(school: Any) -> None:
    """Finding a token reads no whole table, however many there are."""
    statement = tokens._BY_PUBLIC_ID.params(public_ids=["x"]).compile(
        school.database._reader.sync_engine, compile_kwargs={"literal_binds": True}
    )

    async def plan() -> str:
        async with school.database.transaction() as work:
            if school.database.dialect == "sqlite":
                rows = await work.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")
                return "\n".join(row[3] for row in rows)
            # Tiny tables are read whole unless that is forbidden; only then the plan says anything.
            await work.connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            rows = await work.connection.exec_driver_sql(f"EXPLAIN {statement}")
            return "\n".join(row[0] for row in rows)

    steps = school.run(plan())
    whole, by_index = {"sqlite": ("SCAN", "SEARCH"), "postgresql": ("Seq Scan", "Index Scan")}[
        school.database.dialect
    ]
    assert by_index in steps
    assert whole not in steps


def test_tokens_are_listed_without_secrets_in_pages(school: Any) -> None:
    """A list shows every token once, oldest first, revoked ones too, and never a hash."""
    school.device()
    made = [school.token("device", "toy-1", label=f"n{number}") for number in range(5)]
    revoked(school, made[0].token.public_id)

    async def listed() -> list[Any]:
        found, cursor = [], None
        async with school.database.read() as connection:
            while True:
                page = await tokens.list_tokens(connection, cursor=cursor, limit=2)
                found.append(page.items)
                cursor = page.next_cursor
                if cursor is None:
                    return found

    pages = school.run(listed())
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [one.label for page in pages for one in page] == ["n0", "n1", "n2", "n3", "n4"]
    assert not any("sha256" in name for name in pages[0][0].__struct_fields__)


def test_last_use_is_written_apart_from_the_request(school: Any) -> None:
    """Noting a use touches no database; a flush writes the latest, and never moves it back."""
    new = school.token("device", school.device().device_id)
    use = TokenUse()
    use.note(new.token.token_key, school.now + HOUR)
    use.note(new.token.token_key, school.now)
    assert stored_row(school).last_used_us is None
    assert school.run(use.flush(school.database)) == 1
    at_us = stored_row(school).last_used_us
    use.note(new.token.token_key, school.now)
    school.run(use.flush(school.database))
    assert stored_row(school).last_used_us == at_us
    assert school.run(use.flush(school.database)) == 0


def test_no_token_and_no_name_reaches_a_log(school: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Making, using, failing and revoking tokens of a named learner logs neither at any level."""
    name, label = "Ottilie Mustermann", "Ottilies Tablet"
    caplog.set_level(logging.DEBUG)
    logging.getLogger("aiosqlite").setLevel(logging.WARNING)  # the driver logs every parameter
    with structlog.testing.capture_logs() as logged:
        learner = school.learner(name)
        new = school.token("learner", learner.learner_id, label=label)
        who(school, new.text)
        for text in (new.text[:-1] + "x", None):
            with pytest.raises((TokenInvalidError, TokenMissingError)) as refused:
                who(school, text)
            logging.getLogger("test").warning("refused", exc_info=refused.value)
        revoked(school, new.token.public_id)
    written = f"{caplog.text} {logged}"
    assert "refused" in written
    for secret in (name, "Ottilie", label, new.text, new.text[-64:], learner.learner_id):
        assert secret not in written
