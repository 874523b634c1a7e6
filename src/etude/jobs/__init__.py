"""Durable jobs: an intent row in the caller's transaction, carried out at least once."""

from etude.jobs.errors import Fenced, GiveUp, JobMissing
from etude.jobs.queue import ask_again, cancel, counted, enqueue, find, jobs_in, requeue
from etude.jobs.records import Handler, Job, JobRow, JobState, Pace, Periodic, RetryPolicy
from etude.jobs.runner import Runner

__all__ = [
    "Fenced",
    "GiveUp",
    "Handler",
    "Job",
    "JobMissing",
    "JobRow",
    "JobState",
    "Pace",
    "Periodic",
    "RetryPolicy",
    "Runner",
    "ask_again",
    "cancel",
    "counted",
    "enqueue",
    "find",
    "jobs_in",
    "requeue",
]
