from hypothesis import given
from hypothesis import strategies as st

from etude.jobs import RetryPolicy


def test_waits_double_up_to_the_longest() -> None:
    """One second, two, four, and never more than the longest wait."""
    policy = RetryPolicy(first_wait_s=1, max_wait_s=10)
    assert [policy.wait_s(attempt) for attempt in range(1, 7)] == [1, 2, 4, 8, 10, 10]


@given(
    st.floats(0.01, 100),
    st.floats(0.01, 10_000),
    st.integers(1, 1_000_000),
)
def test_waits_are_bounded_and_never_shrink(first: float, longest: float, attempt: int) -> None:
    """For any policy and any attempt the wait is within bounds and no shorter than before."""
    policy = RetryPolicy(first_wait_s=first, max_wait_s=longest)
    assert 0 < policy.wait_s(attempt) <= longest
    assert policy.wait_s(attempt + 1) >= policy.wait_s(attempt)
