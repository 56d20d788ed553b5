#!/usr/bin/env python3
"""Holds training steps that `espalier simulate --scenario` simulates, call by call, against measured ones.

    training_scenarios.py ESPALIER RUNS.csv [--gpus N] [--most N]  a row for each run, the medians, and the ranges of classes

Rows are those of training.py, with the micro-batch and the stages that it takes; of up to --gpus GPUs (64), up to about --most of a source (24), evenly spread. What a
scenario has no key for (old libraries' products, learned positions) is left out.
"""
import argparse
import collections
import csv
import json
import pathlib
import statistics
import subprocess
import tempfile

import training

SAME = ("layers", "hidden", "heads", "head_size", "feed_forward", "gated", "causal", "vocabulary", "tied", "tensor", "pipeline", "context", "data", "batch",
        "sequence", "sequence_parallel", "micro_batch", "virtual_stages", "recompute", "kernels", "attention", "dropout", "sharding", "shard_group", "model",
        "kv_heads")
OF_EXPERTS = ("experts", "experts_per_token", "expert", "expert_tensor")
TYPES = {"fp16": "float16", "bf16": "bfloat16", "tf32": "float32", "fp32": "float32", "fp8": "bfloat16"}


def scenario_of(question):
    plan = question["training"]
    model = {key: plan[key] for key in SAME if plan.get(key)}
    model["causal"] = plan.get("causal", True)
    model["tied"] = plan.get("tied", False)
    if plan.get("experts") or plan.get("model"):
        model.update({key: plan[key] for key in OF_EXPERTS if plan.get(key)})
    model["gpu"] = question["gpu"]
    model["type"] = TYPES[plan["precision"]]
    if plan["precision"] == "fp8":
        model["precision"] = "fp8"
    if plan.get("gradient_bytes") == 4:
        model["gradients"] = "float32"
    if plan.get("overlap_grad_reduce") and plan["sharding"] != "full":
        model["bucket"] = "80 MB"
    if plan.get("overlap_param_gather") and plan["sharding"] in ("optimizer", "gradients"):
        model["overlap_param_gather"] = True
    if plan.get("tp_comm_overlap") and plan.get("sequence_parallel") and plan["tensor"] > 1:
        model["tp_comm_overlap"] = True
    return {"espalier_scenario": 1, "training": model}


def simulate(espalier, folder, row, answer):
    """Seconds, and the words of a refusal."""
    question = answer["question"]
    _, place, _ = training.plans_of(row)
    machine, profile, (made, of_box) = place
    calls = training.Calls(espalier, folder, None)
    gpus = training.whole(row, "gpus")
    names, boxes = calls.ranks(machine, of_box, gpus, 1)
    document = scenario_of(question)
    document["training"]["ranks"] = ",".join(names)
    path = pathlib.Path(folder) / "step.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    words = calls.machine_words(machine, profile, made, boxes)
    done = subprocess.run([espalier, "--json", "simulate", *words, "--scenario", str(path), "--profile", profile], capture_output=True, text=True,
                          cwd=training.REPOSITORY, check=False)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[0]
    return json.loads(done.stdout)["elapsed"], ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("espalier")
    parser.add_argument("runs", type=pathlib.Path)
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--most", type=int, default=24)
    parser.add_argument("--calls", type=pathlib.Path)
    flags = parser.parse_args()
    flags.espalier = str(pathlib.Path(flags.espalier).resolve())
    with open(flags.runs, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if training.whole(row, "gpus") <= flags.gpus]
    of_source = collections.defaultdict(list)
    for row in rows:
        of_source[training.source_of(row["id"])].append(row)
    rows = [row for members in of_source.values() for row in members[::max(1, len(members) // flags.most)]]
    found, refused = training.predict(flags.espalier, rows, kept=flags.calls)
    took = []
    with tempfile.TemporaryDirectory() as folder:
        for row, answer in found:
            seconds, why = simulate(flags.espalier, folder, row, answer)
            if seconds is None:
                refused.append((row, why))
                continue
            took.append((row, {**answer, "seconds": seconds}))
            print(row["id"], f"{seconds / training.measured(row):.3f} simulated {seconds:.5g} measured {training.measured(row):.5g}",
                  f"in closed form {answer['seconds']:.5g}", flush=True)
    for row, why in refused:
        print("not expressed:", row["id"], why)
    summary = training.summarise(took)
    for source, figures in summary["sources"].items():
        print(f"{source:10} {figures['rows']:4} rows, median {figures['median']:.3f}, mape {figures['mape']:.1%}")
    print(f"all: {summary['rows']} rows, median {summary['median']:.3f}, mape {summary['mape']:.1%}")
    ratio = [answer["seconds"] / closed["seconds"] for (_, answer), (_, closed) in zip(took, [pair for pair in found if any(pair[0] is row for row, _ in took)])]
    print(f"simulated over the closed form: median {statistics.median(ratio):.3f}, {min(ratio):.3f} to {max(ratio):.3f}")
    training.print_ranges(took)


if __name__ == "__main__":
    main()
