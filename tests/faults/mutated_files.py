#!/usr/bin/env python3
"""Mutates plans, profiles, sweeps and scenarios and asks the command about them: none may crash, run on without an estimate, take memory that the
file does not mean, or print nan or inf as an answer.

    tests/faults/mutated_files.py ESPALIER SOURCE_DIR [--kinds plan,profile,sweep,scenario,explain] [--count N] [--from SEED] [--keep FOLDER]

Each seed is one mutation of one file. What is found is printed with its seed, and its file stays in FOLDER.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

NUMBERS = ["0", "-1", "1", "2", "3", "7", "8", "0.5", "1e-9", "1e300", "1e-300", "65536", "4294967296", "9223372036854775807", "18446744073709551616",
           "99999999", "nan", ".inf", "-0", "1000000", "100%", "0%", "1000%"]  # fmt: skip
UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "us", "ms", "s", "ps", "GB/s", "Gbit/s", "TB/s", "%", ""]
PATIENCE = 20  # Seconds after which an estimate of the rest is to be there.
LIMIT = 60
MEMORY = 3 << 30
IMPOSSIBLE = re.compile(r"(?<![\w.])[-+]?(nan|inf|infinity)(?![\w])", re.IGNORECASE)


def tokens_of(text):
    return re.findall(r"[A-Za-z_][\w-]*|\d+(?:\.\d+)?(?:e[-+]?\d+)?|\s+|.", text, re.DOTALL)


def mutate_once(text, rng, others):
    """One change to a token, a line or a stretch of text."""
    tokens = tokens_of(text)
    kind = rng.randrange(9)
    numbers = [i for i, token in enumerate(tokens) if token[0].isdigit()]
    words = [i for i, token in enumerate(tokens) if token[0].isalpha()]
    if kind <= 3 and numbers:
        i = rng.choice(numbers)
        if kind == 0 and "." not in tokens[i] and "e" not in tokens[i]:
            tokens[i] = str(int(tokens[i]) * rng.choice([2, 10, 1000, 10**6, 10**12]) + rng.choice([-1, 0, 1]))
        else:
            tokens[i] = rng.choice(NUMBERS)
    elif kind == 4 and words:
        i = rng.choice(words)
        tokens[i] = rng.choice(UNITS) if tokens[i] in UNITS else tokens[rng.choice(words)]
    elif kind == 5:
        lines = text.split("\n")
        i = rng.randrange(len(lines))
        if rng.randrange(2):
            del lines[i]
        else:
            lines[i:i] = [lines[i]] * rng.choice([1, 2, 50])
        return "\n".join(lines)
    elif kind == 6:
        i, j = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        j = min(j, i + rng.choice([1, 5, 40]))
        return text[:i] + rng.choice(["", text[i:j] * 2, "{", "]", ":", "- ", "[]", "null"]) + text[j:]
    elif kind == 7 and words:
        other = tokens_of(rng.choice(others))
        tokens[rng.choice(words)] = rng.choice([token for token in other if token[0].isalnum()] or ["x"])
    else:
        i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        tokens[i], tokens[j] = tokens[j], tokens[i]
    return "".join(tokens)


def mutate(text, rng, others):
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        text = mutate_once(text, rng, others) or text
    return text


def run(command, words, folder):
    """What is wrong with this run, or nothing."""
    errors = pathlib.Path(folder) / "errors.txt"
    output = pathlib.Path(folder) / "output.txt"
    start = time.monotonic()
    with errors.open("wb") as on_errors, output.open("wb") as on_output:
        child = subprocess.Popen([command, *words], stdout=on_output, stderr=on_errors, stdin=subprocess.DEVNULL, cwd=folder)
        timed_out = False
        while True:
            done, status, usage = os.wait4(child.pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() - start > LIMIT:
                timed_out = True
                os.kill(child.pid, signal.SIGKILL)
                _, status, usage = os.wait4(child.pid, 0)
                break
            time.sleep(0.01)
        child.returncode = 0
    seconds = usage.ru_utime + usage.ru_stime
    said, printed = errors.read_text(errors="replace"), output.read_text(errors="replace")
    if usage.ru_maxrss * 1024 > MEMORY:
        return f"{usage.ru_maxrss >> 20} GiB of memory"
    if timed_out or seconds > PATIENCE:
        has_estimate = re.search(r"\bleft\b|\bof \d|\d %|remaining|about", said)
        return None if has_estimate else f"{seconds:.0f} s without an estimate"
    code = os.waitstatus_to_exitcode(status)
    if code < 0 or code >= 128:
        return f"ended by {code}: {said[-300:]}"
    if "internal error" in said:
        return said[-400:]
    if code == 0 and (found := IMPOSSIBLE.search(printed)):
        at = found.start()
        return f"prints {printed[max(0, at - 80) : at + 40]!r}"
    if code != 0 and not said and not printed:
        return f"exit {code} without a word"
    return None


def seeds_of(command, source, folder):
    """By kind: texts to mutate, and what is asked about each."""
    configs = source / "configs"
    plans = []
    for number, words in enumerate([["dgx1v", "all_reduce", "-a", "ring"], ["mi250", "all_gather", "-a", "packing"], ["dgx-h100", "all_reduce", "-a", "innetwork"],
                                    ["rtx4090-pcie", "all_to_all", "-a", "flat"], ["dgx-a100", "broadcast", "-a", "tree"]]):  # fmt: skip
        path = folder / f"plan{number}.json"
        subprocess.run([command, "plan", *words, "-o", path, "-q"], check=True, capture_output=True)
        plans.append(path.read_text())
    profiles = [path.read_text() for path in sorted((configs / "profiles").glob("*.yaml"))]
    sweeps = [path.read_text() for path in sorted((source / "tests/fuzz/corpus/sweep_spec").glob("*.yaml"))]
    scenarios = [path.read_text() for path in sorted((configs / "scenarios").glob("*.yaml"))]
    return {
        "plan": (plans, ".json", lambda file, rng: rng.choice([["verify", file], ["simulate", file, "-s", "1K,16M"], ["explain", file], ["simulate", file, "--model", "fair", "-s", "1M"],
                                                             ["export", file, "--as", rng.choice(["csv", "msccl", "mscclpp", "goal", "dot"])]])),  # fmt: skip
        "profile": (profiles, ".yaml", lambda file, rng: ["simulate", rng.choice(["dgx-h100", "dgx1v", "aws-p5-x2", "mi300x"]),
                    rng.choice(["all_reduce", "all_gather", "all_to_all", "broadcast"]), "-a", rng.choice(["nccl", "ring", "auto"]), "-s", "1K,1M,64M", "--profile", file]),  # fmt: skip
        "sweep": (sweeps, ".yaml", lambda file, rng: ["sweep", "--spec", file]),
        "scenario": (scenarios, ".yaml", lambda file, rng: ["simulate", "--scenario", file]),
        "explain": (scenarios, ".yaml", lambda file, rng: ["explain", "--scenario", file]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("source", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--kinds", default="plan,profile,sweep,scenario,explain")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--keep", type=pathlib.Path)
    flags = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    failures, ran = 0, collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        seeds = seeds_of(flags.command, flags.source, folder)
        for kind in flags.kinds.split(","):
            texts, ending, ask = seeds[kind]
            for seed in range(flags.first, flags.first + flags.count):
                rng = random.Random(f"{kind} {seed}")
                file = folder / f"{kind}-{seed}{ending}"
                file.write_text(mutate(rng.choice(texts), rng, texts))
                words = ask(str(file), rng)
                wrong = run(flags.command, words, folder)
                ran[kind] += 1
                if wrong:
                    failures += 1
                    print(f"{kind} {seed}: espalier {' '.join(words)}\n  {wrong}", flush=True)
                    if flags.keep:
                        flags.keep.mkdir(parents=True, exist_ok=True)
                        (flags.keep / file.name).write_text(file.read_text())
                file.unlink()
    print(f"{failures} failures;", ", ".join(f"{count} {kind}" for kind, count in ran.items()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
