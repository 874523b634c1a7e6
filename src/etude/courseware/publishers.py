"""The publisher of an installation, by its settings."""

from etude.clock import Clock
from etude.courseware.publishing import CoursePublisher, Publisher
from etude.courseware.sending import RemotePublisher
from etude.settings import Settings
from etude.store.engine import Database


def publisher_for(settings: Settings, database: Database, clock: Clock) -> CoursePublisher:
    """Return what publishes courses: at the server in the settings, or here without one."""
    remote = remote_publisher(settings, database, clock)
    if remote is not None:
        return remote
    return Publisher(
        database,
        settings.blobs,
        clock,
        classrooms=settings.classrooms,
        legacy=settings.course_manifests,
        token=settings.courseware_publish_token.get_secret_value(),
    )


def remote_publisher(
    settings: Settings, database: Database, clock: Clock
) -> RemotePublisher | None:
    """Return what publishes courses at another server; None = they are published here."""
    server = settings.course_publish_server_base_url
    if server is None:
        return None
    return RemotePublisher(
        database,
        clock,
        server=server,
        classrooms=settings.classrooms,
        token=settings.courseware_publish_token.get_secret_value(),
    )
