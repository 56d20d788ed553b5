#!/usr/bin/env python3
"""Runs the commands of ```console blocks in Markdown files and compares their output, as README and docs promise it.

Usage: console_test.py [--record] ESPALIER REPOSITORY FILE.md...

In a block, a line that begins with "$ " is a command; the lines up to the next command are what it prints, standard error
after standard output. "[exit N]" ends a command that does not succeed. A line "..." stands for any number of lines.
Commands of a file run in one temporary folder, in order, by bash, with `espalier` and the shipped `configs` in reach.
Every console block is run: what only shows how something is installed stands in another kind of block.
--record rewrites the files with what the commands print now.
"""
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

FENCE = "```"


def blocks(lines):
    """Yields (first, last) line numbers of the inside of each console block, last exclusive."""
    begin = None
    for number, line in enumerate(lines):
        if begin is None and line.strip() == FENCE + "console":
            begin = number + 1
        elif begin is not None and line.strip() == FENCE:
            yield begin, number
            begin = None


def commands(lines):
    """Splits a block into (command, expected lines)."""
    result = []
    for line in lines:
        if line.startswith("$ "):
            result.append((line[2:], []))
        elif result:
            result[-1][1].append(line)
    return result


def run(command, folder, espalier):
    environment = {"PATH": f"{espalier.parent}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", "TERM": "dumb", "HOME": folder, "CI": "1"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120)
    lines = (done.stdout + done.stderr).splitlines()
    return lines + ([f"[exit {done.returncode}]"] if done.returncode else [])


def matches(expected, actual):
    """Whether actual lines fit the expected ones, in which "..." stands for any number of lines."""
    if not expected:
        return not actual
    if expected[0] == "...":
        return any(matches(expected[1:], actual[skip:]) for skip in range(len(actual) + 1))
    return bool(actual) and actual[0] == expected[0] and matches(expected[1:], actual[1:])


def check_file(path, espalier, repository, record):
    lines = path.read_text(encoding="utf-8").splitlines()
    output, failures, done_to = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(repository / "configs", pathlib.Path(folder) / "configs")
        for begin, end in blocks(lines):
            output += lines[done_to:begin]
            done_to = end
            if begin == end or not lines[begin].startswith("$ "):
                failures += 1
                print(f"{path}:{begin + 1}: a console block begins with a command")
                output += lines[begin:end]
                continue
            for command, expected in commands(lines[begin:end]):
                actual = run(command, folder, espalier)
                fits = matches(expected, actual)
                output += [f"$ {command}"] + (expected if fits else actual)
                if not fits and not record:
                    failures += 1
                    print(f"{path}: $ {command}")
                    print("\n".join(difflib.unified_diff(expected, actual, "documented", "printed", lineterm="")))
    output += lines[done_to:]
    if record:
        path.write_text("\n".join(output) + "\n", encoding="utf-8")
    return failures


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--record"]
    espalier, repository = pathlib.Path(arguments[0]).resolve(), pathlib.Path(arguments[1]).resolve()
    record = "--record" in sys.argv
    failures = sum(check_file(pathlib.Path(path), espalier, repository, record) for path in arguments[2:])
    print(f"{failures} commands print something else" if failures else "all commands print what is documented")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
