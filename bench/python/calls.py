#!/usr/bin/env python3
"""What a call costs from Python beside the same call from C++, in one run: turns of both, in the same processes.

    PYTHONPATH=build/bench/python:build/bench/bench/python bench/python/calls.py [--turns N] [--calls N] [--json FILE]

`simulate` of a ring of four ranks, which was simulated before, with the chunks told; `Communicator.all_reduce` of two ranks of this machine, in numpy's memory,
beside Communicator::all_reduce of a second job of the same two processes, in the same memory. Times are the median and the lower
quartile over all calls of all turns but the first of each; the difference is the median over turns of what the turn's medians differ by,
with the interval that holds the median of such turns with 95 % probability.
"""
import argparse
import json
import math
import os
import secrets
import socket
import statistics
import sys
import time

import cpp_calls
import numpy

import espalier

SIZES = {"4 B": 1, "64 KiB": 2**14, "1 MiB": 2**18}  # Of float.


def summary(turns_of_python, turns_of_cpp):
    """Of lists of seconds, one a turn each: microseconds."""
    def over(turns):
        everything = [seconds * 1e6 for turn in turns for seconds in turn]
        return {"median": statistics.median(everything), "quartile": statistics.quantiles(everything, n=4)[0]}

    differences = [(statistics.median(ours) - statistics.median(theirs)) * 1e6 for ours, theirs in zip(turns_of_python, turns_of_cpp)]
    differences.sort()
    reach = 0.98 * len(differences) ** 0.5  # 1.96 standard deviations of how many of n fall below their median.
    interval = [differences[max(math.floor(len(differences) / 2 - reach), 0)],
                differences[min(math.ceil(len(differences) / 2 + reach), len(differences) - 1)]]
    return {"python": over(turns_of_python), "cpp": over(turns_of_cpp), "difference": statistics.median(differences), "interval": interval}


def timed(calls, call):
    seconds = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return seconds


def measure_simulations(turns, calls):
    plan = espalier.plan(espalier.Topology.generate("ring", [4]), "all_reduce", algorithm="ring")
    run = espalier.simulate(plan, 2**20)
    in_cpp, results = cpp_calls.PlanSimulation(plan.to_json()), ([], [])
    for _ in range(turns):
        results[0].append(timed(calls, lambda: espalier.simulate(plan, 2**20, chunk=run.chunk, ahead=run.ahead))[1:])
        results[1].append(in_cpp.times(2**20, run.chunk, run.ahead, calls)[1:])
    return summary(*results)


def measure_calls(turns, calls, port, secret):
    """A rank: {(memory, size): summary}, of its own times."""
    ranks = espalier.Communicator()
    in_cpp = cpp_calls.Ranks(ranks.rank, ranks.size, port, secret)
    found = {}
    for name, count in SIZES.items():
        data = numpy.zeros(count, "f4")
        results = ([], [])
        for turn in range(turns + 1):
            ranks.barrier()
            ours = timed(calls, lambda: ranks.all_reduce(data))[1:]
            in_cpp.barrier()
            theirs = in_cpp.times(data, calls)[1:]
            if turn > 0:  # The first one warms up.
                results[0].append(ours)
                results[1].append(theirs)
        found[name] = summary(*results)
    in_cpp.barrier()
    ranks.barrier()
    del in_cpp
    ranks.close()
    return found


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--calls", type=int, default=21, help="calls of a turn; the first one does not count")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    rows = {"simulate, ring of 4, 1 MiB": measure_simulations(options.turns, options.calls)}
    of_ranks = espalier.run(measure_calls, 2, options.turns, options.calls, free_port(), secrets.token_hex(16))
    rows.update({f"all_reduce, 2 ranks, {name}": of_ranks[0][name] for name in SIZES})
    print(f"# {options.turns} turns of {options.calls - 1} calls; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; "
          "microseconds: median (lower quartile)")
    print(f"{'call':32}  {'Python':>16}  {'C++':>16}  {'difference (95 % interval)':>32}")
    for name, row in rows.items():
        shown = [f"{row[way]['median']:.1f} ({row[way]['quartile']:.1f})" for way in ("python", "cpp")]
        low, high = row["interval"]
        print(f"{name:32}  {shown[0]:>16}  {shown[1]:>16}  {row['difference']:12.1f} ({low:.1f} to {high:.1f})")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
