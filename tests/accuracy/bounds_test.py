#!/usr/bin/env python3
"""No prediction under a profile is faster than the bound, which knows nothing but nominal rates.

Usage: bounds_test.py ESPALIER CONFIGS [MOST_RANKS]

Every shipped machine of up to MOST_RANKS (32) ranks under its own profile, by `auto` and, where the profile says what NCCL would run, by
`nccl`, from 1 KiB to 1 GiB.
"""
import fractions
import json
import pathlib
import subprocess
import sys

COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all"]


def run(espalier, *words):
    done = subprocess.run([espalier, "--json", *words], capture_output=True, text=True, timeout=300)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr


def too_fast(document):
    """Rows below the bound; times are whole picoseconds."""
    per_byte = fractions.Fraction(document["bound"]["time_per_byte"])
    for row in document["results"]:
        if "time" not in row or row["time"] is None:
            continue
        bound = row["size"] * per_byte * 10**12
        if round(row["time"] * 10**12) < bound - 1:
            yield f"{document['topology']} {document['collective']} {row['size']} B by {row['algorithm']}: {row['time']} s, " \
                  f"the bound is {float(bound) / 1e12} s"


def main():
    espalier, configs = sys.argv[1], pathlib.Path(sys.argv[2])
    most = int(sys.argv[3]) if len(sys.argv) > 3 else 32
    machines = rows = 0
    problems = []
    for path in sorted(configs.glob("*.yaml")):
        shown = run(espalier, "topo", "show", str(path))
        if isinstance(shown, str):
            problems.append(f"{path.name}: {shown}")
            continue
        if shown["ranks"] > most:
            continue
        machines += 1
        algorithms = "nccl,auto" if "\nprofile:" in path.read_text() else "auto"
        for collective in COLLECTIVES:
            document = run(espalier, "simulate", str(path), collective, "-a", algorithms, "-b", "1K", "-e", "1G", "-f", "1024")
            if isinstance(document, str):
                problems.append(f"{path.name} {collective}: {document}")
                continue
            rows += len(document["results"])
            problems += too_fast(document)
    print("\n".join(problems))
    print(f"{machines} machines, {rows} predictions, {len(problems)} problems")
    return 1 if problems or rows < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
