#!/usr/bin/env python3
"""Why the model fair is slower than link where trees have unlike weights: the same trees in slices of like weight, for docs/benchmarks.md.

    bench/even_slices.py build/release/espalier RESULTS... [--pieces N]

RESULTS are those of bench/bound_table.py, for both models. Of every network and collective where fair is more than 3 % slower than link at
1 GiB the plan is taken, every slice cut into pieces of about the same weight (N to the heaviest, 32 unless said, or as many as make
all alike where these are less), every piece with transfers and channels of its own, and simulated in fair again. Trees, routes and loads stay.
"""
import argparse
import json
import math
import pathlib
import subprocess
import tempfile

import bound_table


def cut_evenly(plan, most_pieces):
    """The plan with slices of about the same length, a channel for each piece of a slice on a channel."""
    lengths = [piece["length"] for piece in plan["slices"]]
    unit = max(math.gcd(*lengths), max(lengths) // most_pieces, 1)
    pieces_of, slices = [], []
    for old in plan["slices"]:
        count = max(1, round(old["length"] / unit))
        ends = [old["length"] * i // count for i in range(count + 1)]
        pieces_of.append(range(len(slices), len(slices) + count))
        slices += [{**old, "offset": old["offset"] + a, "length": b - a} for a, b in zip(ends, ends[1:])]
    channels, transfers = {}, []
    for old in plan["transfers"]:
        first, count = old["slices"]
        for piece in (piece for index in range(first, first + count) for piece in pieces_of[index]):
            channel = channels.setdefault((old["channel"], piece), len(channels))
            transfers.append({**old, "slices": [piece, 1], "channel": channel})
    cut = {**plan, "slices": slices, "transfers": transfers}
    cut.pop("chunking", None)
    return cut


def simulate(command, path, model):
    words = [command, "simulate", str(path), "-s", "1G", "--model", model, "--profile", "ideal", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["results"][0]["of_bound"]


def slower_cases(results):
    """(network, is shipped, collective, part of the bound in link, in fair), the slowest first."""
    parts = {}
    for row in (json.loads(line) for path in results for line in pathlib.Path(path).read_text().splitlines()):
        name, is_shipped, collective, model = row["key"]
        for result in row.get("results", []):
            if result["size"] == 2**30 and result["algorithm"] in ("packing", "lp"):
                parts.setdefault((name, is_shipped, collective), {})[model] = result
    found = []
    for key, by_model in parts.items():
        if len(by_model) == 2 and by_model["fair"]["time"] > 1.03 * by_model["link"]["time"]:
            found.append((*key, by_model["link"]["of_bound"], by_model["fair"]["of_bound"]))
    return sorted(found, key=lambda case: case[4])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("results", nargs="+")
    parser.add_argument("--pieces", type=int, default=32)
    flags = parser.parse_args()
    cases = {case["name"]: case for case in json.loads((bound_table.ROOT / "tests/data/planner_cases.json").read_text())["cases"]}
    print("| network | collective | link | fair | fair, slices of like weight | slices |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, is_shipped, collective, in_link, in_fair in slower_cases(flags.results):
            path = bound_table.ROOT / "configs" / f"{name}.yaml"
            if not is_shipped:
                path = pathlib.Path(folder) / f"{name}.yaml"
                path.write_text(bound_table.case_yaml(cases[name]))
            plan = pathlib.Path(folder) / "plan.json"
            planner = "lp" if collective == "all_to_all" else "packing"
            words = ["plan", str(path), collective, "-a", planner, "-s", "1G", "--profile", "ideal", "-o", str(plan)]
            subprocess.run([flags.command, *words], capture_output=True, check=True)
            whole = json.loads(plan.read_text())
            cut = cut_evenly(whole, flags.pieces)
            plan.write_text(json.dumps(cut))
            now = simulate(flags.command, plan, "fair")
            counts = f"{len(whole['slices'])} to {len(cut['slices'])}"
            print(f"| {name} | {collective} | {100 * in_link:.1f} % | {100 * in_fair:.1f} % | {100 * now:.1f} % | {counts} |", flush=True)


if __name__ == "__main__":
    main()
