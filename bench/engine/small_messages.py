#!/usr/bin/env python3
"""Small all_reduces beside Open MPI: 8 B to 1 MiB, powers of two and between, alone on the machine and beside a process that computes.

Every round runs each engine once for each number of ranks and each company, all sizes in one start, at normal priority, engines
in turns. Compared are times of one round, with the machine in one state; of Open MPI, the better of its settings. What other
programs disturbed is made again. Results are kept in FILE as they come, so what was stopped goes on where it was. Build with the
preset bench first.

  bench/engine/small_messages.py build/bench FILE                    ten rounds, some nine minutes on two cores
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
import resource
import statistics
import subprocess
import sys
import time

from run import Runner, format_size, parse_size

SIZES = "8,64,100,256,512,1K,1.5K,2K,3K,4K,6K,8K,12K,16K,24K,32K,64K,96K,256K,1M"
# What computes beside the ranks, on the core that the system gives it. All are of one session, since Linux may weigh
# sessions against each other before it looks at what is nice within them.
COMPANIES = {"idle": None, "niced": ["nice", "-n", "19"], "ordinary": []}
BUSY_LOOP = ["sh", "-c", "while :; do :; done"]
PEERS, OURS = ["vader", "ucx"], ["registered", "private"]
TURNS = ["vader", "private", "ucx", "registered"]
TIE = 0.995  # Who is as fast, to what is shown of it, is not behind.
HOLE = 1.1  # A size is a hole when it takes that much longer than a larger one.
OUTLIER = 3  # A run is an outlier when it takes that many times the median of the runs.
TRIES = 3
OTHERS_SHARE = 0.1  # Other programs may take that part of a core during a run.
ALIKE = 1.5  # Rates from core to core of one state of the machine differ less.


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


def children_seconds():
    """Of all processes that this one started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_once(arguments, number, beside, ranks, variant):
    """A run of an engine; again where other programs computed, three times at most."""
    for _ in range(TRIES):
        runner = Runner(arguments.build, arguments)
        runner.round = number
        begin, others = time.monotonic(), busy_seconds() - children_seconds()
        with company(beside):
            runner.run("openmpi" if variant in PEERS else "espalier", variant, ranks, [("all_reduce", size) for size in arguments.sizes])
        others = busy_seconds() - children_seconds() - others
        if arguments.anyway or others <= OTHERS_SHARE * (time.monotonic() - begin):
            break
    for result in runner.results:
        result.update(beside=beside, cores=runner.cores[-1])
    return runner


def are_alike(look, other):
    """Whether data went from core to core at one rate: the cores of a virtual machine move."""
    rates = look["copy_gb_per_s"], other["copy_gb_per_s"]
    return max(rates) < ALIKE * min(rates)


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
    for turn in itertools.product(range(arguments.rounds), arguments.beside, arguments.ranks, arguments.variants):
        if turn in done:
            continue
        if time.monotonic() - begin > arguments.at_most:
            return False
        runner = run_once(arguments, *turn)
        document["results"] += runner.results
        document["notes"] += runner.remarks
        save(arguments.file, document)
    return True


def times_of(results):
    """The runs: {(beside, ranks): {variant: {size: {round: result}}}}."""
    tables = {}
    for one in results:
        rows = tables.setdefault((one["beside"], one["ranks"]), {}).setdefault(one["variant"], {})
        rows.setdefault(one["bytes"], {})[one["round"]] = one
    return tables


def median_of(runs):
    return statistics.median(run["median_us"] for run in runs.values())


def best_peer(table, size, like=None):
    """The run of Open MPI's better setting in each round; `like`: of those when the machine was in the state of these runs."""
    best = {}
    for number, run in itertools.chain.from_iterable(table.get(peer, {}).get(size, {}).items() for peer in PEERS):
        is_comparable = like is None or (number in like and are_alike(run["cores"], like[number]["cores"]))
        if is_comparable and (number not in best or run["median_us"] < best[number]["median_us"]):
            best[number] = run
    return best


def spread(runs):
    """The worst run over the median of those when the machine was in the same state."""
    return max(run["median_us"] / statistics.median(other["median_us"] for other in runs.values() if are_alike(run["cores"], other["cores"]))
               for run in runs.values())


def gain(table, variant, size):
    """How many times as fast as Open MPI: the median over the rounds that can be compared. None: there is none."""
    runs = table.get(variant, {}).get(size, {})
    ratios = [peer["median_us"] / runs[number]["median_us"] for number, peer in best_peer(table, size, runs).items()]
    return statistics.median(ratios) if ratios else None


def is_behind(table, variant, size):
    ratio = gain(table, variant, size)
    return ratio is not None and ratio < TIE


def find_holes(times):
    """Sizes that take longer than a larger one. times: {size: us}."""
    sizes = sorted(times)
    return [size for i, size in enumerate(sizes) if any(times[size] > HOLE * times[larger] for larger in sizes[i + 1:])]


def examine(table, variant):
    """What is counted of a company, number of ranks and memory."""
    runs = table.get(variant, {})
    return {"cells": len(runs), "behind": [size for size in runs if is_behind(table, variant, size)],
            "outliers": [size for size, rows in runs.items() if spread(rows) > OUTLIER],
            "holes": find_holes({size: median_of(rows) for size, rows in runs.items()})}


def format_cell(runs, ratio=None):
    """The median in microseconds, then how many times as fast as Open MPI and the worst run over the median; bold where behind."""
    if not runs:
        return "-"
    text = f"{median_of(runs):.3g} ({f'{ratio:.2f}; ' if ratio else ''}{spread(runs):.1f})"
    return f"**{text}**" if ratio is not None and ratio < TIE else text


def format_row(table, size):
    return [format_cell(best_peer(table, size)),
            *(format_cell(table.get(variant, {}).get(size), gain(table, variant, size)) for variant in OURS)]


def print_cores(results):
    rates = sorted(one["cores"]["copy_gb_per_s"] for one in results)
    if rates:
        print(f"Copying what the other core wrote: {rates[0]:.0f} to {rates[-1]:.0f} GB/s, median {statistics.median(rates):.0f}")


def print_tables(document):
    tables = times_of(document["results"])
    print_cores(document["results"])
    for ranks in sorted({ranks for _, ranks in tables}):
        columns = {beside: tables[beside, ranks] for beside in COMPANIES if (beside, ranks) in tables}
        counts = {len(runs) for table in columns.values() for rows in table.values() for runs in rows.values()}
        print(f"\n{ranks} ranks, {' to '.join(str(count) for count in sorted({min(counts), max(counts)}))} rounds\n")
        print("| size | " + " | ".join(f"{beside}: Open MPI | {' | '.join(OURS)}" for beside in columns) + " |")
        print("|---|" + "---|---|---|" * len(columns))
        for size in sorted({size for table in columns.values() for rows in table.values() for size in rows}):
            fields = [field for table in columns.values() for field in format_row(table, size)]
            print(f"| {format_size(size)} | " + " | ".join(fields) + " |")
    print_counts(tables)


def print_counts(tables):
    print(f"\n| beside | ranks | memory | cells | slower than Open MPI | with a run over {OUTLIER} times its median "
          f"| over {HOLE} times a larger size's time |\n|---|---|---|---|---|---|---|")
    for (beside, ranks), variant in itertools.product(tables, OURS):
        row = examine(tables[beside, ranks], variant)
        lists = [f"{len(row[key])}: {', '.join(map(format_size, sorted(row[key])))}".removesuffix(": ")
                 for key in ("behind", "outliers", "holes")]
        print(f"| {beside} | {ranks} | {variant} | {row['cells']} | " + " | ".join(lists) + " |")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the build folder of preset bench")
    parser.add_argument("file", type=pathlib.Path, help="where the results are kept, as JSON")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--ranks", default="2,3,4")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--beside", default=",".join(COMPANIES), help="idle, niced, ordinary: what else computes")
    parser.add_argument("--variants", default=",".join(TURNS))
    parser.add_argument("--at-most", type=float, default=float("inf"), metavar="SECONDS", help="begin nothing after that")
    parser.add_argument("--anyway", action="store_true", help="also while other programs compute")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    for name in ("beside", "variants"):
        setattr(arguments, name, getattr(arguments, name).split(","))
    arguments.ranks = [int(text) for text in arguments.ranks.split(",")]
    arguments.sizes = [parse_size(text) for text in arguments.sizes.split(",")]
    arguments.effort, arguments.seconds, arguments.warm_up, arguments.realtime = 4, 0.03, 0.01, False
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
