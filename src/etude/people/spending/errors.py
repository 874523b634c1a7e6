"""Why a model is not asked: it could cost more than may be spent. Messages: `i18n/*/model.toml`."""

from etude.errors import ConflictError, ThrottledError


class QuotaSpentError(ThrottledError):
    """The next question could cost more than what is left of the owner's day: it is not asked."""

    code = "QUOTA_SPENT"


class MonthSpentError(QuotaSpentError):
    """The next question could cost more than what is left of the installation's month."""

    code = "MONTH_QUOTA_SPENT"


class PriceMissingError(ConflictError):
    """A limit in money is set, and nobody said what a model costs."""

    code = "PRICE_MISSING"
