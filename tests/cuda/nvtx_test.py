#!/usr/bin/env python3
"""The ranges that a tool of NVIDIA's sees of a run: one for each call of each rank.

Usage: nvtx_test.py ESPALIER LISTENER. Exits 3 where there is no NVTX.
"""
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    espalier, listener = sys.argv[1:]
    if not listener:
        print("skipped: built without NVTX")
        return 3
    with tempfile.TemporaryDirectory() as folder:
        ranges = pathlib.Path(folder) / "ranges"
        environment = {**os.environ, "NVTX_INJECTION64_PATH": listener, "NVTX_LISTENER_FILE": str(ranges)}
        done = subprocess.run([espalier, "run", "one-host", "all_gather", "-p", "ranks=3", "-s", "12K", "-n", "4", "-w", "1"],
                              capture_output=True, text=True, env=environment, timeout=100)
        lines = ranges.read_text().splitlines() if ranges.exists() else []
    calls = [line for line in lines if "all_gather of 3072 float" in line]
    # A warm-up, four iterations and the check, out of place and in place, on three ranks.
    if done.returncode == 0 and len(calls) == 3 * 2 * 6 and all(line.startswith("espalier: call ") for line in lines):
        print(f"{len(lines)} ranges, such as '{calls[0]}'")
        return 0
    print(f"exit {done.returncode}, {len(calls)} calls\n{done.stdout}{done.stderr}" + "\n".join(lines[:20]))
    return 1


sys.exit(main())
