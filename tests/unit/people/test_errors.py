from etude.people import errors


def test_an_error_that_names_a_learner_does_not_print_it() -> None:
    """Ids of learners stay out of the text of errors, which ends in logs (`docs/rules.md 50`)."""
    for kind in (errors.LearnerUnknownError, errors.HolderOverlapError):
        error = kind(learner_id="8d6f-secret", holder="8d6f-secret")
        assert error.params["learner_id"] == "8d6f-secret"
        assert "8d6f-secret" not in f"{error} {error!r}"
        assert str(error) == kind.code
