#!/usr/bin/env python3
"""Holds what `espalier compute` predicts against what one GPU was measured to take.

    compute.py ESPALIER FOLDER            a table: rows, median and 90th percentile of the factors of each kind
    compute.py ESPALIER FOLDER --json     the same as JSON
    compute.py ESPALIER FOLDER --rows     every row with its prediction, worst first
    compute.py ESPALIER FOLDER --record   writes the table and the picture of docs/accuracy.md
    compute.py ESPALIER FOLDER --check    exits 1 when a median is worse than LIMITS

FOLDER has matrix_products.csv, attention.csv, layers.csv and steps.csv with the columns of tests/accuracy/compute; a kind
whose file is not there is left out. All rows are of the GPU that --gpu names (h100-sxm). A factor is of a prediction and a
measurement the larger over the smaller; of layers and steps the forward and backward pass together. Nothing is fitted here.
"""
import argparse
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys

import pictures

# What medians are not to exceed: (median, 90th percentile).
LIMITS = {"products": (1.08, 1.3), "attention": (1.06, 1.3), "layers": (1.06, 1.28), "steps": (1.06, 1.2), "peak_memory": (1.04, 1.15)}
NAMES = {"products": "products of matrices", "attention": "attention, forward and backward", "layers": "slices of layers, forward and backward",
         "steps": "whole steps on one GPU", "peak_memory": "their peak memory"}
BACKENDS = {"flash": "flash2", "cudnn": "flash3"}


def read(folder, name):
    path = folder / name
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def product_question(row):
    m, n, k = int(row["m"]), int(row["n"]), int(row["k"])
    rows, columns, depth = {"fwd": (m, n, k), "dgrad": (m, k, n), "wgrad": (n, k, m)}[row["layout"]]
    return {"product": {"rows": rows, "columns": columns, "depth": depth, "precision": row["dtype"]}}


def attention_question(row):
    return {"attention": {"batch": int(row["batch"]), "heads": int(row["heads"]), "sequence": int(row["seq"]), "head_size": int(row["head_size"]),
                          "causal": row["causal"] == "True", "precision": row["dtype"], "kernels": BACKENDS[row["backend"]]}}


def model_of(row):
    return {"hidden": int(row["hidden"]), "heads": int(row["heads"]), "kv_heads": int(row["kv_heads"]), "head_size": int(row["head_size"]),
            "feed_forward": int(row["ffn"]), "gated": row["gated"] == "True", "micro_batch": int(row["micro_batch"]), "sequence": int(row["seq"]),
            "kernels": "compiled" if row["compiled"] == "True" else "eager"}


def layer_question(row):
    return {"layer": {**model_of(row), "tensor": int(row["tp"]), "precision": row["dtype"]}}


def step_question(row):
    is_mixed = row["precision"] == "amp"
    gated = row["gated"] == "True"
    return {"step": {**model_of(row), "layers": int(row["layers"]), "vocabulary": int(row["vocabulary"]), "tied": row["tied"] == "True",
                     "positions": 0 if gated else int(row["seq"]), "accumulation": int(row["accumulation"]), "recompute": row["recompute"],
                     "precision": "bf16" if is_mixed else row["precision"], "mixed": is_mixed, "dropout": float(row["dropout"]) > 0}}


# Kind: file, question, the answer's member, the measurement's column and unit.
KINDS = {
    "products": ("matrix_products.csv", product_question, "seconds", "us", 1e-6),
    "attention": ("attention.csv", attention_question, "both", "forward_backward_us", 1e-6),
    "layers": ("layers.csv", layer_question, "both", "forward_backward_us", 1e-6),
    "steps": ("steps.csv", step_question, "seconds", "us", 1e-6),
    "peak_memory": ("steps.csv", step_question, "peak_bytes", "peak_bytes", 1),
}


def ask(espalier, questions):
    text = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run([espalier, "compute", "--batch", "-"], input=text, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def percentile(values, part):
    ordered = sorted(values)
    place = (len(ordered) - 1) * part
    low = math.floor(place)
    return ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (place - low)


def hold(espalier, folder, gpu):
    """{kind: [(factor, predicted, measured, row)]}, and what could not be asked: [(kind, row's number, why)]."""
    found, refused = {}, []
    for kind, (file, question_of, member, column, unit) in KINDS.items():
        rows, questions = [], []
        for number, row in enumerate(read(folder, file), 2):
            try:
                questions.append({"gpu": gpu, **question_of(row)})
                rows.append((number, row))
            except (KeyError, ValueError) as error:
                refused.append((kind, number, repr(error)))
        if not rows:
            continue
        found[kind] = []
        for (number, row), answer in zip(rows, ask(espalier, questions)):
            if "error" in answer:
                refused.append((kind, number, answer["error"]))
            elif row[column]:
                measured, predicted = float(row[column]) * unit, answer[member]
                found[kind].append((max(predicted / measured, measured / predicted), predicted, measured, row))
    return found, refused


def record(found, summary):
    lines = ["| what | rows | median | 90th percentile |", "|---|---|---|---|"]
    lines += [f"| {NAMES[kind]} | {figures['rows']:,} | {figures['median']:.2f} | {figures['p90']:.2f} |" for kind, figures in summary.items()]
    pictures.write_between("compute", "\n".join(lines))
    groups = {kind: [(measured, predicted) for _, predicted, measured, _ in rows] for kind, rows in found.items() if kind != "peak_memory"}
    pictures.write("accuracy-compute.svg", pictures.scatter("Predicted over measured time against the measured one, one H100", groups))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("espalier")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--gpu", default="h100-sxm")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--check", action="store_true")
    flags = parser.parse_args()
    found, refused = hold(flags.espalier, flags.folder, flags.gpu)
    summary = {kind: {"rows": len(rows), "median": round(statistics.median(row[0] for row in rows), 4),
                      "p90": round(percentile([row[0] for row in rows], 0.9), 4)} for kind, rows in found.items() if rows}
    if flags.json:
        print(json.dumps(summary, indent=1))
    else:
        print(f"{'':12} {'rows':>5} {'median':>7} {'p90':>7}")
        for kind, figures in summary.items():
            print(f"{kind:12} {figures['rows']:5} {figures['median']:7.3f} {figures['p90']:7.3f}")
    for kind, number, why in refused:
        print(f"not asked: {kind}, line {number}: {why}", file=sys.stderr)
    if flags.record:
        record(found, summary)
    if flags.rows:
        for kind, rows in found.items():
            for factor, predicted, measured, row in sorted(rows, key=lambda each: -each[0]):
                print(f"{kind} {factor:.3f} predicted {predicted:.6g} measured {measured:.6g}", ",".join(row.values()))
    if flags.check:
        worse = [kind for kind, figures in summary.items() if figures["median"] > LIMITS[kind][0] or figures["p90"] > LIMITS[kind][1]]
        if worse or not summary:
            sys.exit(f"worse than LIMITS: {', '.join(worse) or 'nothing was measured'}")


if __name__ == "__main__":
    main()
