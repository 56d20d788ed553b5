"""Sizes as nccl-tests and the command line read them."""
import re

from .errors import Error

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_size(size):
    """Bytes of 64, "64", "64K", "64KiB" (powers of two) or "64kB", "64MB" (powers of ten).

    >>> parse_size("64M"), parse_size("1MB"), parse_size(8)
    (67108864, 1000000, 8)
    """
    if isinstance(size, int) and not isinstance(size, bool):
        return size
    found = re.fullmatch(r"\s*(\d+)\s*([kKmMgGtT]?)(i?[bB]?)\s*", str(size))
    if not found or (found[3].lower().startswith("i") and not found[2]):
        raise Error("invalid_input", f"{size!r} is not a size", "write bytes, or 64K, 1M, 1G, 25MB")
    base = 1000 if found[3].lower() == "b" and found[2] else 1024
    return int(found[1]) * base ** _POWERS[found[2].lower()]
