#!/usr/bin/env python3
"""Ranks of two machines whose /etc/hosts is Debian's, with "127.0.1.1 NAME", meet and reach each other.

Machines are network namespaces of their own, joined by a cable: 0 and 1 here, the others there. Both have an address alike on
another interface, as bridges of containers are, which leads to oneself. two_machines_test.py ESPALIER; exit 3: not possible here.
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE, THERE = "10.99.0.1", "10.99.0.2"


def command(*words, **options):
    return subprocess.run(words, check=True, capture_output=True, text=True, **options)


def start(espalier, rank, world, port, within, folder):
    """A rank on the machine whose names are those of `within`."""
    name = "here" if within is None else "there"
    run = [espalier, "run", "one-host", "all_reduce", "-p", f"ranks={world}", "--rank", str(rank), "--world", str(world),
           "--rendezvous", f"debian:{port}", "-s", "64K", "-n", "2", "-w", "1", "--timeout", "30"]
    inside = f"mount --bind {folder}/hosts.{name} /etc/hosts && exec {shlex.join(run)}"
    enter = [] if within is None else ["nsenter", "--net", "--target", str(within)]
    return subprocess.Popen([*enter, "unshare", "--mount", "sh", "-c", inside], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env={**os.environ, "ESPALIER_SECRET": "of this test alone"})


def joined_by_a_cable(other):
    command("ip", "link", "add", "name", "cable", "type", "veth", "peer", "name", "cable", "netns", str(other))
    for enter, address in (([], HERE), (["nsenter", "--net", "--target", str(other)], THERE)):
        for line in ("ip link set lo up", f"ip addr add {address}/24 dev cable", "ip link set cable up",
                     "ip link add name bridge type veth peer name beside", "ip link set beside up", "ip addr add 10.1.0.1/24 dev bridge", "ip link set bridge up"):
            command(*enter, *line.split())


def main():
    espalier = os.path.abspath(sys.argv[1])
    if sys.argv[2:] != ["inside"]:
        apart = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        tools = all(shutil.which(tool) for tool in ("unshare", "nsenter", "ip"))
        trial = [*apart, "ip", "link", "add", "name", "one", "type", "veth", "peer", "name", "other"]
        if not tools or subprocess.run(trial, capture_output=True).returncode:
            print("skipped: this takes the right to make network namespaces and cables")
            return 3
        return subprocess.run([*apart, sys.executable, __file__, espalier, "inside"]).returncode
    failures = []
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(["unshare", "--net", "sleep", "600"]) as other:
        while os.readlink(f"/proc/{other.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        joined_by_a_cable(other.pid)
        for name, address in (("here", "127.0.1.1"), ("there", HERE)):
            with open(f"{folder}/hosts.{name}", "w") as hosts:
                hosts.write(f"127.0.0.1 localhost\n{address} debian\n")
        port = 29700
        for world in (3, 4):
            for order in (range(world), reversed(range(world))):
                port += 1
                ranks = {}
                for rank in order:
                    ranks[rank] = start(espalier, rank, world, port, None if rank < 2 else other.pid, folder)
                    time.sleep(0.3)
                said = {rank: (process.communicate(timeout=90), process.returncode) for rank, process in ranks.items()}
                for rank, ((output, errors), code) in said.items():
                    if code != 0:
                        failures.append(f"rank {rank} of {world}: exit {code}\n{output}{errors}")
                (output, errors), _ = said[0]
                if "# Out of bounds values : 0 OK" not in output:
                    failures.append(f"wrong or no results\n{output}{errors}")
                if f"rank 0 listens on port {port} of all addresses" not in errors:
                    failures.append(f"it does not say where it listens\n{errors}")
        other.kill()
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
