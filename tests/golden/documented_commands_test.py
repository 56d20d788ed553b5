#!/usr/bin/env python3
"""What the documents say of commands that are not run: their verbs and options exist, and every console block is run.

Usage: documented_commands_test.py ESPALIER REPOSITORY FILE.md...

FILE.md... are those whose console blocks are run (console_test.py). Looked at are code spans and indented lines that begin with
`espalier`, in all Markdown files.
"""
import functools
import pathlib
import re
import subprocess
import sys

from console_test import blocks

# Notes of what was, with options of their time.
HISTORY = {"CHANGELOG.md"}


@functools.cache
def help_of(espalier, verb):
    done = subprocess.run([espalier, *verb, "--help"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def verbs_in(text):
    below = re.search(r"^Subcommands:\n((?:  .*\n)*)", text, flags=re.M)
    return set(re.findall(r"^  (\S+)", below.group(1), flags=re.M)) if below else set()


def options_in(text):
    return set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", text))


def documented(lines):
    """Yields (line number, command) of indented lines and code spans that begin with espalier."""
    is_fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            is_fenced = not is_fenced
        if is_fenced:
            continue
        if re.match(r"    (\$ )?espalier ", line):
            yield number, line.strip().removeprefix("$ ")
        else:
            yield from ((number, span) for span in re.findall(r"`(espalier [^`]+)`", line))


def problems_of(espalier, command):
    command = re.split(r"[|;#&]|->", command)[0]
    words = [word for word in command.split()[1:] if not word.startswith("...")]
    verb, text = (), help_of(espalier, ())
    known = options_in(text)
    while words and (words[0].startswith("-") or words[0] in verbs_in(text)):
        word = words.pop(0)
        if not word.startswith("-"):
            verb += (word,)
            text = help_of(espalier, verb)
            known |= options_in(text)
        elif word.split("=")[0] not in known:
            yield f"espalier has no {word}"
    if verbs_in(text) and words and re.fullmatch(r"[a-z-]+", words[0]):
        yield f"{' '.join(('espalier', *verb))} has no verb {words[0]}"
        return
    for word in words:
        option = word.split("=")[0].rstrip(".,)]").lstrip("[")
        if re.fullmatch(r"--?[A-Za-z][\w-]*", option) and option not in known:
            yield f"{' '.join(('espalier', *verb))} has no {option}"


def main():
    espalier, repository = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    run = {pathlib.Path(name).resolve() for name in sys.argv[3:]}
    problems, count = [], 0
    for path in sorted(repository.rglob("*.md")):
        name = path.relative_to(repository)
        if name.parts[0] in ("build", "shared") or "node_modules" in name.parts or str(name) in HISTORY:
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        if path not in run and next(blocks(lines), None) is not None:
            problems.append(f"{name}: has console blocks and is not among the documents that are run")
        for number, command in documented(lines):
            count += 1
            problems += [f"{name}:{number}: {what}: {command}" for what in problems_of(espalier, command)]
    print("\n".join(problems) or f"{count} commands that are not run name verbs and options that there are")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
