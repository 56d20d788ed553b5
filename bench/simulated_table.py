#!/usr/bin/env python3
"""Simulated times at four sizes on every shipped machine, for docs/benchmarks.md.

    bench/simulated_table.py build/bench/espalier [COLLECTIVE] [MOST_RANKS] > table.md

Times in microseconds for ring, tree, packing and auto, and the bus bandwidth of auto as a part of the proven bound.
"""
import json
import pathlib
import subprocess
import sys

NAMES = {2**10: "1 KiB", 2**20: "1 MiB", 2**24: "16 MiB", 2**30: "1 GiB"}
SWEEPS = [["-b", "1K", "-e", "1G", "-f", "1024"], ["-s", "16M"]]  # every sweep plans once


def simulate(command, machine, collective, planners):
    """Results by size and algorithm."""
    results = {size: {} for size in NAMES}
    for sweep in SWEEPS:
        run = subprocess.run(
            [command, "simulate", machine, collective, "-a", planners, *sweep, "--json"],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        for entry in json.loads(run.stdout)["results"] if run.returncode == 0 else []:
            results[entry["size"]][entry["algorithm"]] = entry
    return results


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    command = sys.argv[1]
    collective = sys.argv[2] if len(sys.argv) > 2 else "all_reduce"
    most_ranks = int(sys.argv[3]) if len(sys.argv) > 3 else 128
    print("| machine | ranks | size | ring | tree | packing | auto | chosen | of the bound |")
    print("|---|---|---|---|---|---|---|---|---|")
    for path in sorted(pathlib.Path(__file__).parent.parent.joinpath("configs").glob("*.yaml")):
        shown = subprocess.run([command, "bound", str(path), collective, "--json"], capture_output=True, text=True, check=False)
        if shown.returncode != 0:
            continue
        ranks = json.loads(shown.stdout)["ranks"]
        count = ranks if isinstance(ranks, int) else len(ranks)
        if count > most_ranks:
            continue
        results = simulate(command, str(path), collective, "ring,tree,packing,auto")
        for size, single in results.items():
            run = single.get("auto")
            chosen = run.get("planner", "-") if run else "-"
            cells = [f"{single[p]['time'] * 1e6:.1f}" if p in single else "-" for p in ("ring", "tree", "packing")]
            auto = f"{run['time'] * 1e6:.1f}" if run else "-"
            part = f"{100 * run['of_bound']:.1f} %" if run and run.get("of_bound") else "-"
            print(f"| {path.stem} | {count} | {NAMES[size]} | {' | '.join(cells)} | {auto} | {chosen} | {part} |", flush=True)


if __name__ == "__main__":
    main()
