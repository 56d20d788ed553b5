#!/usr/bin/env python3
"""Simulated bus bandwidth and times on every shipped machine, for docs/benchmarks.md.

    bench/simulated_table.py build/bench/espalier COLLECTIVE [--max-ranks N] > table.md

Links alone (`--profile ideal`). Bus bandwidth in GB/s of the bound and of ring, tree, packing and auto at 1 GiB, then what auto takes at three
smaller sizes in microseconds. The simulator is deterministic: the same rows on every machine.
"""
import argparse
import json
import pathlib
import subprocess

MACHINES = pathlib.Path(__file__).resolve().parent.parent / "configs"
SIZES = {"1K": 2**10, "1M": 2**20, "16M": 2**24, "1G": 2**30}
PLANNERS = ["ring", "tree", "packing", "auto"]
HEAD = ["machine", "ranks", "bound", *PLANNERS, "auto, 1 KiB", "1 MiB", "16 MiB"]


def answer(arguments):
    """What a command prints as JSON, or nothing where the machine cannot do what was asked."""
    run = subprocess.run([*arguments, "--json"], capture_output=True, text=True, timeout=1200, check=False)
    return json.loads(run.stdout) if run.returncode == 0 else None


def row(command, path, collective, max_ranks):
    """The cells of one machine; None for one with more ranks, or with none to ask."""
    bound = answer([command, "bound", str(path), collective])
    if bound is None:
        return None
    ranks = bound["ranks"] if isinstance(bound["ranks"], int) else len(bound["ranks"])
    if ranks > max_ranks:
        return None
    asked = [command, "simulate", str(path), collective, "--profile", "ideal", "-a", ",".join(PLANNERS), "-s", ",".join(SIZES)]
    simulated = answer(asked)
    results = {(entry["algorithm"], entry["size"]): entry for entry in simulated["results"]}
    rates = [simulated["bound"]["busbw"], *(results[planner, SIZES["1G"]]["busbw"] for planner in PLANNERS)]
    cells = [path.stem, str(ranks), *(f"{rate / 1e9:.1f}" for rate in rates)]
    return cells + [f"{results['auto', SIZES[size]]['time'] * 1e6:.1f} us" for size in ("1K", "1M", "16M")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("collective")
    parser.add_argument("--max-ranks", type=int, default=1024)
    options = parser.parse_args()
    print("| " + " | ".join(HEAD) + " |")
    print("|" + "---|" * len(HEAD))
    for path in sorted(MACHINES.glob("*.yaml")):
        cells = row(options.command, path, options.collective, options.max_ranks)
        if cells:
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
