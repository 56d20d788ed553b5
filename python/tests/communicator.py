#!/usr/bin/env python3
"""Ranks in Python: what collectives give, that they copy nothing, how long arrays live, and how jobs end."""
import array
import gc
import mmap
import os
import signal
import socket
import tempfile
import threading
import time
import unittest
import weakref

import numpy

import espalier
from espalier import Communicator


def call_all(transport):
    with Communicator(transport=transport) as ranks:
        n, me = ranks.size, ranks.rank
        data = numpy.arange(n * 1000, dtype="f4").reshape(n, 1000) + me
        base = numpy.arange(n * 1000, dtype="f4").reshape(n, 1000)
        total = base * n + sum(range(n))
        own = data.copy()
        assert ranks.all_reduce(own) is own and (own == total).all()
        assert (ranks.all_reduce(data, numpy.empty_like(data), "max") == base + n - 1).all()
        assert (ranks.reduce_scatter(data) == total[me]).all()
        assert (ranks.all_gather(data[me]) == base + numpy.arange(n)[:, None]).all()
        assert (ranks.all_to_all(data) == base[me] + numpy.arange(n)[:, None]).all()
        assert (ranks.broadcast(data.copy(), root=1) == base + 1).all()
        gathered = ranks.gather(data[me], root=1)
        assert gathered is None if me != 1 else (gathered == base + numpy.arange(n)[:, None]).all()
        part = ranks.scatter(data if me == 1 else None, numpy.empty(1000, "f4"), root=1)
        assert (part == base[me] + 1).all()
        reduced = ranks.reduce(data.copy(), op="sum", root=1)
        assert reduced is None if me != 1 else (reduced == total).all()
        for kind in ("i1", "u1", "i4", "u4", "i8", "u8", "f2", "f8"):
            assert (ranks.all_reduce(numpy.full(5, me + 1, kind)) == n * (n + 1) // 2).all()
        return ranks.transports[(me + 1) % n]


def call_with_counts(transport):
    with Communicator(transport=transport) as ranks:
        n, me = ranks.size, ranks.rank
        rows = lambda source, to: 0 if (source + to) % 3 == 0 else 10 * source + to + 1
        sent_counts, got_counts = [rows(me, to) for to in range(n)], [rows(source, me) for source in range(n)]
        part = lambda source, to: numpy.full((rows(source, to), 5), 100 * source + to, "f4")
        sent = numpy.concatenate([part(me, to) for to in range(n)])
        expected = numpy.concatenate([part(source, me) for source in range(n)])
        assert ranks.exchange_counts(sent_counts).tolist() == got_counts
        assert (ranks.all_to_all(sent, send_counts=sent_counts) == expected).all()
        assert (ranks.all_to_all(sent, send_counts=sent_counts, receive_counts=got_counts) == expected).all()
        # In the opposite order, with an entry between the blocks, on both sides.
        ends = numpy.cumsum([1 + count for count in sent_counts[::-1]])[::-1]
        spread = numpy.zeros((int(ends[0]) + 1, 5), "f4")
        for to in range(n):
            spread[ends[to] - sent_counts[to]:ends[to]] = part(me, to)
        got_ends = numpy.cumsum([1 + count for count in got_counts[::-1]])[::-1]
        got = ranks.all_to_all(spread, send_counts=sent_counts, receive_counts=got_counts,
                               send_displacements=ends - sent_counts, receive_displacements=got_ends - got_counts)
        for source in range(n):
            assert (got[got_ends[source] - got_counts[source]:got_ends[source]] == part(source, me)).all()
        # The same array on both sides, and started.
        both = ranks.empty((max(len(sent), len(expected)), 5))
        both[:len(sent)] = sent
        assert ranks.all_to_all(both, both, send_counts=sent_counts, receive_counts=got_counts) is both
        assert (both[:len(expected)] == expected).all()
        started = ranks.all_to_all(sent, send_counts=list(sent_counts), receive_counts=got_counts, asynchronous=True)
        with ranks.group():
            also = ranks.all_to_all(sent, send_counts=sent_counts, receive_counts=list(got_counts))
            gc.collect()
        assert (started.wait() == expected).all() and (also == expected).all()
        refused = [
            (dict(send_counts=[1] * (n + 1)), "send_counts of shape"), (dict(send_counts=["x"] * n), "send_counts is 'x'"),
            (dict(send_counts=[1.5] * n), "send_counts is 1.5"), (dict(receive_counts=[1] * n), "without send_counts"),
            (dict(send_displacements=[0] * n), "displacements without counts"),
            (dict(send_counts=[-1] * n, receive_counts=[0] * n), "-1 entries at 0 for rank 0"),
            (dict(send_counts=[2**62] * n, receive_counts=[0] * n), "are not within the"),
            (dict(send_counts=[0] * n, receive_counts=[0] * n, send_displacements=[2**62] * n), "are not within the"),
            (dict(send_counts=[0] * n, receive_counts=[-3] * n), "receive_counts are [-3"),
            (dict(send_counts=[2**70] * n, receive_counts=[0] * n), "send_counts is 1180")]
        for counts, message in refused:  # Before anything is sent.
            try:
                ranks.all_to_all(sent, **counts)
            except espalier.Error as error:
                assert error.code == "invalid_input" and message in error.message, (counts, error.message)
            else:
                raise AssertionError(counts)
        return ranks.transports[(me + 1) % n]


def disagree_on_counts():
    try:
        with Communicator(timeout=10) as ranks:
            sent, received = ([2, 3], [2, 1]) if ranks.rank == 0 else ([1, 1], [2, 1])
            ranks.all_to_all(numpy.ones(8), send_counts=sent, receive_counts=received)
    except espalier.Error as error:
        return error.message
    return ""


def call_with_shares(transport):
    with Communicator(transport=transport) as ranks:
        n, me = ranks.size, ranks.rank
        shares = [3, 0, 2, 5][:n]
        ends = numpy.cumsum([0, *shares])
        whole = numpy.arange(sum(shares), dtype="f8")
        mine = slice(ends[me], ends[me + 1])
        assert (ranks.all_gather(whole[mine].copy(), shares=shares) == whole).all()
        assert (ranks.reduce_scatter(whole + me, shares=shares) == whole[mine] * n + sum(range(n))).all()
        gathered = ranks.gather(whole[mine].copy(), root=1, shares=shares)
        assert gathered is None if me != 1 else (gathered == whole).all()
        part = ranks.scatter(whole if me == 0 else None, numpy.empty(shares[me]), shares=shares)
        assert (part == whole[mine]).all()
        started = ranks.all_gather(whole[mine].copy(), shares=shares, asynchronous=True)
        gc.collect()
        assert (started.wait() == whole).all()
        for wrong in ([1] * n, [-1] + shares[1:], [1], shares + [1]):
            try:
                ranks.all_gather(whole[mine].copy(), shares=wrong)
            except espalier.Error as error:
                assert error.help
            else:
                raise AssertionError("not refused")


def go_beside():
    with Communicator() as ranks:
        me, n = ranks.rank, ranks.size
        there, back = numpy.full(10, me), numpy.empty(10, int)
        with ranks.group():
            ranks.send(there, (me + 1) % n)
            ranks.receive(back, (me - 1) % n)
        assert (back == (me - 1) % n).all()
        handles = [ranks.all_reduce(numpy.full(100_000, i + me, "f8"), asynchronous=True) for i in range(20)]
        gc.collect()
        for i, handle in enumerate(handles):
            assert (handle.wait() == n * i + sum(range(n))).all() and handle.test()
        half = ranks.split([rank for rank in range(n) if rank % 2 == me % 2])
        assert half.size == n // 2 and half.all_reduce(numpy.ones(3)).tolist() == [n // 2] * 3
        half.close()


def keep_memory():
    with Communicator() as ranks:
        n = ranks.size
        raw = bytearray(8 * 4)
        ranks.all_reduce(numpy.frombuffer(raw, "i4"))
        numbers = array.array("d", [1, 2, 3])
        ranks.all_reduce(numbers)
        assert numbers.tolist() == [n, 2 * n, 3 * n]

        class Foreign:
            """Another library's array, which shows its memory by DLPack alone."""
            def __init__(self, data):
                self.data = data

            def __dlpack__(self, stream=None):
                return self.data.__dlpack__()

            def __dlpack_device__(self):
                return self.data.__dlpack_device__()

        foreign = Foreign(numpy.ones(7, "f4"))
        assert espalier._communicator.as_array(foreign).ctypes.data == foreign.data.ctypes.data
        ranks.all_reduce(foreign)
        assert (foreign.data == n).all()

        shared = ranks.empty((4, 1000), "f8")
        address = shared.ctypes.data
        shared += 1
        assert ranks.all_reduce(shared).ctypes.data == address and (shared == n).all()

        # What was started keeps its arrays when nobody else does, and lets them go.
        data = numpy.ones(1_000_000)
        gone = weakref.ref(data)
        handle = ranks.all_reduce(data, asynchronous=True)
        del data
        gc.collect()
        assert gone() is not None and (handle.wait() == n).all()
        del handle
        ranks.all_reduce(numpy.ones(1), asynchronous=True).wait()
        gc.collect()
        assert gone() is None


def lose_a_peer():
    ranks = Communicator(timeout=10)
    try:
        ranks.barrier()  # Who is slow in it learns of the death here.
        if ranks.rank == 1:
            os._exit(0)
        ranks.all_reduce(numpy.ones(1000))
    except espalier.Error as error:
        assert error.rank == 1, error
    else:
        raise AssertionError("the call ended well")


def in_child(body):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if body() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def fork_beside_shared_memory():
    """A forked child has memory of its own, whatever the engine shares it with, and is no rank."""
    with Communicator() as ranks:
        pages = numpy.frombuffer(mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE), "f4")
        with ranks.registered(pages):
            for memory in (pages, ranks.empty(1 << 18)):
                memory[:] = 1
                ranks.all_reduce(memory)
                memory[:] = 5

                def write():
                    was_kept = (memory == 5).all()
                    memory[:] = 99
                    return was_kept and (memory == 99).all()

                told, tell = os.pipe()  # The parent writes while the child looks.
                child = os.fork()
                if child == 0:
                    os.close(tell)
                    os.read(told, 1)
                    os._exit(0 if (memory == 5).all() else 1)
                os.close(told)
                memory[:] = 6
                os.close(tell)
                assert os.waitpid(child, 0)[1] == 0
                memory[:] = 5
                assert in_child(write) == 0 and (memory == 5).all()
                assert (ranks.all_reduce(memory) == 5 * ranks.size).all()
        assert in_child(lambda: ranks.close() is None) == 0
        ranks.barrier()


def register_what_others_see(folder):
    with Communicator() as ranks:
        path = f"{folder}/{ranks.rank}"
        numpy.ones(2048, "f4").tofile(path)
        with open(path, "r+b") as file:
            shared = mmap.mmap(file.fileno(), 8192)
        fixed = mmap.mmap(-1, 8192, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
        for data in (numpy.frombuffer(shared, "f4"), numpy.memmap(path, "f4", "r+"), numpy.memmap(path, "f4", "r"),
                     numpy.memmap(path, "f4", "c"), numpy.frombuffer(mmap.mmap(-1, 8192), "f4"),
                     numpy.frombuffer(fixed, "f4")):
            try:
                with ranks.registered(data):
                    raise AssertionError("not refused")
            except espalier.Error as error:
                assert error.code == "invalid_input" and error.help, error
        # Calls on them work as they are, and what is written is the file's.
        ranks.all_reduce(numpy.frombuffer(shared, "f4"))
        assert (numpy.fromfile(path, "f4") == ranks.size).all()


def join_again(jobs):
    results, server = [], None
    for _ in range(jobs):
        with Communicator(timeout=20) as ranks:
            results.append(float(ranks.all_reduce(numpy.ones(2))[0]))
        if server is None:  # The application's own; it gets the lowest number, which the job has just given back.
            server = socket.create_server(("127.0.0.1", 0))
    return results, server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)


def be_interrupted():
    ranks = Communicator()
    ranks.barrier()
    begin = time.monotonic()
    try:
        if ranks.rank == 0:
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            ranks.all_reduce(numpy.ones(10))  # The other never comes.
        else:
            time.sleep(1)
            ranks.all_reduce(numpy.ones(10))
    except (KeyboardInterrupt, espalier.Error) as error:
        return type(error).__name__, time.monotonic() - begin
    return "nothing", 0


def refuse():
    with Communicator() as ranks:
        fixed = numpy.ones(4)
        fixed.flags.writeable = False
        for wrong in (lambda: ranks.all_reduce(numpy.ones((4, 4))[:, 1]), lambda: ranks.all_reduce(numpy.ones(4, "i2")),
                      lambda: ranks.all_reduce(numpy.ones(4, ">f4")), lambda: ranks.all_reduce(fixed),
                      lambda: ranks.all_reduce(numpy.ones(4), numpy.ones(5)), lambda: ranks.broadcast(numpy.ones(4), root=9),
                      lambda: ranks.all_gather(numpy.ones(4), numpy.ones(9)), lambda: ranks.all_reduce([1, 2]),
                      lambda: ranks.all_reduce(numpy.ones(4), op="xor"), lambda: ranks.all_to_all(numpy.ones(3))):
            try:
                wrong()
            except espalier.Error as error:
                assert error.help
            else:
                raise AssertionError("not refused")
        assert (ranks.all_reduce(numpy.ones(4)) == ranks.size).all()


class Ranks(unittest.TestCase):
    def test_every_collective(self):
        for transport, world in (("shm", 2), ("shm", 4), ("tcp", 3)):
            self.assertEqual(espalier.run(call_all, world, transport), [transport] * world)

    def test_unequal_shards(self):
        for transport, world in (("shm", 4), ("tcp", 3)):
            espalier.run(call_with_shares, world, transport)

    def test_counts_per_peer(self):
        for transport, world in (("shm", 4), ("tcp", 3)):
            self.assertEqual(espalier.run(call_with_counts, world, transport), [transport] * world)
        for message in espalier.run(disagree_on_counts, 2):
            self.assertIn("rank 0 sends 3 double to rank 1, which expects 2 from it", message)

    def test_lone_rank_needs_no_secret(self):
        for told in ({"rank": 0, "world": 1, "rendezvous": "127.0.0.1:29733"}, {}):
            with Communicator(**told) as ranks:
                self.assertEqual(ranks.all_reduce(numpy.ones(3)).tolist(), [1, 1, 1])

    def test_groups_handles_parts(self):
        espalier.run(go_beside, 4)

    def test_memory(self):
        espalier.run(keep_memory, 2)

    def test_forked_children_have_memory_of_their_own(self):
        espalier.run(fork_beside_shared_memory, 2)

    def test_memory_that_others_see_is_not_registered(self):
        with tempfile.TemporaryDirectory() as folder:
            espalier.run(register_what_others_see, 2, folder)

    def test_a_rank_joins_one_job_after_the_other(self):
        for world in (1, 2, 3):
            self.assertEqual(espalier.run(join_again, world, 3), [([float(world)] * 3, 1)] * world)

    def test_refusals_leave_the_job_as_it_is(self):
        espalier.run(refuse, 2)

    def test_interrupt_ends_the_call_on_all(self):
        results = espalier.run(be_interrupted, 2)
        self.assertEqual([name for name, _ in results], ["KeyboardInterrupt", "Error"])
        self.assertLess(results[0][1], 5)


def leave_early():
    ranks = Communicator(timeout=10)
    ranks.barrier()
    if ranks.rank == 1:
        os._exit(3)
    ranks.all_reduce(numpy.ones(1000))


class Deaths(unittest.TestCase):
    def test_who_left_is_to_blame_however_quickly_the_others_end(self):
        for _ in range(10):
            with self.assertRaises(espalier.Error) as raised:
                espalier.run(leave_early, 3)
            self.assertEqual(raised.exception.rank, 1, raised.exception.message)

    def test_dead_peer_is_named(self):
        with self.assertRaisesRegex(espalier.Error, "rank 1 ended without a result"):  # The others ended well.
            espalier.run(lose_a_peer, 3)

    def test_failed_rank_is_named(self):
        with self.assertRaises(espalier.Error) as raised:
            espalier.run(divmod, 1, 1, 0)
        self.assertEqual(raised.exception.rank, 0)
        self.assertIn("ZeroDivisionError", raised.exception.message)


if __name__ == "__main__":
    unittest.main()
