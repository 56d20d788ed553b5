#!/usr/bin/env python3
"""`espalier topo detect` with a management library of NVIDIA's that is faked: its GPUs and NVLinks, the files that --record
keeps, and what is said where the library does not work.

Usage: detect_gpus_test.py ESPALIER FOLDER_OF_FAKE_LIBRARY
"""
import os
import pathlib
import subprocess
import sys
import tempfile


def main():
    espalier, fake = sys.argv[1:]
    failures = []

    def check(holds, what, done):
        if not holds:
            failures.append(f"{what}: exit {done.returncode}\n{done.stdout}{done.stderr}")

    def run(*words, **settings):
        environment = {**os.environ, "LD_LIBRARY_PATH": fake, **settings}
        return subprocess.run([espalier, "topo", *words], capture_output=True, text=True, env=environment, timeout=60)

    with tempfile.TemporaryDirectory() as folder:
        recorded = pathlib.Path(folder) / "box.sysfs"
        done = run("detect", "--record", str(recorded))
        links = [line for line in done.stdout.splitlines() if "nvswitch" in line]
        check(done.returncode == 0 and "gpu1" in done.stdout and len(links) >= 2, "GPUs on NVSwitches", done)
        check("bandwidth: 450 GB/s" in done.stdout, "the payload of a link", done)
        lines = pathlib.Path(f"{recorded}.nvml").read_text().splitlines()
        check(lines[0] == "nvml 1" and sum(line.startswith("nvlink ") for line in lines) == 36, "what is kept", done)
        again = run("import", f"{recorded}.nvml", "--name", "detected")
        check(again.returncode == 0 and "nvswitch" in again.stdout, "the kept file, read elsewhere", again)
        shown = run("detect", "-o", str(pathlib.Path(folder) / "box.yaml"), FAKE_NVML="direct")
        check("has 2 NVLinks to gpu3, which has 1 back" in shown.stderr, "a link with one end", shown)
        bound = subprocess.run([espalier, "bound", str(pathlib.Path(folder) / "box.yaml"), "all_reduce"], capture_output=True,
                               text=True, timeout=60)
        check(bound.returncode == 0, "the written topology", bound)
        for machine in ("broken", "none"):
            done = run("detect", FAKE_NVML=machine)
            check("nvswitch" not in done.stdout, f"the library of a machine that is {machine}", done)
        done = run("detect", "--record", "-")
        check(done.returncode != 0 and "name a file" in done.stderr, "two records to one stream", done)
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


sys.exit(main())
