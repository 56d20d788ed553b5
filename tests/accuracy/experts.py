#!/usr/bin/env python3
"""Holds what `espalier experts` predicts against what exchanges between experts were measured to take.

    experts.py ESPALIER FOLDER            a table: rows, median and 90th percentile of the errors of each file, system and phase
    experts.py ESPALIER FOLDER --json     the same as JSON
    experts.py ESPALIER FOLDER --rows     every row with its prediction, worst first
    experts.py ESPALIER FOLDER --check    exits 1 when a median is worse than LIMIT

FOLDER has any of deepep-normal.csv, deepep-low-latency.csv and trtllm-nvlink.csv with the columns of tests/accuracy/experts.
An error is |prediction / measurement - 1|. Which machine a row is of follows from its system ("h100_sxm": DGX H100, "gb300": four
GPUs of a tray of an NVL72) and its boxes or ranks. Nothing is fitted here.
"""
import argparse
import csv
import io
import json
import pathlib
import re
import statistics
import subprocess
import sys

LIMIT = 0.15
# System: machine of one box and of several, GPUs that a box of the tables has, GPU.
SYSTEMS = {
    "h100": (["dgx-h100"], ["dgx-h100-x128"], 8, "h100-sxm"),
    "h200": (["dgx-h200"], ["dgx-h200-cluster", "-p", "boxes=8"], 8, "h200"),
    "b200": (["dgx-b200"], ["dgx-b200-cluster", "-p", "boxes=8"], 8, "b200"),
    "b300": (["dgx-b300"], ["dgx-b300-cluster", "-p", "boxes=8"], 8, "b300"),
    "gb200": (["gb200-nvl72"], ["gb200-nvl72"], 4, "gb200"),
    "gb300": (["gb300-nvl72"], ["gb300-nvl72"], 4, "gb300"),
}
FORMATS = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "nvfp4"}
KERNELS = {"NVLinkTwoSided": "trtllm-nvlink", "NVLinkOneSided": "trtllm-nvlink-one-sided"}
# Column of a measurement: phase of the prediction. What ranks tell each other counts with what it precedes.
DEEPEP = {"dispatch_us": "dispatch", "combine_us": "combine"}
TOLD = {"dispatch_notify_us": "notify_dispatch", "combine_notify_us": "notify_combine"}
COLUMNS = ["software", "ranks", "tokens", "hidden", "top_k", "experts", "sms", "dispatch", "combine"]


def system_of(row):
    name = re.match(r"[a-z0-9]+", row["system"].lower()).group(0)
    if name not in SYSTEMS:
        raise ValueError(f"no machine is known for system {row['system']}")
    return name


def deepep_questions(row, software):
    boxes = int(row["boxes"])
    system = system_of(row)
    question = {"software": software, "ranks": boxes * SYSTEMS[system][2], "tokens": row["tokens"], "hidden": row["hidden"], "top_k": row["top_k"],
                "experts": row["experts"], "sms": row.get("sms") or 20, "dispatch": "fp8", "combine": "bf16"}
    columns = DEEPEP | (TOLD if "dispatch_notify_us" in row else {})
    wanted = [(phase, float(row[column])) for column, phase in columns.items() if row.get(column) and float(row[column]) > 0]
    return (system, boxes > 1), question, wanted


def trtllm_questions(row):
    software = KERNELS[row["kernel"]]
    op = row["op"].removeprefix("alltoall_")
    is_low = op == "combine_low_precision"
    question = {"software": software, "ranks": row["ranks"], "tokens": row["tokens"], "hidden": row["hidden"], "top_k": row["top_k"], "experts": row["experts"],
                "sms": 20, "dispatch": FORMATS[row["type"]], "combine": "nvfp4" if is_low else "bf16"}
    return (system_of(row), False), question, [("combine" if is_low else op, float(row["time_us"]))]


FILES = {
    "deepep-normal.csv": lambda row: deepep_questions(row, "deepep-normal"),
    "deepep-low-latency.csv": lambda row: deepep_questions(row, "deepep-low-latency"),
    "trtllm-nvlink.csv": trtllm_questions,
}


def ask(espalier, machine, questions):
    (system, has_boxes) = machine
    words = SYSTEMS[system][1 if has_boxes else 0]
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(questions)
    done = subprocess.run([espalier, "experts", *words, "--gpu", SYSTEMS[system][3], "--batch", "-", "--json", "-q"], input=text.getvalue(),
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return json.loads(done.stdout)["exchanges"]


def hold(espalier, folder):
    """[(file, system, boxes or ranks, phase, error, predicted, measured, row)] in microseconds, and what could not be asked."""
    asked, refused = {}, []
    for file, questions_of in FILES.items():
        if not (folder / file).exists():
            continue
        with open(folder / file, newline="", encoding="utf-8") as stream:
            for number, row in enumerate(csv.DictReader(stream), 2):
                try:
                    machine, question, wanted = questions_of(row)
                    if row.get("distribution", "balanced") != "balanced":
                        raise ValueError(f"routing is {row['distribution']}")
                    asked.setdefault((file, machine), []).append((number, row, question, wanted))
                except (KeyError, ValueError, AttributeError) as error:
                    refused.append((file, number, repr(error)))
    found = []
    for (file, machine), rows in asked.items():
        try:
            answers = ask(espalier, machine, [question for _, _, question, _ in rows])
        except ValueError as error:
            refused.append((file, rows[0][0], f"{len(rows)} rows of {machine[0]}: {error}"))
            continue
        for (_, row, question, wanted), answer in zip(rows, answers):
            phases = {phase["name"]: phase["seconds"] * 1e6 for phase in answer["phases"]}
            place = f"{row['boxes']} boxes" if "boxes" in row else f"{row['ranks']} ranks"
            for phase, measured in wanted:
                if phase in phases:
                    found.append((file, machine[0], place, phase, abs(phases[phase] / measured - 1), phases[phase], measured, row))
    return found, refused


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def summarise(found):
    groups = {}
    for file, system, place, phase, error, *_ in found:
        if not phase.startswith("notify"):
            groups.setdefault((file, system, "all", "all"), []).append(error)
        groups.setdefault((file, system, place, phase), []).append(error)
    return [{"file": file, "system": system, "of": place, "phase": phase, "rows": len(errors), "median": round(statistics.median(errors), 4),
             "p90": round(percentile(errors, 0.9), 4)} for (file, system, place, phase), errors in groups.items()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("espalier")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--check", action="store_true")
    flags = parser.parse_args()
    found, refused = hold(flags.espalier, flags.folder)
    summary = summarise(found)
    if flags.json:
        print(json.dumps({"summary": summary, "refused": refused}, indent=1))
    else:
        print(f"{'':24} {'':8} {'':9} {'':16} {'rows':>5} {'median':>7} {'p90':>7}")
        for each in summary:
            print(f"{each['file']:24} {each['system']:8} {each['of']:9} {each['phase']:16} {each['rows']:5} {each['median']:7.3f} {each['p90']:7.3f}")
    for file, number, why in refused:
        print(f"not asked: {file}, line {number}: {why}", file=sys.stderr)
    if flags.rows:
        for file, _, _, phase, error, predicted, measured, row in sorted(found, key=lambda each: -each[4]):
            print(f"{file} {phase} {error:.3f} predicted {predicted:.6g} measured {measured:.6g}", ",".join(row.values()))
    if flags.check:
        worse = [each for each in summary if each["of"] == "all" and each["median"] > LIMIT]
        if worse or refused or not summary:
            sys.exit(f"worse than {LIMIT}: {', '.join(each['file'] + ' ' + each['system'] for each in worse) or 'nothing was measured, or not all was asked'}")


if __name__ == "__main__":
    main()
