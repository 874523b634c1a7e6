from typing import get_args

import pytest

from etude.people.errors import ScopeForbiddenError, ScopeNotAllowedError, ScopeUnknownError
from etude.people.records import Principal, PrincipalKind
from etude.people.scopes import Scope, allowed_scopes, check_scopes, effective_scopes, require


def principal(*scopes: str) -> Principal:
    return Principal(kind="service", key=1, id="s", scopes=frozenset(scopes), token_key=1)


def test_a_scope_that_is_held_is_let_through_and_another_is_not() -> None:
    """A principal may do what its scopes say, and nothing else."""
    require(principal(Scope.SESSIONS_READ), Scope.SESSIONS_READ)
    with pytest.raises(ScopeForbiddenError) as refused:
        require(principal(Scope.SESSIONS_READ), Scope.SESSIONS_WRITE)
    assert refused.value.params == {"scope": "sessions:write"}


def test_operate_is_everything_for_an_operator() -> None:
    """`operate` brings every other scope with it."""
    assert effective_scopes(["operate"], "staff", "operator") == set(Scope)


@pytest.mark.parametrize("kind", ["device", "learner"])
def test_a_device_or_learner_can_never_operate(kind: PrincipalKind) -> None:
    """They hold the scopes of their own sessions at most; a learner also of own classrooms."""
    own = {Scope.SESSIONS_READ, Scope.SESSIONS_WRITE}
    assert allowed_scopes(kind) - {Scope.CLASSROOMS_WRITE} == own
    assert (Scope.CLASSROOMS_WRITE in allowed_scopes(kind)) == (kind == "learner")
    with pytest.raises(ScopeNotAllowedError):
        check_scopes(["operate"], kind)
    assert effective_scopes(["operate", "sessions:read"], kind) == {"sessions:read"}


def test_an_operator_who_becomes_a_teacher_loses_what_the_token_says() -> None:
    """A token allows at most what its principal may hold at this moment."""
    granted = ["operate", "learners:read"]
    assert effective_scopes(granted, "staff", "operator") == set(Scope)
    assert effective_scopes(granted, "staff", "teacher") == {"learners:read"}


def test_scopes_are_kept_once_each_in_their_usual_order() -> None:
    """Two ways of naming the same scopes make the same token."""
    assert check_scopes(["sessions:read", "sessions:write", "sessions:read"], "device") == (
        "sessions:write",
        "sessions:read",
    )


@pytest.mark.parametrize("scopes", [["admin"], ["sessions:write", "Operate"], []])
def test_a_word_that_is_no_scope_is_refused(scopes: list[str]) -> None:
    """An unknown scope, and no scope at all, is refused with the list of those there are."""
    with pytest.raises(ScopeUnknownError) as refused:
        check_scopes(scopes, "staff", "operator")
    assert "upload:on-behalf" in str(refused.value.params["known"])


def test_every_kind_of_principal_has_its_row() -> None:
    """No kind of principal is forgotten in the table of scopes."""
    for kind in get_args(PrincipalKind):
        assert allowed_scopes(kind) <= set(Scope)
