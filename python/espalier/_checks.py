"""What arguments have to be, in this project's words."""
import functools
import re

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


def _in_own_words(name, function):
    """A function of the bindings, whose refusal of its arguments is this project's error."""
    @functools.wraps(function)
    def call(*arguments, **named):
        try:
            return function(*arguments, **named)
        except TypeError as error:
            if "incompatible" not in str(error):
                raise
            taken = re.findall(r"^ *\d+\. [\w.]*\((.*?)\)(?: -> .*)?$", str(error), re.M)
            taken = [re.sub(r"^self: [\w.]+(, )?|espalier\._espalier\.|arg\d+: ", "", each) for each in taken]
            given = ", ".join([repr(each) for each in arguments if not isinstance(each, _SELVES)] + [f"{key}={each!r}" for key, each in named.items()])
            raise Error("invalid_input", f"{name}({given}) has no such arguments", "it takes " + " or ".join(f"({each})" for each in taken)) from None
    return call


_SELVES = (_espalier.Topology, _espalier.Schedule, _espalier.Simulator, _espalier.Communicator)


def speak_own_words(bound, but=()):
    """Lets the methods of a class of the bindings refuse arguments in this project's words, but for those that are called too often."""
    for name, method in list(vars(bound).items()):
        if (name.startswith("_") and name != "__init__") or name in but:
            continue
        called = bound.__name__ if name == "__init__" else f"{bound.__name__}.{name}"
        if isinstance(method, staticmethod):
            setattr(bound, name, staticmethod(_in_own_words(called, method.__func__)))
        elif type(method).__name__ == "instancemethod" or hasattr(method, "__wrapped__"):
            setattr(bound, name, _in_own_words(called, getattr(method, "__func__", method)))
