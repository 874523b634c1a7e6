"""What a person may change about an installation: environment variables named `ETUDE_…`.

A setting needs a person who changes it; everything else is a constant beside the code it governs.
There is no settings file: service managers and containers have one already. The command line's
options win over the environment, the environment over the defaults. `docs/configuration.md` lists
every setting; a test compares.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from etude.errors import MalformedError

PREFIX: Final = "ETUDE_"
TEST_PREFIX: Final = "ETUDE_TEST_"  # the test kit's
SQLITE_FILE: Final = "etude.db"

Role = Literal["all", "ops", "server", "learner"]
LogFormat = Literal["auto", "json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]

# Read by other parts on purpose, and no setting of an installation.
NOT_SETTINGS: Final = frozenset(
    {
        "ETUDE_CRASH_AT",  # test kit: end at a named crash point
        "ETUDE_OPERATOR_PASSWORD",  # command line: the password of the operator that `init` makes
        "ETUDE_SETUP_PIP",  # the Makefile
        "ETUDE_TOKEN",  # command line: the bearer token of `etude events upload`
        "ETUDE_SERVER",  # command line: the server that `etude events upload` speaks to
    }
)


class SettingNotNumberError(MalformedError):
    """A setting that must be a whole number in a range is not."""

    code = "SETTING_NOT_NUMBER"


class SettingNotChoiceError(MalformedError):
    """A setting that must be one of a few words is not."""

    code = "SETTING_NOT_CHOICE"


class SettingNotUrlError(MalformedError):
    """A setting that must be a URL of a known kind is not. The value is never shown: passwords."""

    code = "SETTING_NOT_URL"


class SettingNotPairsError(MalformedError):
    """A setting that must be `name=value` pairs is not."""

    code = "SETTING_NOT_PAIRS"


class SettingNotPathError(MalformedError):
    """A setting that must be a folder's path is not."""

    code = "SETTING_NOT_PATH"


SettingError = (
    SettingNotNumberError
    | SettingNotChoiceError
    | SettingNotUrlError
    | SettingNotPairsError
    | SettingNotPathError
)

DATABASE_SCHEMES: Final = ("sqlite:///", "postgresql://")
PUBLIC_SCHEMES: Final = ("http://", "https://")
SOCKET_SCHEMES: Final = ("ws://", "wss://")
BROKER_SCHEMES: Final = ("mqtt://", "mqtts://")


_AMOUNT: Final = r"[0-9]{1,12}(?:\.[0-9]{1,9})?"
_STAGE: Final = (
    "(?:course-framework|outlines|scene(?::(?:slide|quiz|interactive|pbl|practice))?|actions)"
)
_MODEL: Final = rf"{_STAGE}=[^\s=,]+"
_MODELS: Final = rf"^{_MODEL}(?:,{_MODEL})*$"
_PRICE: Final = rf"[^\s=,]+={_AMOUNT}(?:/{_AMOUNT})?"
_PRICES: Final = rf"^{_PRICE}(?:,{_PRICE})*$"
_ONE_LIMIT: Final = rf"(?:tokens=[0-9]{{1,12}}|money={_AMOUNT})"
_LIMIT: Final = rf"^{_ONE_LIMIT}(?:,{_ONE_LIMIT})?$"


def default_data() -> Path:
    """Return the folder of everything when nobody chose one: `$XDG_DATA_HOME/etude`."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "etude"


def default_web_processes() -> int:
    """Return one a core, at most four: more than a school's server needs."""
    return min(os.cpu_count() or 1, 4)


def default_speech_processes() -> int:
    """Return half the cores, at least one, at most four: the clock of practice needs the others."""
    return min(max((os.cpu_count() or 1) // 2, 1), 4)


def _absolute(path: Path) -> Path:
    if "\0" in str(path):
        message = "a path holds no NUL"
        raise ValueError(message)
    return path.expanduser().absolute()


def _one_of(schemes: tuple[str, ...]) -> AfterValidator:
    def check(url: str) -> str:
        if not any(url.startswith(scheme) and url != scheme for scheme in schemes):
            message = f"must start with one of {schemes}"
            raise ValueError(message)
        return url.rstrip("/")

    return AfterValidator(check)


class Settings(BaseSettings):
    """The settings of one installation, read once when a process starts. Frozen.

    The environment variable of a field is its name in upper case behind `ETUDE_`. An empty
    variable counts as not set.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True
    )

    data: Annotated[Path, AfterValidator(_absolute)] = Field(
        default_factory=default_data, validate_default=True
    )
    """Folder of everything: SQLite database, blobs, keys. Created by `etude init`, mode 0700."""

    database_url: Annotated[str, _one_of(DATABASE_SCHEMES)] = Field(
        default_factory=lambda found: (
            f"sqlite:///{found['data'] / SQLITE_FILE}" if "data" in found else ""
        )
    )
    """`sqlite:///FILE` or `postgresql://…`. May hold a password: never logged, never shown."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address that `web` listens on."""

    port: Annotated[int, Field(ge=0, le=65535)] = 8080
    """Port that `web` listens on; 0 takes any free one, which is printed."""

    web_processes: Annotated[int, Field(ge=1, le=64)] = Field(default_factory=default_web_processes)
    """How many `web` processes `etude serve` runs; each takes about 100 MB and fills one core."""

    role: Role = "all"
    """Which routes `web` serves (`docs/routes.md`)."""

    gateway_host: Annotated[str, Field(min_length=1)] = "0.0.0.0"  # noqa: S104 - toys call from outside
    """Address that the gateway listens on, for devices."""

    gateway_port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port of the gateway's device sockets; 0 takes any free one."""

    gateway_http_port: Annotated[int, Field(ge=0, le=65535)] = 8003
    """Port of the gateway's HTTP: provisioning (`/xiaozhi/ota/`)."""

    gateway_url: Annotated[str, _one_of(SOCKET_SCHEMES)] | None = None
    """Where devices reach the gateway's sockets, if not at the host that they asked for it."""

    web_url: Annotated[str, _one_of(PUBLIC_SCHEMES)] | None = None
    """Where the gateway reaches `web`, if not on this machine at `port`."""

    mqtt_url: Annotated[str, _one_of(BROKER_SCHEMES)] | None = None
    """Broker over which the gateway reaches boards that are not connected. May hold a password."""

    mqtt_command_topic: str = "snlp/{device_id}/ctl"
    """Where actions for a device are published."""

    mqtt_ack_topic: str = "snlp/{device_id}/ctl/ack"
    """Where a device acknowledges them."""

    mqtt_fields: str = ""
    """Other names of the envelope's members: `action=cmd,msg_id=id`."""

    llm_url: Annotated[str, _one_of(PUBLIC_SCHEMES)] | None = None
    """Base address of an OpenAI-compatible model, `https://host/v1`; None = no model is asked."""

    llm_key: SecretStr | None = None
    """What the model's endpoint wants as a bearer token. Never logged, never shown."""

    llm_model: Annotated[str, Field(min_length=1)] | None = None
    """Name of the model at that address."""

    llm_models: Annotated[str, Field(pattern=_MODELS)] | None = None
    """Other models there for stages of a course: `outlines=large,scene:interactive=large`."""

    llm_prices: Annotated[str, Field(pattern=_PRICES)] | None = None
    """What a million tokens cost, sent/received, or one picture: `small=0.15/0.60,painter=0.04`."""

    llm_quota: Annotated[str, Field(pattern=_LIMIT)] = "tokens=10000000"
    """How much may be spent for one owner a day (UTC): `tokens=…`, `money=…`, or both."""

    llm_month: Annotated[str, Field(pattern=_LIMIT)] | None = None
    """How much may be spent for everybody together a calendar month (UTC), likewise."""

    course_budget: Annotated[str, Field(pattern=_LIMIT)] = "tokens=3000000"
    """How much one run of a course may spend, likewise."""

    search_url: Annotated[str, _one_of(PUBLIC_SCHEMES)] | None = None
    """A SearXNG server that allows `format=json`; None = courses are made without a search."""

    images_url: Annotated[str, _one_of(PUBLIC_SCHEMES)] | None = None
    """Base address (with `/v1`) of OpenAI's images protocol; None = diagrams by rule alone."""

    images_model: Annotated[str, Field(min_length=1)] | None = None
    """Name of the model that makes pictures there."""

    images_key: SecretStr | None = None
    """What that address wants as a bearer token. Never logged, never shown."""

    speech_processes: Annotated[int, Field(ge=0, le=64)] = Field(
        default_factory=default_speech_processes
    )
    """How many processes `worker`, and at most two of them `gateway`, keep for speech; 0 = none."""

    speech_recogniser: Annotated[str, Field(min_length=1)] = "whisper-tiny.en"
    """Id of the model that recognises; with `speech_recogniser_url`, the server's name of it."""

    speech_recogniser_url: Annotated[str, _one_of(PUBLIC_SCHEMES)] | None = None
    """Address (with `/v1`) of a server that recognises, instead of the embedded engine."""

    speech_voice: Annotated[str, Field(min_length=1)] = "voice-joe-en-us"
    """Id of the voice; with `speech_voice_url`, the server's `MODEL/VOICE`."""

    speech_voice_url: Annotated[str, _one_of(PUBLIC_SCHEMES)] | None = None
    """Address (with `/v1`) of a server that speaks, instead of the embedded engine."""

    speech_key: SecretStr | None = None
    """What these servers want as a bearer token, if anything. Never logged or shown."""

    log_level: LogLevel = "info"
    """The least serious lines that are logged."""

    log_format: LogFormat = "auto"
    """`json`, one object a line; `console` for people; `auto`: console on a terminal, else json."""

    public_url: Annotated[str, _one_of(PUBLIC_SCHEMES)] | None = None
    """Where people reach this server (behind a proxy), for links in cards and QR codes."""

    card_days: Annotated[int, Field(ge=1, le=3650)] = 90
    """How long a new summary card can be opened."""

    classrooms_at_once: Annotated[int, Field(ge=1, le=100)] = 2
    """How many classrooms of one owner are made at the same time."""

    classrooms_a_day: Annotated[int, Field(ge=0, le=10_000)] = 20
    """How many classrooms one owner may have made or bring within 24 hours; 0 = none."""

    courseware_publish_token: SecretStr = SecretStr("")
    """Allows publishing courses: at least 32 bytes; without it nothing is published. `new,old`."""

    course_publish_server_base_url: Annotated[str, _one_of(PUBLIC_SCHEMES)] | None = None
    """Server that courses are published to; None = this installation's own registry."""

    courseware_public_base_url: Annotated[str, _one_of(PUBLIC_SCHEMES)] | None = None
    """Where learners fetch bundles, if not at `public_url`."""

    @property
    def own_url(self) -> str:
        """Where the other processes of the installation reach `web`. No slash at the end."""
        host = _LOOPBACKS.get(self.host, self.host)
        return self.web_url or f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def blobs(self) -> Path:
        """Folder of recordings and other large files."""
        return self.data / "blobs"

    @property
    def gateway(self) -> Path:
        """Folder of what the gateway keeps itself: journals, known devices, commands."""
        return self.data / "gateway"

    @property
    def course_lessons(self) -> Path:
        """Folder of the lessons of published courses that the gateway has fetched."""
        return self.gateway / "course-lessons"

    @property
    def lesson_packs(self) -> Path:
        """Folder of installed lessons that a gateway on another machine has fetched."""
        return self.gateway / "lesson-packs"

    @property
    def apps(self) -> Path:
        """Folder of a school's own apps, which add to the shipped ones or replace them by id."""
        return self.data / "apps"

    @property
    def rubrics(self) -> Path:
        """Folder of a school's own rubrics, read beside those that ship."""
        return self.data / "rubrics"

    @property
    def lessons(self) -> Path:
        """Folder of the lessons that devices practise, as `etude lesson install` lays them out."""
        return self.data / "lessons"

    @property
    def classrooms(self) -> Path:
        """Folder of classrooms, which `etude.classroom.library` keeps."""
        return self.data / "classrooms"

    @property
    def course_manifests(self) -> Path:
        """Folder of the manifests that an older system left, one JSON file a course."""
        return self.data / "course-manifests"

    @property
    def models(self) -> Path:
        """Folder of models that do not come with a package, and of the list that names them."""
        return self.data / "models"

    @property
    def clips(self) -> Path:
        """Folder of encoded clips: made again when it is missing, so no backup holds it."""
        return self.data / "cache" / "clips"

    @property
    def spoken(self) -> Path:
        """Folder of what a voice has spoken for lessons: made again when it is missing."""
        return self.data / "cache" / "spoken"

    @property
    def base_url(self) -> str:
        """`public_url`, else the address that `web` listens on. No slash at the end."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url or f"http://{host}:{self.port}"

    @property
    def courseware_url(self) -> str:
        """Where bundles are fetched: `courseware_public_base_url`, else `base_url`."""
        return self.courseware_public_base_url or self.base_url

    @property
    def has_public_courseware_url(self) -> bool:
        """Whether somebody said where bundles are fetched."""
        return bool(self.courseware_public_base_url or self.public_url)


def load(**chosen: Any) -> Settings:  # noqa: ANN401 - what a shell gave, checked here
    """Read the settings; `chosen` (the command line's options; None = not chosen) win.

    Raises:
        SettingNotNumberError, SettingNotChoiceError, SettingNotUrlError, SettingNotPathError:
            naming the variable and what it must be.
    """
    given = {name: value for name, value in chosen.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        raise _explain(error) from None  # its text would show the value


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Return the `ETUDE_…` names that no part of Etude reads, sorted: misspelt ones, usually."""
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields} | NOT_SETTINGS
    return sorted(
        name
        for name in environment
        if name.startswith(PREFIX) and name not in known and not name.startswith(TEST_PREFIX)
    )


def _explain(error: ValidationError) -> SettingError:
    first = error.errors(include_url=False, include_context=False)[0]
    name = str(first["loc"][0])
    variable = f"{PREFIX}{name}".upper()
    value = str(first["input"])[:100]
    choices = _choices(name)
    if choices:
        return SettingNotChoiceError(variable=variable, value=value, choices=", ".join(choices))
    if name in _NUMBERS:
        minimum, maximum = _NUMBERS[name]
        return SettingNotNumberError(
            variable=variable, value=value, minimum=minimum, maximum=maximum
        )
    schemes: Mapping[str, tuple[str, ...]] = {
        "database_url": DATABASE_SCHEMES,
        "public_url": PUBLIC_SCHEMES,
        "web_url": PUBLIC_SCHEMES,
        "course_publish_server_base_url": PUBLIC_SCHEMES,
        "courseware_public_base_url": PUBLIC_SCHEMES,
        "gateway_url": SOCKET_SCHEMES,
        "llm_url": PUBLIC_SCHEMES,
        "search_url": PUBLIC_SCHEMES,
        "images_url": PUBLIC_SCHEMES,
        "speech_recogniser_url": PUBLIC_SCHEMES,
        "speech_voice_url": PUBLIC_SCHEMES,
        "mqtt_url": BROKER_SCHEMES,
    }
    if name in _PAIRS:
        return SettingNotPairsError(variable=variable, value=value, example=_PAIRS[name])
    if name in schemes:
        return SettingNotUrlError(variable=variable, schemes=", ".join(schemes[name]))
    return SettingNotPathError(variable=variable, value=value)


def _choices(name: str) -> tuple[str, ...]:
    return get_args(Settings.model_fields[name].annotation) if name in _WORDS else ()


_LOOPBACKS: Final[Mapping[str, str]] = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - looked up
_NUMBERS: Final[Mapping[str, tuple[int, int]]] = {
    "port": (0, 65535),
    "gateway_port": (0, 65535),
    "gateway_http_port": (0, 65535),
    "web_processes": (1, 64),
    "speech_processes": (0, 64),
    "card_days": (1, 3650),
    "classrooms_at_once": (1, 100),
    "classrooms_a_day": (0, 10_000),
}
_PAIRS: Final[Mapping[str, str]] = {
    "llm_models": "course-framework=large,scene:interactive=large",
    "llm_prices": "small=0.15/0.60,painter=0.04",
    "llm_quota": "tokens=10000000,money=5",
    "llm_month": "tokens=50000000,money=20",
    "course_budget": "tokens=3000000,money=2.50",
}
_WORDS: Final = frozenset({"role", "log_level", "log_format"})
