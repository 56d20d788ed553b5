#!/usr/bin/env python3
"""Runs the examples in the package's docstrings."""
import doctest
import importlib
import pathlib
import sys

import espalier

if __name__ == "__main__":  # Ranks that examples start import this file.
    failed = tried = 0
    for path in sorted(pathlib.Path(espalier.__file__).parent.glob("*.py")):
        name = "espalier" if path.stem == "__init__" else f"espalier.{path.stem}"
        try:
            module = importlib.import_module(name)
        except ImportError as missing:
            if name != "espalier.torch":
                raise
            print(f"{name}: skipped: {missing}")  # PyTorch need not be there.
            continue
        result = doctest.testmod(module)
        failed, tried = failed + result.failed, tried + result.attempted
    print(f"{tried} examples, {failed} failed")
    sys.exit(1 if failed or tried < 12 else 0)
