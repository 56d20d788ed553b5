#!/usr/bin/env python3
"""How often `espalier compare` points at the rank that is slow: real runs over shared memory or TCP, one rank of which is

    stopped   three quarters of the time, in turns much shorter than an iteration
    late      once in an iteration, for twice as long as one takes without stops
    niced     nice 19, while a program computes on every core
    pinned    to a core on which two programs compute

    tests/accuracy/slow_ranks.py ESPALIER [--trials N] [--seed S] [--transport shm|tcp] [--kinds NAMES] [--at-least N]

The timeline is that of the median iteration (run --trace); A is the simulation. Exit 1 when fewer than --at-least are named.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

# How long a rank is stopped and let go on, in iterations of ranks that are not; None where it is never stopped.
KINDS = {"stopped": (0.3, 0.1), "late": (2.0, 0.5), "niced": None, "pinned": None}
MIN_TURN = 0.002  # Seconds; shorter ones are not kept to.
COMPUTE = ["python3", "-c", "while True: pass"]
PATIENCE = 120  # Seconds for a run.


def spinners(kind, cores):
    """Programs that compute beside the ranks."""
    places = {"niced": cores, "pinned": cores[:1] * 2}.get(kind, [])
    return [subprocess.Popen(["taskset", "-c", str(core), *COMPUTE]) for core in places]


def iteration_time(run, folder):
    """Seconds that an iteration takes where no rank is slow."""
    done = subprocess.run([*run, "--json"], check=True, capture_output=True, text=True, cwd=folder)
    return json.loads(done.stdout)["results"][0]["time"]


def run_ranks(arguments, folder, count, victim, kind, generator, cores, iteration):
    """Runs all ranks, one of them slow; whether all ended well."""
    job = {**os.environ, "ESPALIER_SECRET": "%032x" % generator.getrandbits(128)}
    port = generator.randint(20000, 29000)
    before = {"niced": ["nice", "-n", "19"], "pinned": ["taskset", "-c", str(cores[0])]}.get(kind, [])
    beside = spinners(kind, cores)
    ranks = []
    try:
        for rank in range(count):
            launch = ["--rank", str(rank), "--world", str(count), "--rendezvous", f"127.0.0.1:{port}"]
            prefix = before if rank == victim else []
            ranks.append(subprocess.Popen([*prefix, *arguments, *launch], env=job, stdout=subprocess.DEVNULL, cwd=folder))
        end = time.monotonic() + PATIENCE
        while all(rank.poll() is None for rank in ranks) and time.monotonic() < end:
            stop(ranks[victim], KINDS[kind], iteration)
        return all(rank.wait(PATIENCE) == 0 for rank in ranks)
    finally:
        for process in ranks + beside:
            process.kill()
            process.wait()


def stop(process, turns, iteration):
    """Stops a process for a while and lets it go on for a while."""
    if turns is None:
        time.sleep(0.05)
        return
    process.send_signal(signal.SIGSTOP)
    time.sleep(max(turns[0] * iteration, MIN_TURN))
    process.send_signal(signal.SIGCONT)
    time.sleep(max(turns[1] * iteration, MIN_TURN))


def trial(espalier, folder, number, options):
    """Of one run: (kind, ranks, victim, who was named)."""
    generator = random.Random(1000 * options.seed + number)
    kind = options.kinds[number % len(options.kinds)]
    count = generator.choice([2, 3, 4, 6, 8])
    victim = generator.randrange(count)
    case = ["one-host", "all_reduce", "-p", f"ranks={count}", "-a", "ring", "-s", options.size, "--chunk", "128K"]
    simulated, measured = folder / "simulated.json", folder / "measured.json"
    subprocess.run([espalier, "-q", "simulate", *case, "--trace", simulated], check=True, stdout=subprocess.DEVNULL)
    cores = sorted(os.sched_getaffinity(0))
    run = [espalier, "-q", "run", *case, "-n", "5", "-w", "1", "-c", "0", "--transport", options.transport]
    iteration = iteration_time(run, folder)
    if not run_ranks([*run, "--trace", measured], folder, count, victim, kind, generator, cores, iteration):
        sys.exit(f"the run of trial {number} failed")
    compared = subprocess.run([espalier, "--json", "compare", simulated, measured], check=True, capture_output=True, text=True)
    return kind, count, victim, json.loads(compared.stdout).get("culprit")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("espalier")
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", default="32M")
    parser.add_argument("--transport", default="shm")
    parser.add_argument("--kinds", type=lambda names: names.split(","), default=list(KINDS))
    parser.add_argument("--at-least", type=int, default=0)
    options = parser.parse_args()
    espalier = str(pathlib.Path(options.espalier).resolve())
    right, all_of = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        for number in range(options.trials):
            kind, count, victim, named = trial(espalier, pathlib.Path(name), number, options)
            is_right = named == f"rank{victim}"
            right[kind] += is_right
            all_of[kind] += 1
            print(f"{kind:8} rank {victim} of {count}: {'named' if is_right else f'missed, {named} was named'}", flush=True)
    for kind in all_of:
        print(f"{kind:8} {right[kind]:3} of {all_of[kind]:3}")
    print(f"all      {sum(right.values()):3} of {sum(all_of.values()):3}")
    return 0 if sum(right.values()) >= options.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
