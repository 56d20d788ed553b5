#!/usr/bin/env python3
"""The examples that --help shows can be pasted: the first of every verb runs in an empty folder and succeeds, and so does every
other one whose files are there or are made by those before it.

Usage: examples_test.py ESPALIER REPOSITORY
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import fixtures
from options_test import Command

# What an example needs that is not everywhere: other machines, a launcher, the right to make networks.
NOT_HERE = ("mpirun", "--rendezvous", "espalier lab", "<(espalier completion", "~/.config", "$SLURM", "nvidia-smi topo", "topo detect")
FILES = re.compile(r"[\w*./%-]+\.(?:yaml|json|jsonl|csv|log|svg|png|xml|txt)\b")
OUTPUTS = re.compile(r"(?:>|-o|--output|--out|--trace|--svg|--png)\s+(\S+)")


def examples_of(text):
    """The lines under "Examples:"."""
    lines = text.splitlines()
    begin = lines.index("Examples:") + 1 if "Examples:" in lines else len(lines)
    for line in lines[begin:]:
        if not line.startswith("  "):
            return
        yield line.strip()


def lacks_files(example, folder):
    made = set(OUTPUTS.findall(example))
    return any(not list(folder.glob(name)) for name in FILES.findall(example) if name not in made)


def problems_of(command, verb):
    examples = list(examples_of(command.help(verb)))
    if not examples:
        return [f"{verb or 'espalier'} --help has no example"], 0
    problems, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for number, example in enumerate(examples):
            if any(word in example for word in NOT_HERE):
                continue
            if number > 0 and lacks_files(example, pathlib.Path(folder)):
                continue
            begin = time.monotonic()
            done = subprocess.run(["bash", "-o", "pipefail", "-c", example], cwd=folder, stdin=subprocess.DEVNULL,
                                  env=fixtures.environment(command.espalier), capture_output=True, text=True, timeout=250)
            print(f"{time.monotonic() - begin:6.1f} s  {example}", flush=True)
            count += 1
            if done.returncode != 0:
                problems.append(f"{verb}: '{example}' ends with {done.returncode}: {done.stderr.strip()}")
    return problems, count


def main():
    command = Command(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), None)
    problems, count = [], 0
    for verb in ["", *command.verbs()]:
        if not command.takes_arguments(verb):
            continue
        found, ran = problems_of(command, verb)
        problems += found
        count += ran
    print("\n".join(problems))
    print(f"{count} examples ran, {len(problems)} problems")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
