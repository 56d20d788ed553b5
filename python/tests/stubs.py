#!/usr/bin/env python3
"""Holds the type stubs against the package: the same names, the same parameters with the same defaults."""
import ast
import inspect
import pathlib
import unittest

import espalier

STUBS = pathlib.Path(__file__).parent.parent / "espalier" / "__init__.pyi"


def parameters_of(node):
    """Names of a stub's parameters, and which have defaults."""
    arguments = node.args
    names = [argument.arg for argument in arguments.posonlyargs + arguments.args]
    with_defaults = set(names[len(names) - len(arguments.defaults):]) | {
        argument.arg for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default is not None}
    names += [argument.arg for argument in arguments.kwonlyargs]
    return [(name, name in with_defaults) for name in names if name != "self"]


def parameters_at_run_time(function):
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.default is not each.empty) for each in parameters
            if each.name != "self" and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


class Stubs(unittest.TestCase):
    def test_names(self):
        names = {node.name for node in ast.parse(STUBS.read_text()).body
                 if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.assertEqual(names, set(espalier.__all__))

    def test_parameters(self):
        checked = 0
        for node in ast.parse(STUBS.read_text()).body:
            functions = [node] if isinstance(node, ast.FunctionDef) else getattr(node, "body", [])
            owner = espalier if isinstance(node, ast.FunctionDef) else getattr(espalier, getattr(node, "name", ""), None)
            for function in (each for each in functions if isinstance(each, ast.FunctionDef)):
                decorators = {ast.unparse(each) for each in function.decorator_list}
                real = inspect.getattr_static(owner, function.name)
                if "property" in decorators or isinstance(real, property):
                    self.assertTrue("property" in decorators and isinstance(real, property), function.name)
                    continue
                if "typing.overload" in decorators:
                    self.assertEqual([name for name, _ in parameters_of(function)],
                                     [name for name, _ in parameters_at_run_time(getattr(owner, function.name))])
                    continue
                try:
                    told = parameters_at_run_time(getattr(owner, function.name))
                except ValueError:
                    continue  # The extension module's functions do not tell.
                self.assertEqual(parameters_of(function), told, f"{node.name}.{function.name}")
                checked += 1
        self.assertGreater(checked, 25)


if __name__ == "__main__":
    unittest.main()
