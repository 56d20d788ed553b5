#!/usr/bin/env python3
"""Compares two builds of the engine on this machine: BEFORE's time and AFTER's, in turns.

Each round runs every cell with both builds, one after the other, under SCHED_RR with each rank on its core in turn, the first in
one round second in the next. The table shows AFTER over BEFORE within a round: the median of the rounds and its quartiles, so
that a machine that changes its speed from minute to minute changes both.

  bench/engine/before_after.py ../old/build/bench build/bench
  bench/engine/before_after.py ../old/build/bench build/bench --rounds 10 --sizes 16K,64K --ranks 2 --variants registered
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from run import MIB, REAL_TIME, format_size, iterations_of, parse_size

DRIVER = pathlib.Path("bench") / "engine" / "bench_engine_espalier"
VARIANTS = ["registered", "private", "tcp"]


def times_of(build, variant, ranks, cells):
    """The median time of each cell, in us."""
    text = ",".join(f"{collective}:{size}:{iterations_of(size, 0.2)}" for collective, size in cells)
    command = REAL_TIME + [str(build / DRIVER), "--variant", variant, "--cells", text, "--seconds", "0.12", "--pin", "yes",
                           "--ranks", str(ranks)]
    output = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    found = [json.loads(line)["median_us"] for line in output.stdout.splitlines() if line.startswith("{")]
    if output.returncode != 0 or len(found) != len(cells):
        sys.exit(f"{build}: {variant}, {ranks} ranks: {output.stderr.strip() or 'cells are missing'}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path, help="a build directory of the preset bench")
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--sizes", default="1K,64K,1M,16M", help="of all_reduce")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    arguments = parser.parse_args()
    cells = [("all_reduce", parse_size(size)) for size in arguments.sizes.split(",")]
    cells += [("broadcast", 16 * MIB), ("all_gather", 16 * MIB)]
    columns = [(int(ranks), variant) for ranks in arguments.ranks.split(",") for variant in arguments.variants.split(",")]
    ratios = {column: [[] for _ in cells] for column in columns}
    for number in range(arguments.rounds):
        for ranks, variant in columns:
            builds = [arguments.before, arguments.after]
            times = {build: times_of(build, variant, ranks, cells) for build in (builds if number % 2 else reversed(builds))}
            for cell, before, after in zip(ratios[ranks, variant], times[arguments.before], times[arguments.after]):
                cell.append(after / before)
        print(f"\rround {number + 1} of {arguments.rounds}", end="", file=sys.stderr)
    print(file=sys.stderr)
    print("| after over before | " + " | ".join(f"{ranks} ranks, {variant}" for ranks, variant in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for index, (collective, size) in enumerate(cells):
        cell_texts = []
        for column in columns:
            lower, median, upper = statistics.quantiles(ratios[column][index], n=4) if arguments.rounds > 1 else ratios[column][index] * 3
            cell_texts.append(f"{median:.2f} ({lower:.2f} to {upper:.2f})")
        print(f"| {collective}, {format_size(size)} | " + " | ".join(cell_texts) + " |")


if __name__ == "__main__":
    main()
