#!/usr/bin/env python3
"""Every option of every verb does something: it changes what the command prints or writes, or is refused with exit 2 by name.

Usage: options_test.py ESPALIER REPOSITORY [VERB...]

All verbs but the lab's, which needs rights of its own. verbs.py says how each verb is used and what is given for each option. An option that --help lists and verbs.py does not is a
failure, so that a new option cannot be forgotten.
"""
import concurrent.futures
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import fixtures
from verbs import PLAIN, SHOWN_NOWHERE, VERBS

GLOBAL = {"--help", "--help-all", "--json", "--quiet", "--color"}
TIMES = re.compile(r'"(time|min|p99|algbw|busbw|of_bound|reason|error|median_error|agrees)": [^\n]*')


class Command:
    """The command under test, each run in a folder of its own with the same inputs."""

    def __init__(self, espalier, repository, inputs):
        self.espalier, self.repository, self.inputs = espalier, repository, inputs

    @functools.lru_cache(maxsize=None)
    def run(self, words):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(self.inputs, folder, dirs_exist_ok=True)
            os.symlink(self.repository / "configs", pathlib.Path(folder) / "configs")
            before = self.files(folder)
            done = subprocess.run([self.espalier, *words], cwd=folder, env=fixtures.environment(self.espalier),
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
            written = {name: text for name, text in self.files(folder).items() if before.get(name) != text}
            return done.returncode, self.steady(words, done.stdout), done.stderr.decode(), written

    @staticmethod
    def steady(words, output):
        """What a real run measures is never the same twice, and no option's doing."""
        text = output.decode(errors="replace")
        if "probe" in words and "--dry-run" not in words:
            return re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "", text)
        return TIMES.sub("", text) if words[0] in ("run", "lab") else text

    @staticmethod
    def files(folder):
        return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir() if path.is_file()}

    def help(self, verb):
        done = subprocess.run([self.espalier, *verb.split(), "--help"], capture_output=True, text=True, check=True)
        return done.stdout

    def options(self, verb):
        """The long names of a verb's options, or the short one where there is no long one, as its --help lists them."""
        names = set()
        for line in self.help(verb).splitlines():
            found = re.match(r"  (-\S+)", line)
            if found:
                spelled = found.group(1).split(",")
                names.add(next((name for name in spelled if name.startswith("--")), spelled[0]))
        return names - GLOBAL

    def takes_arguments(self, verb):
        """False for families of `topo gen`, whose examples are those of `topo gen`, and for what takes nothing."""
        return not verb.startswith("topo gen ")

    def verbs(self, path=""):
        """All verbs, those below others behind them: "simulate", "topo", "topo show"."""
        found, is_list = [], False
        for line in self.help(path).splitlines():
            if not line.startswith(" "):
                is_list = line.startswith("Subcommands")
            elif is_list and re.match(r"  \S", line):
                verb = (path + " " + line.split()[0]).strip()
                found += [verb, *self.verbs(verb)]
        return found


def problem_of(command, verb, mode, base, option, words):
    """What is wrong with an option in a mode, or nothing."""
    start = verb.split() + base
    before, after = command.run(tuple(start)), command.run(tuple(start + words))
    at = f"{verb} [{mode}] {' '.join(words)}"
    if before[0] not in (0, 1) or (before[0] == 1 and not before[1]):
        return f"{verb} [{mode}]: cannot be run: exit {before[0]}: {before[2]}"
    if after[0] not in (0, 1, 2):
        return f"{at}: exit {after[0]}: {after[2]}"
    if after[0] == 2:
        told = "does not apply" in after[2] or any(name in after[2] for name in [*words, option.lstrip("-")])
        return None if told else f"{at}: refused, but not by name: {after[2]}"
    if after == before and option not in SHOWN_NOWHERE:
        return f"{at}: changes nothing and is not refused"
    return None


def jobs_of(command, verb):
    """(verb, mode, base, option, words) for all that is to be tried; problems of the table itself as strings."""
    if verb in PLAIN:
        return
    if verb not in VERBS:
        yield f"{verb}: is not in verbs.py"
        return
    options, modes = VERBS[verb]
    for name in sorted(command.options(verb) - set(options)):
        yield f"{verb} {name}: has no value in verbs.py"
    for mode, (base, own) in modes.items():
        for option in options:
            words = own.get(option, options[option])
            if not isinstance(words, str):
                yield verb, mode, base, option, words


def main():
    espalier, repository = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as inputs:
        fixtures.make(inputs, espalier)
        command = Command(espalier, repository, inputs)
        if sys.argv[3:] == ["lab"]:
            tried = command.run(("lab", "configs/lab-mixed.yaml", "broadcast", "-s", "4K", "-n", "1"))
            if tried[0] == 3:
                print("skipped: " + tried[2])
                return 3
        jobs = [job for verb in sys.argv[3:] or [verb for verb in command.verbs() if verb != "lab"] for job in jobs_of(command, verb)]
        problems = [job for job in jobs if isinstance(job, str)]
        tried = [job for job in jobs if not isinstance(job, str)]
        print("\n".join(problems), flush=True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for problem in filter(None, pool.map(lambda job: problem_of(command, *job), tried)):
                problems.append(problem)
                print(problem, flush=True)
    print(f"{len(tried)} uses of options, {len(problems)} problems")
    return 1 if problems or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
