#!/usr/bin/env python3
"""all_to_all with counts per peer between two boxes, by Espalier and Open MPI in the same network.

    counts_over_boxes.py PYTHON_FOLDER [--rates FAST,SLOW] [--matrix LAW] [--sizes MIB,...] [--rounds N]

Builds network namespaces h0 to h7: four ranks to a box, FAST Mbit/s from each to the others of its box, SLOW across (20
for 160 without --rates). Each rank has one address; packets to ranks of its box go over the fast cables. Then, in turn, ranks of
Espalier with a topology (planned), without one (direct) and of Open MPI's MPI_Alltoallv over TCP, medians of 3 calls each
after one that does not count; and the bound. Needs root, iproute2, the kernel's veth, bridge and tbf, mpicc and mpirun; takes away
what it made.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

RANKS, IN_BOX = 8, 4
WITH_HEADERS = 1000 * 1514 / 1448  # kbit on the cable for each Mbit of data: Ethernet's, IP's and TCP's headers.
MPI_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  int rank, ranks, sent[64], at[64], received[64], from[64], sums[2] = {0, 0};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int peer = 0; peer < ranks; ++peer) {
    sent[peer] = atoi(argv[1 + rank * ranks + peer]), received[peer] = atoi(argv[1 + peer * ranks + rank]);
    at[peer] = sums[0], from[peer] = sums[1];
    sums[0] += sent[peer], sums[1] += received[peer];
  }
  char* out = calloc(sums[0] + 1, 1), *in = calloc(sums[1] + 1, 1);
  for (int i = 0; i < 4; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    MPI_Alltoallv(out, sent, at, MPI_BYTE, in, received, from, MPI_BYTE, MPI_COMM_WORLD);
    double took = MPI_Wtime() - begun, longest;
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0 && i > 0) printf("took %.9f\n", longest);
  }
  MPI_Finalize();
}
"""
RANK_PROGRAM = r"""
import sys, time
import numpy, espalier
matrix = numpy.array([int(word) for word in sys.argv[2:]]).reshape(8, 8)
machine = espalier.Topology.load(sys.argv[1]) if sys.argv[1] != "-" else None
with espalier.Communicator(topology=machine, transport="tcp") as ranks:
    sent, received = matrix[ranks.rank], matrix[:, ranks.rank]
    out = numpy.arange(sent.sum(), dtype=numpy.uint8) + ranks.rank
    into = numpy.empty(received.sum(), numpy.uint8)
    for i in range(4):
        ranks.barrier()
        begun = time.perf_counter()
        ranks.all_to_all(out, into, send_counts=sent, receive_counts=received)
        took = numpy.array([time.perf_counter() - begun])
        ranks.all_reduce(took, op="max")
        if ranks.rank == 0 and i > 0:
            print("took %.9f" % took[0], flush=True)
"""


def sh(command, **how):
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True, **how).stdout


class Network:
    """Namespaces h0 to h7 around three bridges of a namespace of their own."""

    def __init__(self, fast, slow):
        self.names = [f"h{rank}" for rank in range(RANKS)]
        self.fast, self.slow = fast, slow

    def __enter__(self):
        if set(sh("ip netns list").split()) & {*self.names, "hswitch"}:
            sys.exit("there are namespaces h0 to h7 or hswitch already; take them away or look whose they are")
        sh("ip netns add hswitch")
        for bridge in ("box0", "box1", "rail"):
            sh(f"ip -n hswitch link add {bridge} type bridge && ip -n hswitch link set {bridge} up")
        for rank, name in enumerate(self.names):
            sh(f"ip netns add {name} && ip -n {name} link set lo up")
            box = f"box{rank // IN_BOX}"
            for device, bridge, rate in (("fast", box, self.fast), ("slow", "rail", self.slow)):
                far = f"{device[0]}{rank}"
                sh(f"ip -n {name} link add {device} type veth peer name {far} netns hswitch")
                sh(f"ip -n hswitch link set {far} master {bridge} up && ip -n {name} link set {device} up")
                shape = f"root tbf rate {rate * WITH_HEADERS:.0f}kbit burst 40kb limit 64mb"
                sh(f"tc -n {name} qdisc add dev {device} {shape} && tc -n hswitch qdisc add dev {far} {shape}")
            sh(f"ip -n {name} address add 10.77.0.{rank + 1}/24 dev slow")
        for rank, name in enumerate(self.names):
            for peer in range(RANKS):
                if peer != rank and peer // IN_BOX == rank // IN_BOX:
                    sh(f"ip -n {name} route add 10.77.0.{peer + 1}/32 dev fast src 10.77.0.{rank + 1}")
            folder = pathlib.Path("/etc/netns") / name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"10.77.0.{i + 1} h{i}\n" for i in range(RANKS)))
        return self

    def __exit__(self, *_):
        for name in (*self.names, "hswitch"):
            subprocess.run(["ip", "netns", "delete", name], check=False)
        for name in self.names:
            (pathlib.Path("/etc/netns") / name / "hosts").unlink()
            (pathlib.Path("/etc/netns") / name).rmdir()


def seconds_of(text):
    return statistics.median(float(line.split()[1]) for line in text.splitlines() if line.startswith("took "))


def run_espalier(python_folder, topology, matrix):
    numbers = [str(number) for row in matrix for number in row]
    processes = []
    for rank in range(RANKS):
        environment = {**os.environ, "PYTHONPATH": str(python_folder), "ESPALIER_RANK": str(rank), "ESPALIER_WORLD": str(RANKS),
                       "ESPALIER_RENDEZVOUS": "10.77.0.1:29876", "ESPALIER_SECRET": "of this benchmark alone"}
        command = ["ip", "netns", "exec", f"h{rank}", "unshare", "--uts", "sh", "-c", f"hostname h{rank}; exec \"$@\"", "sh", sys.executable,
                   "-c", RANK_PROGRAM, topology, *numbers]
        processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    if any(process.returncode for process in processes):
        sys.exit("a rank of Espalier failed")
    return seconds_of("".join(outputs))


def run_mpi(folder, matrix):
    numbers = [str(number) for row in matrix for number in row]
    agent = folder / "agent"
    agent.write_text("#!/bin/sh\nhost=$1; shift\nexec ip netns exec $host unshare --uts sh -c \"hostname $host; $*\"\n")
    agent.chmod(0o755)
    command = ["ip", "netns", "exec", "h0", "unshare", "--uts", "sh", "-c", "hostname h0; exec \"$@\"", "sh", "mpirun", "--allow-run-as-root",
               "--mca", "plm_rsh_agent", str(agent), "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include",
               "10.77.0.0/24", "--mca", "oob_tcp_if_include", "10.77.0.0/24", "--mca", "plm_rsh_no_tree_spawn", "1", "--bind-to", "none",
               "--oversubscribe", "--host", ",".join(f"h{rank}:1" for rank in range(RANKS)), str(folder / "alltoallv"), *numbers]
    return seconds_of(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout)


def scaled_matrix(espalier, topology, law, size):
    """Bytes by `law`, of which the busiest rank sends or receives `size`."""
    plan = espalier.plan(topology, "all_to_all", algorithm="flat", matrix=law)
    matrix = [[int(number) for number in row] for row in plan.matrix]
    most = max(max(map(sum, matrix)), max(map(sum, zip(*matrix))))
    return [[number * size // most for number in row] for row in matrix]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python_folder", type=pathlib.Path)
    parser.add_argument("--rates", default="160,20")
    parser.add_argument("--matrix", default="zipf:0.7,seed=1")
    parser.add_argument("--sizes", default="4,16")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    sys.path.insert(0, str(options.python_folder))
    import espalier
    fast, slow = map(int, options.rates.split(","))
    with tempfile.TemporaryDirectory() as made, Network(fast, slow):
        folder = pathlib.Path(made)
        (folder / "alltoallv.c").write_text(MPI_PROGRAM)
        subprocess.run(["mpicc", "-O2", "-o", str(folder / "alltoallv"), str(folder / "alltoallv.c")], check=True)
        topology = folder / "boxes.yaml"
        topology.write_text(f"""espalier: 1
name: two-boxes
nodes: [{{id: rail, kind: switch}}]
groups:
  - id: "box[0-1]"
    host: true
    nodes: [{{id: "cpu[0-3]", kind: cpu}}, {{id: sw, kind: switch}}]
    links:
      - {{all: ["cpu[0-3]", sw], class: fast, bandwidth: {fast} Mbit/s, latency: 50 us}}
links:
  - {{all: ["box[0-1].cpu[0-3]", rail], class: slow, bandwidth: {slow} Mbit/s, latency: 50 us}}
""")
        machine = espalier.Topology.load(str(topology))
        print("| size | bound | planned | direct | Open MPI | Open MPI over planned | planned over bound |\n|" + "---|" * 7)
        for mib in options.sizes.split(","):
            size = int(float(mib) * 2**20)
            matrix = scaled_matrix(espalier, machine, options.matrix, size)
            bound = float(espalier.bound(machine, "all_to_all", matrix=matrix).time_per_byte) * size
            runs = {"planned": [], "direct": [], "mpi": []}
            for _ in range(options.rounds):
                runs["planned"].append(run_espalier(options.python_folder, str(topology), matrix))
                runs["direct"].append(run_espalier(options.python_folder, "-", matrix))
                runs["mpi"].append(run_mpi(folder, matrix))
            planned, direct, mpi = (statistics.median(runs[name]) for name in ("planned", "direct", "mpi"))
            print(f"| {mib} MiB | {bound * 1e3:.0f} ms | {planned * 1e3:.0f} ms | {direct * 1e3:.0f} ms | {mpi * 1e3:.0f} ms | "
                  f"{mpi / planned:.2f} | {planned / bound:.2f} |", flush=True)


if __name__ == "__main__":
    main()
