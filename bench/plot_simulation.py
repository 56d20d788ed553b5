#!/usr/bin/env python3
"""Simulation time against the number of ranks: reads what `bench_simulate` measures, writes an SVG.

    build/bench/bench/bench_simulate --benchmark_format=json | bench/plot_simulation.py docs/simulation-time.svg
"""
import json
import sys

import power_plot

# By benchmark and its second argument.
FAMILIES = {
    ("bm_ring_all_reduce", "chunks:1"): ("ring, stored (set-up included)", "#1f77b4"),
    ("bm_walked_ring", "jitter:1"): ("ring, walked, 2 % jitter: every hop worked out", "#d62728"),
    ("bm_walked_ring", "jitter:0"): ("ring, walked, one period worked out", "#2ca02c"),
    ("bm_all_to_all", "chunks:1"): ("all_to_all through leaf and spine: the event loop", "#9467bd"),
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    points = {}
    for run in json.load(sys.stdin)["benchmarks"]:
        name, *arguments = run["name"].split("/")
        values = dict(argument.split(":") for argument in arguments)
        if len(arguments) < 2 or (name, arguments[1]) not in FAMILIES:
            continue
        points.setdefault((name, arguments[1]), []).append((int(values["ranks"]), run["cpu_time"]))
    power_plot.write(sys.argv[1], points, FAMILIES, "Simulating one collective: processor time against ranks, one thread")


if __name__ == "__main__":
    main()
