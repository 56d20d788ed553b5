#!/usr/bin/env python3
"""Runs the examples in the package's docstrings."""
import ast
import doctest
import importlib
import pathlib
import re
import sys

import espalier


def public_names():
    """Functions, classes and methods of the package, as its stubs name them."""
    stubs = pathlib.Path(__file__).parent.parent / "espalier" / "__init__.pyi"
    for node in ast.parse(stubs.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
            for method in getattr(node, "body", []):
                if isinstance(method, ast.FunctionDef) and isinstance(node, ast.ClassDef) and not method.name.startswith("_"):
                    yield method.name


if __name__ == "__main__":  # Ranks that examples start import this file.
    failed = tried = 0
    shown = ""  # What all examples say, for what they leave out.
    for path in sorted(pathlib.Path(espalier.__file__).parent.glob("*.py")):
        name = "espalier" if path.stem == "__init__" else f"espalier.{path.stem}"
        try:
            module = importlib.import_module(name)
        except ImportError as missing:
            if name not in ("espalier.torch", "espalier._torch_build"):
                raise
            print(f"{name}: skipped: {missing}")  # PyTorch need not be there.
            continue
        result = doctest.testmod(module)
        shown += "".join(example.source for test in doctest.DocTestFinder().find(module) for example in test.examples)
        failed, tried = failed + result.failed, tried + result.attempted
    print(f"{tried} examples, {failed} failed")
    missing = [name for name in public_names() if not re.search(rf"\b{name}\b", shown)]
    print(f"without an example: {', '.join(missing) or 'nothing'}")
    sys.exit(1 if failed or tried < 12 or missing else 0)
