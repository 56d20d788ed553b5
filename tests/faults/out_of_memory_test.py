#!/usr/bin/env python3
"""Memory that runs out ends the command, and every rank that it starts, with a word: out_of_memory_test.py ESPALIER

The command itself runs, as it is shipped and with the allocator that it is linked with, in less and less address space:
whatever it is doing where none is left, it says so and ends with the code of a failure, never by a signal.
"""
import resource
import subprocess
import sys

ESPALIER = sys.argv[1]
# Each with limits that it does not fit in, and with such as it does; below 80 MB the libraries' own start does not fit.
COMMANDS = [
    (["simulate", "dgx-h100-x128", "all_reduce", "-a", "auto", "-s", "1M"], [120, 200, 400]),
    (["simulate", "dgx-h100-x4", "all_reduce", "-a", "auto", "-s", "1M", "--profile", "ideal"], [80, 100, 140]),
    (["topo", "show", "dgx-h100-x128"], [80, 100]),
    (["run", "one-host", "all_reduce", "-p", "ranks=2", "-s", "64M", "-n", "1", "-w", "0", "--transport", "tcp"], [100, 180, 300]),
]


def run(arguments, megabytes):
    limit = megabytes << 20
    return subprocess.run([ESPALIER, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))


def main():
    problems, spoke = [], 0
    for arguments, limits in COMMANDS:
        shown = " ".join(arguments)
        for megabytes in limits:
            done = run(arguments, megabytes)
            # Below this the loader itself finds no room for the libraries.
            if done.returncode == 127 and "shared librar" in done.stderr:
                continue
            if done.returncode == 0:
                break
            spoke += "out of memory" in done.stderr
            if done.returncode not in (1, 3):
                problems.append(f"{shown} in {megabytes} MB ends with {done.returncode}: {done.stderr.strip()[-300:]}")
            elif not done.stderr.strip():
                problems.append(f"{shown} in {megabytes} MB fails without a word")
            if "terminate called" in done.stderr or "internal error" in done.stderr:
                problems.append(f"{shown} in {megabytes} MB: {done.stderr.strip()[-300:]}")
    print("\n".join(problems))
    print(f"{len(problems)} problems, {spoke} times out of memory")
    return 1 if problems or spoke == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
