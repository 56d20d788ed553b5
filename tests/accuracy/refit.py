#!/usr/bin/env python3
"""Fits what training steps are predicted by to measured ones, and tries each source by a fit that did not know it.

    refit.py ESPALIER RUNS.csv              prints each value as shipped, as fitted, and as fitted without each source
    refit.py ESPALIER RUNS.csv --held-out   and what those fits foretell of the source that they did not know

RUNS.csv has the columns of tests/accuracy/training. Values are those of VALUES below: of GPUs what `espalier compute` takes as an own GPU, of
software its keys. What collectives take stays as simulated. Residuals are log(predicted / measured), coordinates logarithms; Gauss and Newton with
Huber's weights on tangents by differences, sources weigh as the square root of their rows, and a price for leaving what is shipped: a factor of e as
much as PRICE. `--rounds` repeats it from what was found.

To refit profiles: `espalier calibrate --profile` (docs/profiles.md#calibrating-a-profile) and `accuracy.py ESPALIER --calibrate PROFILE`.
"""
import argparse
import collections
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys

import training

STEP = 0.05
HUBER = 0.1
PRICE = 0.5
# (name, GPUs it is of or None, where it stands: a path of keys, shipped value or None for what the question says). Values above 1 are times or factors.
VALUES = [
    ("a100 tile_part", "a100", ("gpu", "tile_part")), ("a100 tile_overhead", "a100", ("gpu", "tile_overhead")),
    ("a100 sustained", "a100", ("gpu", "sustained")), ("a100 memory_part", "a100", ("gpu", "memory_part")),
    ("v100 tile_part", "v100", ("gpu", "tile_part")), ("v100 sustained", "v100", ("gpu", "sustained")),
    ("h100 sustained", "h100", ("gpu", "sustained")), ("a100 attention", "a100", ("gpu", "attention")),
    ("h100 attention", "h100", ("gpu", "attention")), ("host of trainers", None, ("host",)), ("first products", None, ("products",)),
    ("slowed", None, ("slowed",)), ("last_bucket", None, ("last_bucket",)), ("tensor_hidden", None, ("tensor_hidden",)),
]


def changed(question, factors, known):
    """A question with values times their factors."""
    gpu, plan, own = question["gpu"], dict(question["training"]), {}
    for (_, of, path), factor in zip(VALUES, factors):
        if of is not None and gpu.startswith(of):
            own[path[1]] = factor * known["gpus"][gpu].get(path[1], 1)
        elif of is None and path[0] in known["software"]:
            plan[path[0]] = factor * known["software"][path[0]]
        elif of is None and plan.get(path[0], 1) != 1:
            plan[path[0]] *= factor
    return {"gpu": {"like": gpu, **own} if own else gpu, "training": plan}


def shipped_values(espalier):
    done = subprocess.run([espalier, "--json", "compute"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    return {"gpus": {gpu["name"]: gpu for gpu in document["gpus"]}, "software": document["software"]}


def residuals(espalier, rows, factors):
    known = shipped_values(espalier)
    answers = training.ask(espalier, [changed(question, factors, known) for _, question, _ in rows])
    bad = next((answer["error"] for answer in answers if "error" in answer), None)
    if bad:
        sys.exit(f"a question was refused: {bad}")
    return [math.log(answer["seconds"] / measured) for answer, (_, _, measured) in zip(answers, rows)]


def solve(matrix, right):
    """Gauss with pivots."""
    n = len(right)
    rows = [list(matrix[i]) + [right[i]] for i in range(n)]
    for column in range(n):
        pivot = max(range(column, n), key=lambda i: abs(rows[i][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for i in range(column + 1, n):
            part = rows[i][column] / rows[column][column]
            for j in range(column, n + 1):
                rows[i][j] -= part * rows[column][j]
    found = [0.0] * n
    for i in reversed(range(n)):
        found[i] = (rows[i][n] - sum(rows[i][j] * found[j] for j in range(i + 1, n))) / rows[i][i]
    return found


def step_of(slopes, off, weights, at):
    """The change of each coordinate: weighted least squares with the price of leaving 0."""
    n, price = len(at), PRICE ** 2
    matrix = [[sum(w * slopes[i][k] * slopes[j][k] for k, w in enumerate(weights)) for j in range(n)] for i in range(n)]
    right = [-sum(w * slopes[i][k] * off[k] for k, w in enumerate(weights)) - price * at[i] for i in range(n)]
    for i in range(n):
        matrix[i][i] += price
    return [max(-0.5, min(0.5, change)) for change in solve(matrix, right)]


def weights_of(rows, off, left_out):
    counts = collections.Counter(source for source, _, _ in rows)
    huber = [1 if abs(value) < HUBER else HUBER / abs(value) for value in off]
    return [0 if source == left_out else each / math.sqrt(counts[source]) for (source, _, _), each in zip(rows, huber)]


def slopes_at(espalier, rows, at, off):
    found = []
    for i in range(len(VALUES)):
        there = list(at)
        there[i] += STEP
        found.append([(b - a) / STEP for a, b in zip(off, residuals(espalier, rows, [math.exp(x) for x in there]))])
    return found


def figures(off):
    return (math.exp(statistics.median(abs(value) for value in off)), statistics.mean(abs(math.exp(value) - 1) for value in off)) if off else (0, 0)


def fit(espalier, rows, rounds):
    """(coordinates, slopes and residuals of the last round)."""
    at = [0.0] * len(VALUES)
    for number in range(rounds):
        off = residuals(espalier, rows, [math.exp(x) for x in at])
        slopes = slopes_at(espalier, rows, at, off)
        print(f"round {number + 1}: median factor {figures(off)[0]:.4f}, mean absolute error {figures(off)[1]:.2%}", file=sys.stderr)
        begin, at = at, [x + change for x, change in zip(at, step_of(slopes, off, weights_of(rows, off, None), at))]
    return at, begin, slopes, off


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("espalier")
    parser.add_argument("runs", type=pathlib.Path)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--calls", type=pathlib.Path, help="a file to keep what calls take, as of training.py")
    flags = parser.parse_args()
    with open(flags.runs, newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    found, refused = training.predict(flags.espalier, table, sys.stderr.isatty(), flags.calls)
    rows = [(training.source_of(row["id"]), answer["question"], training.measured(row)) for row, answer in found]
    print(f"{len(rows)} rows, {len(refused)} not expressed", file=sys.stderr)
    at, begin, slopes, off = fit(flags.espalier, rows, flags.rounds)
    shipped = residuals(flags.espalier, rows, [1.0] * len(VALUES))
    fitted = residuals(flags.espalier, rows, [math.exp(x) for x in at])
    sources = sorted({source for source, _, _ in rows}, key=lambda name: [source for source, _, _ in rows].index(name))
    without = {}
    for source in sources:
        change = step_of(slopes, off, weights_of(rows, off, source), begin)
        without[source] = [x + d for x, d in zip(begin, change)]
    print("| value, times what is shipped | fitted | without " + " | without ".join(sources) + " |")
    print("|---|---" + "|---" * len(sources) + "|")
    for i, (name, _, _) in enumerate(VALUES):
        print(f"| {name} | {math.exp(at[i]):.2f} | " + " | ".join(f"{math.exp(without[source][i]):.2f}" for source in sources) + " |")
    if not flags.held_out:
        return
    print("\n| source | rows | as shipped: median, mean | all fitted | this source left out |\n|---|---|---|---|---|")
    everything = []
    for source in sources:
        which = [k for k, row in enumerate(rows) if row[0] == source]
        foretold = residuals(flags.espalier, [rows[k] for k in which], [math.exp(x) for x in without[source]])
        everything += foretold
        cells = [figures([shipped[k] for k in which]), figures([fitted[k] for k in which]), figures(foretold)]
        print(f"| {source} | {len(which)} | " + " | ".join(f"{median:.3f}, {mean:.1%}" for median, mean in cells) + " |")
    cells = [figures(shipped), figures(fitted), figures(everything)]
    print(f"| **all** | {len(rows)} | " + " | ".join(f"{median:.3f}, {mean:.1%}" for median, mean in cells) + " |")


if __name__ == "__main__":
    main()
