"""The example that scripts/demo shows gives what the command gives, column by column.

    which_is_best_test.py WHICH_IS_BEST ESPALIER MACHINE.yaml COLLECTIVE
"""
import json
import subprocess
import sys

example, command, machine, collective = sys.argv[1:]
shown = subprocess.run([example, machine, collective], capture_output=True, text=True, check=True).stdout
rows = [line.split() for line in shown.splitlines() if not line.startswith("#")]
document = json.loads(subprocess.run(
    [command, "simulate", machine, collective, "-a", "ring,tree,packing", "-b", "1K", "-e", "1G", "-f", "4", "--profile", "ideal", "--json"],
    capture_output=True, text=True, check=True).stdout)
times = {(result["size"], result["algorithm"]): result["time"] for result in document["results"]}
assert len(rows) == 11, f"{len(rows)} sizes from 1 KiB to 1 GiB by 4 are shown"
for row in rows:
    size = int(row[0])
    for algorithm, time in zip(("ring", "tree", "packing"), row[1:6:2]):
        expected = 1e6 * times[size, algorithm]
        assert abs(float(time) - expected) <= 0.0051, f"{algorithm} at {size} B: {time} us, and {expected:.2f} by the command"
print(f"which_is_best: {3 * len(rows)} times are the command's")
