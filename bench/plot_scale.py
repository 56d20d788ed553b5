#!/usr/bin/env python3
"""Processor time and memory against GPUs up to 65,536: measures `espalier` on boxes of 8 of examples/dgx-h100-x2048.yaml, writes an SVG.

    bench/plot_scale.py build/release/espalier docs/scale-time.svg [MOST_GPUS]

Of each size the bound, the plan by packing at 1 GiB with verification, and simulations at 64 MiB, 1 GiB and 16 GiB besides; processor
time (user and system) of whole commands, so that other work on the machine counts little. Prints a table for docs/benchmarks.md.
"""
import json
import os
import pathlib
import sys

import power_plot

MACHINE = pathlib.Path(__file__).resolve().parent.parent / "examples/dgx-h100-x2048.yaml"
SIZES = [(64, 1, 1, 8), (256, 1, 1, 32), (1024, 1, 4, 32), (4096, 2, 8, 32), (16384, 8, 8, 32), (65536, 32, 8, 32)]
FAMILIES = {
    "all_gather bound": ("all_gather: bound", "#9467bd"),
    "all_gather plan": ("all_gather: bound, plan, verification, one size", "#1f77b4"),
    "all_gather sizes": ("all_gather: three sizes", "#2ca02c"),
    "all_reduce sizes": ("all_reduce: three sizes", "#d62728"),
}


def run(words):
    """Processor seconds, memory in MB and what it printed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.execv(words[0], words)
    os.close(write)
    with os.fdopen(read) as stream:
        text = stream.read()
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{' '.join(words)}: status {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    command, most = sys.argv[1], int(sys.argv[3]) if len(sys.argv) > 3 else SIZES[-1][0]
    points = {}
    print("| GPUs | collective | bound | plan, 1 GiB | 64 MiB, 1 GiB, 16 GiB | memory | of the bound |\n|---|---|---|---|---|---|---|")
    for gpus, pods, units, boxes in SIZES:
        if gpus > most:
            break
        machine = [str(MACHINE), "-p", f"pods={pods}", "-p", f"units_per_pod={units}", "-p", f"boxes_per_unit={boxes}"]
        for collective in ("all_gather", "all_reduce"):
            rest = [collective, *machine[1:], "-a", "packing", "--profile", "ideal", "--json"]
            bound = run([command, "bound", machine[0], collective, *machine[1:], "--json"])
            plan = run([command, "plan", machine[0], *rest, "-s", "1G"])
            sizes = run([command, "simulate", machine[0], *rest, "-b", "64M", "-e", "16G", "-f", "16"])
            for name, spent in (("bound", bound), ("plan", plan), ("sizes", sizes)):
                if f"{collective} {name}" in FAMILIES:
                    points.setdefault(f"{collective} {name}", []).append((gpus, 1e3 * spent[0]))
            parts = [f"{100 * entry['of_bound']:.1f}" for entry in json.loads(sizes[2])["results"]]
            print(
                f"| {gpus:,} | {collective} | {bound[0]:.2f} s | {plan[0]:.2f} s | {sizes[0]:.2f} s | "
                f"{max(bound[1], plan[1], sizes[1]):.0f} MB | {', '.join(parts)} % |",
                flush=True,
            )
    title = "Bound, plan and simulation of DGX H100 boxes on three levels: processor time against GPUs"
    power_plot.write(sys.argv[2], points, FAMILIES, title)


if __name__ == "__main__":
    main()
