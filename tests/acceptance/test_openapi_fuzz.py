"""The document that the server itself gives, taken at its word, on both databases.

`test_server_fuzzed.py` checks every answer's shape on SQLite; here PostgreSQL, which refuses text
and numbers that SQLite takes, is asked with what the document allows and with what it does not.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error

from etude.testing.installation import Served

DOCUMENT = json.loads(
    (Path(__file__).parents[2] / "docs" / "schemas" / "openapi.json").read_text("utf-8")
)
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}
# An operation that takes nothing has nothing that it does not allow.
ASKED = [
    (label, mode)
    for label, operation in OPERATIONS.items()
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or operation.keys() & {"parameters", "requestBody"}
]


@pytest.fixture(scope="session")
def asked(postgres_server: Served) -> Callable[..., None]:
    """What asks one operation of the served document a number of times."""
    document = httpx2.get(f"{postgres_server.server.url}/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    operations = {result.ok().label: result.ok() for result in schema.get_all_operations()}
    assert operations.keys() == OPERATIONS.keys()  # what is checked in is what is served
    header = {"Authorization": f"Bearer {postgres_server.installation.tokens['operator']}"}

    def ask(label: str, mode: GenerationMode, *, examples: int, seed: int) -> None:
        @seeded(seed)
        @settings(
            max_examples=examples,
            deadline=None,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=list(HealthCheck),
            database=None,
        )
        @given(case=operations[label].as_strategy(generation_mode=mode))
        def send(case: Any) -> None:
            case.call_and_validate(
                base_url=postgres_server.server.url, checks=[not_a_server_error], headers=header
            )

        send()

    return ask


@schemathesis.serializer("application/x-ndjson")
def as_lines(_: Any, value: Any) -> bytes:
    """Send what was made up for a body of lines as it is."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(("label", "mode"), ASKED)
def test_nothing_is_a_server_error(
    label: str, mode: GenerationMode, asked: Callable[..., None]
) -> None:
    """What the served document allows (positive) or does not (negative): no 5xx on PostgreSQL."""
    asked(label, mode, examples=4, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize(("label", "mode"), ASKED)
def test_nothing_is_a_server_error_for_long(
    label: str, mode: GenerationMode, asked: Callable[..., None]
) -> None:
    """The same with 500 requests for each operation and mode."""
    asked(label, mode, examples=500, seed=2)
