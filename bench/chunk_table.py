#!/usr/bin/env python3
"""The chosen chunk and rounds against the best of seven fixed chunks, on random networks and those of tests/data.

    bench/chunk_table.py build/release/espalier RESULTS [RANDOM_NETWORKS] [SIZE]

Random networks of 6 to 12 ranks and up to 4 switches (`topo gen random`), then the networks of tests/data of up to 128 ranks: all_reduce by
packing at SIZE (128M), chosen and with chunks from 8 KiB to 32 MiB. Appends a line of JSON per network to RESULTS and does not run again
what stands there; ends with how many lose more than 1 %, 2 % and 5 % to the best.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import bound_table

MOST_RANKS = 128
CHUNKS = ["8K", "32K", "128K", "512K", "2M", "8M", "32M"]


def simulate(command, path, size, *more):
    words = [command, "simulate", path, "all_reduce", "-a", "packing", "-s", size, "--profile", "ideal", "--json", *more]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["results"][0] if done.returncode == 0 else None


def networks(command, count, folder):
    for seed in range(count):
        path = f"{folder}/random-{seed}.yaml"
        words = ["--ranks", str(6 + seed % 7), "--switches", str(seed % 5), "--extra", str(8 + seed % 13), "--seed", str(seed)]
        subprocess.run([command, "topo", "gen", "random", *words, "-o", path], check=True, capture_output=True)
        yield f"random-{seed}", path
    cases = json.loads((bound_table.ROOT / "tests/data/planner_cases.json").read_text())["cases"]
    for case in cases:
        if case["optimum"] and case["ranks"] <= MOST_RANKS:
            path = f"{folder}/{case['name']}.yaml"
            pathlib.Path(path).write_text(bound_table.case_yaml(case))
            yield case["name"], path


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    command, results = sys.argv[1], pathlib.Path(sys.argv[2])
    count, size = int(sys.argv[3]) if len(sys.argv) > 3 else 200, sys.argv[4] if len(sys.argv) > 4 else "128M"
    rows = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    known = {row["name"] for row in rows}
    with tempfile.TemporaryDirectory() as folder:
        for name, path in networks(command, count, folder):
            if name in known:
                continue
            chosen = simulate(command, path, size)
            fixed = {chunk: simulate(command, path, size, "--chunk", chunk, "--ahead", "0") for chunk in CHUNKS}
            if chosen is None or None in fixed.values():
                continue
            best = min(fixed, key=lambda chunk: fixed[chunk]["time"])
            rows.append(
                {"name": name, "chosen": chosen["time"], "chunk": chosen["chunk"], "ahead": chosen["ahead"],
                 "of_bound": chosen["of_bound"], "best": fixed[best]["time"], "best_chunk": best}
            )
            with results.open("a") as out:
                out.write(json.dumps(rows[-1]) + "\n")
    losses = sorted((row["chosen"] / row["best"], row["name"]) for row in rows)
    print(f"{len(rows)} networks; over 1 %: {sum(l > 1.01 for l, _ in losses)}, 2 %: {sum(l > 1.02 for l, _ in losses)}, "
          f"5 %: {sum(l > 1.05 for l, _ in losses)}; most: {losses[-1]}")


if __name__ == "__main__":
    main()
