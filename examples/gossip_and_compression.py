#!/usr/bin/env python3
"""Two ways to send less than an all_reduce of gradients, for real on ranks of this machine: gossip, and compressed gradients.

    gossip_and_compression.py                      4 ranks on a ring, 1 MiB
    gossip_and_compression.py --topology mesh --ranks 9
    gossip_and_compression.py --rank-of-factors 8

Gossip: x <- weights x, by messages between neighbours only (espalier.gossip). It prints the spectral gap and, round after round, the distance
to the mean, which has to fall as the gap says.

Compression, with what an all_reduce of the same gradient gives as the truth:
  int8      numbers of 8 bits and a scale: each rank adds up its part of all gradients and sends that on, rounded again; what was rounded
            away is added to the next gradient (error feedback). H. Tang et al., "1-bit Adam" (2021)
  low rank  the gradient as a matrix M is sent as P (rows x r) and Q (columns x r), by one power iteration from the last Q, with error feedback.
            T. Vogels et al., "PowerSGD" (2019)

Before anything is built, `espalier simulate --scenario` says what both would take on any network (docs/scenarios.md).

Needs the built package: PYTHONPATH=build/python/python.
"""
import argparse

import numpy

import espalier


def distance(ranks, x, mean):
    """Of all ranks' vectors to the mean, as one number."""
    own = numpy.array([float(numpy.square(x - mean).sum())])
    return float(numpy.sqrt(ranks.all_reduce(own)[0]))


def gossip_for_real(weights, elements, rounds):
    """[distance to the mean as a part of the first, by round] and the bytes that this rank sent."""
    with espalier.Communicator() as ranks:
        me = ranks.rank
        x = numpy.random.default_rng(me).standard_normal(elements)
        mean = ranks.all_reduce(x.copy(), op="avg")
        neighbours = [int(peer) for peer in numpy.flatnonzero(weights[me]) if peer != me]
        received = {peer: numpy.empty_like(x) for peer in neighbours}
        first, history, sent = distance(ranks, x, mean), [1.0], 0
        for _ in range(rounds):
            with ranks.group():
                for peer in neighbours:
                    ranks.send(x, peer)
                    ranks.receive(received[peer], peer)
            sent += x.nbytes * len(neighbours)
            x = weights[me, me] * x + sum(weights[me, peer] * received[peer] for peer in neighbours)
            history.append(distance(ranks, x, mean) / first)
        return history, sent


def rounded(vector):
    """(8-bit numbers, their scale)."""
    scale = numpy.array([max(float(numpy.abs(vector).max()), 1e-30) / 127], "f4")
    return numpy.rint(vector / scale[0]).astype("i1"), scale


class Int8:
    """Gradients in 8 bits with a scale per rank: an all_to_all of parts, which their ranks add up, and an all_gather of the sums."""

    def __init__(self, shape, ranks):
        self.error = numpy.zeros(shape, "f4")
        self.part_error = numpy.zeros(self.error.size // ranks, "f4")

    def mean(self, ranks, gradient):
        """(mean of all ranks' gradients, bytes that this rank sent)."""
        wanted = gradient + self.error
        packed, scale = rounded(wanted)
        self.error = wanted - packed * scale[0]
        parts, scales = ranks.all_to_all(packed.reshape(ranks.size, -1)), ranks.all_gather(scale)
        own = sum(part.astype("f4") * factor for part, factor in zip(parts, scales[:, 0])) / ranks.size + self.part_error
        packed_part, part_scale = rounded(own)
        self.part_error = own - packed_part * part_scale[0]
        sums, scales = ranks.all_gather(packed_part), ranks.all_gather(part_scale)
        mean = (sums.astype("f4") * scales).reshape(gradient.shape)
        return mean, 2 * (packed_part.nbytes + part_scale.nbytes) * (ranks.size - 1)


class LowRank:
    """Gradients as products of two thin matrices, whose mean is taken by all_reduce."""

    def __init__(self, shape, rank):
        self.q = numpy.random.default_rng(0).standard_normal((shape[1], rank)).astype("f4")  # The same on all ranks.
        self.error = numpy.zeros(shape, "f4")

    def mean(self, ranks, gradient):
        wanted = gradient + self.error
        p = ranks.all_reduce(numpy.ascontiguousarray(wanted @ self.q), op="avg")
        p, _ = numpy.linalg.qr(p)
        p = numpy.ascontiguousarray(p, "f4")
        self.q = ranks.all_reduce(numpy.ascontiguousarray(wanted.T @ p), op="avg")
        told = p @ self.q.T
        self.error = wanted - told
        return told, 2 * (p.nbytes + self.q.nbytes) * (ranks.size - 1) // ranks.size


def fit_for_real(way, factors, steps):
    """Least squares by gradient descent, each rank with data of its own: (losses, bytes sent for gradients, whether all have the same)."""
    with espalier.Communicator() as ranks:
        own, shared = numpy.random.default_rng(100 + ranks.rank), numpy.random.default_rng(1)
        truth = (shared.standard_normal((256, 4)) @ shared.standard_normal((4, 128))).astype("f4")
        inputs = own.standard_normal((512, 256)).astype("f4")
        outputs = inputs @ truth
        model = numpy.zeros_like(truth)
        compressed = {"int8": lambda: Int8(truth.shape, ranks.size), "low rank": lambda: LowRank(truth.shape, factors), "all_reduce": lambda: None}[way]()
        losses, sent = [], 0
        for _ in range(steps):
            wrong = inputs @ model - outputs
            losses.append(float(ranks.all_reduce(numpy.array([float(numpy.square(wrong).mean())]), op="avg")[0]))
            gradient = inputs.T @ wrong / len(inputs)
            if compressed is None:
                mean = ranks.all_reduce(gradient.astype("f4"), op="avg")
                sent += 2 * gradient.nbytes * (ranks.size - 1) // ranks.size
            else:
                mean, bytes_sent = compressed.mean(ranks, gradient)
                sent += bytes_sent
            model -= 0.5 * mean
        same = all(numpy.array_equal(other, model) for other in ranks.all_gather(model))
        return losses, sent, same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--topology", choices=["ring", "mesh", "full"], default="ring", help="who is whose neighbour (mesh: a square)")
    parser.add_argument("--elements", type=int, default=1 << 17, help="of the vectors that are averaged (doubles)")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--rank-of-factors", type=int, default=4)
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    side = round(options.ranks ** 0.5)
    if options.topology == "mesh" and side * side != options.ranks:
        parser.error(f"--ranks {options.ranks} is no square")
    machine = espalier.Topology.generate(options.topology, [side, side] if options.topology == "mesh" else [options.ranks])

    mixing = espalier.gossip(machine)
    size = 8 * options.elements
    print(f"# gossip on {machine.name}: spectral gap {mixing.spectral_gap:.4f}, {mixing.rounds(1e-3)} rounds to 1e-3")
    for row in mixing.compare(size):
        print(f"#   predicted: {row['way']:24} {row['time'] * 1e6:9.1f} us, a rank sends {row['bytes'] / 2**20:.1f} MiB")
    results = espalier.run(gossip_for_real, options.ranks, mixing.weights, options.elements, options.rounds)
    for step, part in enumerate(results[0][0]):
        promised = (1 - mixing.spectral_gap) ** step
        assert part <= promised * (1 + 1e-9) + 1e-12, (step, part, promised)
        print(f"round {step:3}  distance to the mean {part:.2e}  at most {promised:.2e}")
    print(f"# rank 0 sent {results[0][1] / 2**20:.1f} MiB")

    print(f"# least squares by gradient descent on {options.ranks} ranks, {options.steps} steps")
    plain = None
    for way in ("all_reduce", "int8", "low rank"):
        told = espalier.run(fit_for_real, options.ranks, way, options.rank_of_factors, options.steps)
        losses, sent, same = told[0]
        assert all(rank[2] for rank in told), f"{way}: the ranks' models differ"
        assert losses[-1] < 0.05 * losses[0], (way, losses[0], losses[-1])
        plain = plain or sent
        print(f"{way:>10}  loss {losses[0]:.3f} -> {losses[-1]:.2e}  a rank sent {sent / 2**20:.2f} MiB, {plain / sent:.1f} times less than all_reduce")


if __name__ == "__main__":
    main()
