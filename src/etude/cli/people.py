"""The commands about people: `etude learner|device|user|token`."""

from etude.cli.devices import device
from etude.cli.learners import learner
from etude.cli.tokens import token
from etude.cli.users import user

__all__ = ["device", "learner", "token", "user"]
