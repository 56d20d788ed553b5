#!/usr/bin/env python3
"""Planning time against the number of ranks: reads the table of `bench_planners --set scaling`, writes an SVG.

    build/bench/bench/bench_planners --set scaling -n 1 | bench/plot_planning.py docs/planning-time.svg
"""
import re
import sys

import power_plot

ROW = re.compile(r"^(\S+) (.+?)\s+(\d+)\s+[\d.]+\s+\d+\s+\d+\s+\d+\s+\d+\s+([\d.]+) ms$")
FAMILIES = {
    "rails": ("boxes of 8 on rails", "#1f77b4"),
    "broken": ("the same, a NIC dead", "#d62728"),
    "torus": ("3-D torus", "#2ca02c"),
    "random": ("random, N ranks and N/4 switches", "#9467bd"),
}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    points = {}
    for line in sys.stdin:
        match = ROW.match(line.rstrip())
        if match and match.group(1) in FAMILIES:
            points.setdefault(match.group(1), []).append((int(match.group(3)), float(match.group(4))))
    title = "Planning an all_gather by packing: time against ranks, one thread"
    power_plot.write(sys.argv[1], points, FAMILIES, title)


if __name__ == "__main__":
    main()
