"""Sizes and other whole numbers, as nccl-tests and the command line read them."""
import collections.abc
import operator
import re

from .errors import Error

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_LARGEST = 2**62


def parse_size(size):
    """Bytes of 64, "64", "64K", "64KiB" (powers of two) or "64kB", "64MB" (powers of ten). Integers of any type are bytes.

    >>> parse_size("64M"), parse_size("1MB"), parse_size(8)
    (67108864, 1000000, 8)
    >>> import numpy
    >>> parse_size(numpy.int64(8))
    8
    """
    if isinstance(size, str):
        found = re.fullmatch(r"\s*([0-9]+)\s*([kKmMgGtT]?)(i?[bB]?)\s*", size)
        if found and not (found[3].lower().startswith("i") and not found[2]):
            base = 1000 if found[3].lower() == "b" and found[2] else 1024
            return _in_range(int(found[1]) * base ** _POWERS[found[2].lower()], size)
    else:
        number = as_integer(size)
        if number is not None:
            return _in_range(number, size)
    raise Error("invalid_input", f"{size!r} is not a size", "write bytes, or 64K, 1M, 1G, 25MB")


def _in_range(number, size):
    if 0 <= number <= _LARGEST:
        return number
    raise Error("invalid_input", f"a size of {size} bytes", "sizes are from 0 to 2^62")


def as_integer(value):
    """The int that an integer of any type is; None for all else, truth values among it."""
    if type(value).__name__ in ("bool", "bool_"):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def whole_number(value, what, least=0):
    """The same, refusing all else."""
    number = as_integer(value)
    if number is None or not least <= number <= _LARGEST:
        raise Error("invalid_input", f"{what} is {value!r}", f"give a whole number from {least} on")
    return number


def is_several(value):
    """Whether a value is a list, an array or another run of values; not a text, nor an array's single value.

    >>> import numpy
    >>> is_several(["1M", "2M"]), is_several("1M"), is_several(numpy.int64(8)), is_several(numpy.array([8]))
    (True, False, False, True)
    """
    return isinstance(value, collections.abc.Iterable) and not isinstance(value, (str, bytes)) and getattr(value, "ndim", 1) != 0
