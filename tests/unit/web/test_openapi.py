"""The OpenAPI document and the table of routes: made from the handlers, checked in, current."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from litestar import get

from etude.people.scopes import Scope
from etude.settings import Role
from etude.store import Database
from etude.testing.web import client, services_for
from etude.web import openapi, routes
from etude.web.app import ROUTE_HANDLERS, create_app, served_routes
from etude.web.declared import EVERYWHERE, Access, UndeclaredRouteError, declared
from etude.web.problems import Problem

ROOT = Path(__file__).parents[3]
DOCUMENT = openapi.document(ROUTE_HANDLERS)
OPERATIONS = [
    (path, method, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
]

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("docs/schemas/openapi.json", openapi.encode(DOCUMENT).decode()),
        ("docs/routes.md", routes.page(ROUTE_HANDLERS)),
    ],
)
def test_the_pages_are_current(name: str, made: str) -> None:
    """`make schemas` would change nothing."""
    assert (ROOT / name).read_text("utf-8") == made


def test_every_route_is_in_the_document() -> None:
    """Each with a unique operation id, a description, its roles and its failures."""
    every = {(r.path, r.method.lower()): r.declared for r in routes.routes(ROUTE_HANDLERS)}
    assert {(path, method) for path, method, _ in OPERATIONS} == every.keys()
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(ids) == len(set(ids))
    for path, method, operation in OPERATIONS:
        assert operation["description"], path
        assert operation["x-etude-roles"], path
        shape = "application/json" if every[path, method].envelope else "application/problem+json"
        assert operation["responses"]["default"]["content"].keys() == {shape}


def test_what_needs_a_token_says_so() -> None:
    """Bearer security and 401 exactly where a token is asked for; 403 where a scope is."""
    assert DOCUMENT["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    by_route = {(r.path, r.method.lower()): r.declared for r in routes.routes(ROUTE_HANDLERS)}
    for path, method, operation in OPERATIONS:
        facts = by_route[path, method]
        assert ("security" in operation) is not facts.public
        assert ("401" in operation["responses"]) is not facts.public
        assert set(operation.get("x-etude-scopes", ())) <= set(Scope)


def test_every_reference_leads_somewhere() -> None:
    """Each `$ref` names a schema of the document; problem documents match theirs."""

    def references(node: object) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [found for inner in node.values() for found in references(inner)]
        return (
            [found for inner in node for found in references(inner)]
            if isinstance(node, list)
            else []
        )

    names = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    assert set(references(DOCUMENT)) <= names
    schema = DOCUMENT["components"]["schemas"]["Problem"]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == set(Problem.__struct_fields__)


def test_the_document_is_served(run: Run, sqlite_url: str, tmp_path: Path) -> None:
    """`/openapi.json` holds the routes of this server's role, and nothing else."""

    async def ask() -> None:
        async with await Database.open(sqlite_url) as database:
            for role in get_args(Role):
                async with client(services_for(database, tmp_path, role=role)) as asking:
                    answer = await asking.get("/openapi.json")
                    assert answer.headers["content-type"] == openapi.MEDIA_TYPE
                    served = {route.path for route in routes.routes(served_routes(role))}
                    assert set(answer.json()["paths"]) == served

    run(ask())


def test_a_role_has_its_routes_only(run: Run, sqlite_url: str, tmp_path: Path) -> None:
    """A route of another role is 404 there; `all` has every one; health is everywhere."""
    everywhere = {"/health", "/ready", "/openapi.json"}

    @get("/ops-only", opt=declared(roles=("ops",), needs=Access.PUBLIC), sync_to_thread=False)
    def ops_only() -> None:
        """Do nothing."""

    async def ask() -> None:
        async with await Database.open(sqlite_url) as database:
            for role, status in (("all", 200), ("ops", 200), ("server", 404), ("learner", 404)):
                services = services_for(database, tmp_path, role=role)
                async with client(services, (*ROUTE_HANDLERS, ops_only)) as asking:
                    assert (await asking.get("/ops-only")).status_code == status
                    assert (await asking.get("/health")).status_code == 200

    run(ask())
    for role in get_args(Role):
        assert everywhere <= {route.path for route in routes.routes(served_routes(role))}
    assert len(served_routes("all")) == len(ROUTE_HANDLERS)


def test_a_route_that_declares_nothing_is_refused(
    run: Run, sqlite_url: str, tmp_path: Path
) -> None:
    """No route can be open by oversight: the application does not start with one."""

    @get("/open", sync_to_thread=False)
    def forgotten() -> None:
        """Do nothing."""

    async def build() -> None:
        async with await Database.open(sqlite_url) as database:
            with pytest.raises(UndeclaredRouteError):
                create_app(services_for(database, tmp_path), (forgotten,))

    run(build())


def test_every_role_of_a_route_is_known() -> None:
    """A declaration names roles that a server can have, at least one, and says what is needed."""
    for route in routes.routes(ROUTE_HANDLERS):
        assert route.declared.roles
        assert set(route.declared.roles) <= set(EVERYWHERE)
        assert set(route.declared.needs) <= set(Scope) | set(Access)
        assert route.summary
