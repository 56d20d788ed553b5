#!/usr/bin/env python3
"""Small all_reduces beside Open MPI: 8 B to 1 MiB, powers of two and between, alone on the machine and beside a process that computes.

Every round runs each engine once for each number of ranks and each company, at normal priority; what is compared is the
median over the rounds of the medians of a run, and of Open MPI the better of its settings. A run beside which other programs
computed is made again. Results are kept in FILE as they come, so what was stopped goes on where it was. Build with the preset
bench first.

  bench/engine/small_messages.py build/bench FILE                    ten rounds, some 15 minutes on two cores
  bench/engine/small_messages.py build/bench FILE --at-most 200      for so many seconds; the next call goes on
  bench/engine/small_messages.py build/bench FILE --ranks 2 --beside niced --rounds 3 --sizes 1K,2K
  bench/engine/small_messages.py build/bench FILE --table            only prints what FILE has
"""
import argparse
import contextlib
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from run import Runner, format_size, format_time, parse_size

SIZES = "8,64,100,256,512,1K,1.5K,2K,3K,4K,6K,8K,12K,16K,24K,32K,64K,96K,256K,1M"
# What computes beside the ranks, on the core that the system gives it. All are of one session, since Linux may weigh
# sessions against each other before it looks at what is nice within them.
COMPANIES = {"idle": None, "niced": ["nice", "-n", "19"], "ordinary": []}
BUSY_LOOP = ["sh", "-c", "while :; do :; done"]
PEERS, OURS = ["vader", "ucx"], ["registered", "private"]
HOLE = 1.1  # A size is a hole when it takes that much longer than a larger one.
OUTLIER = 3  # A run is an outlier when it takes that many times the median of the runs.
OTHERS_SHARE = 0.1  # Other programs may take that part of a core before and after a run,
LOOK_SECONDS = 0.2  # in so long a look.


@contextlib.contextmanager
def company(name):
    if COMPANIES[name] is None:
        yield
        return
    process = subprocess.Popen([*COMPANIES[name], *BUSY_LOOP])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def busy_seconds():
    """Of all cores and all programs."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def is_quiet():
    """Whether nothing computes on the machine just now."""
    begin = busy_seconds()
    time.sleep(LOOK_SECONDS)
    return busy_seconds() - begin <= OTHERS_SHARE * LOOK_SECONDS


def run_once(arguments, number, beside, ranks, variant):
    runner = Runner(arguments.build, arguments)
    runner.round = number
    with company(beside):
        runner.run("openmpi" if variant in PEERS else "espalier", variant, ranks, [("all_reduce", size) for size in arguments.sizes])
    return runner


def load(path):
    return json.loads(path.read_text()) if path.exists() else {"cores": os.cpu_count(), "results": [], "notes": []}


def save(path, document):
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(document, indent=0) + "\n")
    fresh.replace(path)


def measure(arguments, document):
    """Runs what is missing, until the time is up. False: something is left."""
    begin = time.monotonic()
    done = {(one["round"], one["beside"], one["ranks"], one["variant"]) for one in document["results"]}
    turns = [turn for turn in itertools.product(range(arguments.rounds), arguments.beside, arguments.ranks, arguments.variants)
             if turn not in done]
    was_quiet = is_quiet()
    for turn in turns:
        runner = None
        while runner is None or not was_quiet:
            if time.monotonic() - begin > arguments.at_most:
                return False
            began_quiet = was_quiet or is_quiet()
            runner = run_once(arguments, *turn) if began_quiet else None
            was_quiet = is_quiet()
        document["results"] += [dict(result, beside=turn[1]) for result in runner.results]
        document["notes"] += runner.remarks
        save(arguments.file, document)
    return True


def medians(results):
    """The medians of the runs of each cell: {(beside, ranks): {variant: {size: [us, ...]}}}."""
    tables = {}
    for one in results:
        rows = tables.setdefault((one["beside"], one["ranks"]), {}).setdefault(one["variant"], {})
        rows.setdefault(one["bytes"], []).append(one["median_us"])
    return tables


def best_peer(table, size):
    return min((statistics.median(table[peer][size]) for peer in PEERS if size in table.get(peer, {})), default=None)


def find_holes(times):
    """Sizes that take longer than a larger one. times: {size: us}."""
    sizes = sorted(times)
    return [size for i, size in enumerate(sizes) if any(times[size] > HOLE * times[larger] for larger in sizes[i + 1:])]


def examine(tables):
    """What is counted of each company, number of ranks and memory."""
    for (beside, ranks), table in tables.items():
        for variant in OURS:
            runs = table.get(variant, {})
            times = {size: statistics.median(values) for size, values in runs.items()}
            peers = {size: best_peer(table, size) for size in times}
            yield {"beside": beside, "ranks": ranks, "variant": variant, "cells": len(times),
                   "behind": [size for size in times if peers[size] is not None and times[size] > peers[size]],
                   "outliers": [size for size, values in runs.items() if max(values) > OUTLIER * times[size]],
                   "holes": find_holes(times)}


def format_row(table, size):
    """Open MPI's median and ours, which are bold where they are above it."""
    peer = best_peer(table, size)
    line = [format_time(peer) if peer is not None else "-"]
    for variant in OURS:
        values = table.get(variant, {}).get(size)
        median = statistics.median(values) if values else None
        mark = "**" if median is not None and peer is not None and median > peer else ""
        line.append(f"{mark}{format_time(median)}{mark}" if median is not None else "-")
    return line


def print_tables(document):
    tables = medians(document["results"])
    for ranks in sorted({ranks for _, ranks in tables}):
        columns = {beside: tables[beside, ranks] for beside in COMPANIES if (beside, ranks) in tables}
        counts = {len(values) for table in columns.values() for rows in table.values() for values in rows.values()}
        print(f"\n{ranks} ranks, runs of which it is the median: {' to '.join(str(count) for count in sorted({min(counts), max(counts)}))}\n")
        print("| size | " + " | ".join(f"{beside}: Open MPI | {' | '.join(OURS)}" for beside in columns) + " |")
        print("|---|" + "---|---|---|" * len(columns))
        for size in sorted({size for table in columns.values() for rows in table.values() for size in rows}):
            fields = [field for table in columns.values() for field in format_row(table, size)]
            print(f"| {format_size(size)} | " + " | ".join(fields) + " |")
    print("\n| beside | ranks | memory | cells | slower than Open MPI | with a run over 3 times its median | that take over 1.1 times "
          "a larger size's time |\n|---|---|---|---|---|---|---|")
    for row in examine(tables):
        lists = [f"{len(row[key])}: {', '.join(map(format_size, row[key]))}".removesuffix(": ")
                 for key in ("behind", "outliers", "holes")]
        print(f"| {row['beside']} | {row['ranks']} | {row['variant']} | {row['cells']} | " + " | ".join(lists) + " |")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the build folder of preset bench")
    parser.add_argument("file", type=pathlib.Path, help="where the results are kept, as JSON")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--ranks", default="2,3,4")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--beside", default=",".join(COMPANIES), help="idle, niced, ordinary: what else computes")
    parser.add_argument("--variants", default=",".join(PEERS + OURS))
    parser.add_argument("--at-most", type=float, default=float("inf"), metavar="SECONDS", help="begin nothing after that")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    for name in ("beside", "variants"):
        setattr(arguments, name, getattr(arguments, name).split(","))
    arguments.ranks = [int(text) for text in arguments.ranks.split(",")]
    arguments.sizes = [parse_size(text) for text in arguments.sizes.split(",")]
    arguments.effort, arguments.seconds, arguments.realtime = 1, 0.03, False
    return arguments


def main():
    arguments = parse_arguments()
    document = load(arguments.file)
    is_complete = arguments.table or measure(arguments, document)
    if is_complete:
        print_tables(document)
    else:
        print("not complete: call again to go on", file=sys.stderr)
    for note in dict.fromkeys(document["notes"]):
        print(f"note: {note}")
    return 1 if any(one["wrong"] for one in document["results"]) else 0


if __name__ == "__main__":
    sys.exit(main())
