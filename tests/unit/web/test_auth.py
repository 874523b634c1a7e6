"""Who may pass: tokens, scopes, and the guard before every route."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from litestar import get

from etude.clock import SystemClock
from etude.people.errors import ScopeForbiddenError
from etude.people.records import Principal
from etude.people.scopes import Scope
from etude.people.tokens import list_tokens, revoke_token
from etude.store import Database
from etude.testing.web import client, service_token, services_for
from etude.web.auth import bearer_of, principal_of, require_any
from etude.web.declared import EVERYWHERE, Access, declared
from etude.web.services import HttpRequest

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@get("/me", opt=declared(roles=EVERYWHERE, needs=Access.SIGNED_IN), sync_to_thread=False)
def me(request: HttpRequest) -> dict[str, str]:
    """Tell who asks."""
    return {"id": principal_of(request).id}


@get(
    "/read",
    opt=declared(roles=EVERYWHERE, needs=(Scope.SESSIONS_READ, Scope.LEARNERS_READ)),
    sync_to_thread=False,
)
def read(request: HttpRequest) -> dict[str, str]:
    """Tell who asks, with either of two scopes."""
    return {"id": principal_of(request).id}


@get("/open", opt=declared(roles=EVERYWHERE, needs=Access.PUBLIC), sync_to_thread=False)
def open_to_all(request: HttpRequest) -> dict[str, str]:
    """Ask for a principal where there is none."""
    return {"id": principal_of(request).id}


@pytest.mark.parametrize(
    ("header", "token"),
    [
        (None, None),
        ("", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic abc", None),
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer a b", "a b"),
    ],
)
def test_the_bearer_token_is_read(header: str | None, token: str | None) -> None:
    """RFC 6750 §2.1: the scheme in any case, then the token; another scheme is no token."""
    assert bearer_of(header) == token


def test_one_of_several_scopes_is_enough() -> None:
    """Any of the needs lets a principal pass; none of them is 403 and names one."""
    principal = Principal(
        kind="service", key=1, id="x", scopes=frozenset({Scope.SESSIONS_READ}), token_key=1
    )
    require_any(principal, (Scope.LEARNERS_READ, Scope.SESSIONS_READ))
    require_any(principal, (Access.SIGNED_IN,))
    with pytest.raises(ScopeForbiddenError) as raised:
        require_any(principal, (Scope.LEARNERS_READ,))
    assert raised.value.params == {"scope": "learners:read"}


def test_the_guard_lets_through_whom_it_should(run: Run, sqlite_url: str, tmp_path: Path) -> None:
    """No token 401, too little 403, enough 200; a revoked token is refused from then on."""

    async def ask() -> None:
        async with await Database.open(sqlite_url) as database:
            services = services_for(database, tmp_path, clock=SystemClock())
            reader = await service_token(database, Scope.SESSIONS_READ, name="reader")
            writer = await service_token(database, Scope.SESSIONS_WRITE, name="writer")
            async with client(services, (me, read, open_to_all)) as asking:

                async def status(path: str, token: str | None) -> int:
                    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                    return (await asking.get(path, headers=headers)).status_code

                assert [await status("/me", token) for token in (None, reader, writer)] == [
                    401,
                    200,
                    200,
                ]
                assert [await status("/read", token) for token in (None, reader, writer)] == [
                    401,
                    200,
                    403,
                ]
                assert await status("/open", reader) == 500  # a mistake in the program, not a leak
                async with database.transaction() as work:
                    tokens = await list_tokens(work.connection)
                    mine = next(each for each in tokens.items if each.principal_id == "reader")
                    assert mine.last_used_at is None
                    await revoke_token(work.connection, mine.public_id, SystemClock().now())
                assert await status("/read", reader) == 401
            assert await services.token_use.flush(database) == 2

    run(ask())


def test_options_ask_for_nothing(run: Run, sqlite_url: str, tmp_path: Path) -> None:
    """`OPTIONS` tells the methods of an address to anybody, and nothing else."""

    async def ask() -> None:
        async with (
            await Database.open(sqlite_url) as database,
            client(services_for(database, tmp_path), (me,)) as asking,
        ):
            answer = await asking.options("/me")
            assert (answer.status_code, answer.content) == (204, b"")
            assert "GET" in answer.headers["allow"]

    run(ask())
