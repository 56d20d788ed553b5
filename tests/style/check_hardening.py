#!/usr/bin/env python3
"""Checks that a program was built hardened: position-independent, read-only relocations resolved at its start, stack
canaries, and (with --fortified) checked buffer functions. Usage: check_hardening.py PROGRAM [--fortified]"""

import re
import subprocess
import sys


def readelf(option, program):
    return subprocess.run(["readelf", "--wide", option, program], check=True, capture_output=True, text=True).stdout


def missing_in(program, fortified):
    symbols = readelf("--dyn-syms", program)
    checks = {
        "position-independent code (PIE)": re.search(r"Type:\s+DYN", readelf("--file-header", program)),
        "read-only relocations (RELRO)": "GNU_RELRO" in readelf("--program-headers", program),
        "relocations resolved at the start (BIND_NOW)": re.search(r"BIND_NOW|FLAGS_1.*NOW", readelf("--dynamic", program)),
        "stack canaries": "__stack_chk_fail" in symbols,
    }
    if fortified:
        checks["checked buffer functions (_FORTIFY_SOURCE)"] = re.search(r"__(?!stack)\w+_chk\b", symbols)
    return [name for name, is_there in checks.items() if not is_there]


if __name__ == "__main__":
    missing = missing_in(sys.argv[1], "--fortified" in sys.argv[2:])
    for name in missing:
        print(f"{sys.argv[1]} lacks {name}")
    sys.exit(1 if missing else 0)
