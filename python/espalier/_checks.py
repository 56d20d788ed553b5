"""What arguments have to be, in this project's words."""
from . import _espalier
from .errors import Error

_TOPOLOGY = ("a Topology", "Topology.load(name) or Topology.generate(family, sizes) gives one")
_SCHEDULE = ("a Schedule", "plan(topology, collective) makes one")


def _refuse(value, kind, hint):
    what = repr(value) if isinstance(value, str) else f"a {type(value).__name__}"
    raise Error("invalid_input", f"{what} is given where {kind} belongs", hint)


def as_topology(value):
    """The topology that a value is."""
    return value if isinstance(value, _espalier.Topology) else _refuse(value, *_TOPOLOGY)


def as_schedule(value):
    """The schedule that a value is."""
    return value if isinstance(value, _espalier.Schedule) else _refuse(value, *_SCHEDULE)


def as_name(value, what, hint):
    """The name that a value is."""
    return value if isinstance(value, str) else _refuse(value, what, hint)
