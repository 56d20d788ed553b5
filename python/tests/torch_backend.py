#!/usr/bin/env python3
"""The torch.distributed backend: its collectives beside gloo's, and its failures."""
import datetime
import os
import pathlib
import tempfile
import unittest

from torch_ranks import SECONDS, run_ranks

import torch
import torch.distributed as dist

import espalier.torch

TYPES = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
         torch.float64]
BESIDES = [torch.bool, torch.complex64, torch.complex128]


def data_of(rank, shape, dtype, seed=0):
    """What a rank brings; every rank can make that of all. Small whole numbers, so that every type adds them exactly."""
    made = torch.Generator().manual_seed(100 * seed + rank)
    values = torch.randint(1, 4, shape, generator=made)
    return (values > 2) if dtype == torch.bool else values.to(dtype)


def views_of(tensor):
    """The same values, contiguous and not."""
    wide = torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1], dtype=tensor.dtype)
    wide[..., ::2] = tensor
    return [tensor.clone(), wide[..., ::2], tensor.t().contiguous().t() if tensor.dim() == 2 else tensor.clone()]


def all_data(shape, dtype, seed=0):
    return [data_of(rank, shape, dtype, seed) for rank in range(dist.get_world_size())]


def check_against_gloo():
    gloo = dist.new_group(backend="gloo")
    me, n = dist.get_rank(), dist.get_world_size()
    assert dist.get_backend() == "espalier" and dist.get_backend(gloo) == "gloo"
    operations = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]
    for dtype in [torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64]:
        for operation in operations:
            for ours in views_of(data_of(me, (6, 10), dtype)):
                theirs = ours.contiguous().clone()
                dist.all_reduce(ours, operation)
                dist.all_reduce(theirs, operation, group=gloo)
                assert torch.equal(ours, theirs), (dtype, operation)
        for root in range(n):
            ours = data_of(me, (6, 10), dtype)
            theirs = ours.clone()
            dist.reduce(ours, root)
            dist.reduce(theirs, root, group=gloo)
            assert me != root or torch.equal(ours, theirs)
            for ours in views_of(data_of(me, (6, 10), dtype)):
                theirs = ours.contiguous().clone()
                dist.broadcast(ours, root)
                dist.broadcast(theirs, root, group=gloo)
                assert torch.equal(ours, theirs)
            for ours in views_of(data_of(me, (6, 10), dtype)):
                outputs = [[torch.empty_like(like) for _ in range(n)] if me == root else None
                           for like in (ours, ours.contiguous())]  # Gloo takes contiguous ones only.
                dist.gather(ours, outputs[0], root)
                dist.gather(ours.contiguous(), outputs[1], root, group=gloo)
                assert me != root or all(map(torch.equal, *outputs))
                inputs = [data_of(rank, (6, 10), dtype, 5).t().contiguous().t() for rank in range(n)] if me == root else None
                outputs = [torch.empty_like(ours), torch.empty(6, 10, dtype=dtype)]  # Gloo takes contiguous ones only.
                dist.scatter(outputs[0], inputs, root)
                dist.scatter(outputs[1], inputs and [part.contiguous() for part in inputs], root, group=gloo)
                assert torch.equal(*outputs)
        for ours in views_of(data_of(me, (6, 10), dtype)):
            outputs = [[torch.empty_like(like) for _ in range(n)] for like in (ours, ours.contiguous())]
            dist.all_gather(outputs[0], ours)
            dist.all_gather(outputs[1], ours.contiguous(), group=gloo)
            assert all(map(torch.equal, *outputs))
            block = torch.empty(n, 6, 10, dtype=dtype)  # Outputs that lie side by side.
            dist.all_gather(list(block), ours)
            assert all(map(torch.equal, block, outputs[1]))
        tensors = [[data_of(me, shape, dtype) for shape in ((3,), (4, 5), ())] for _ in range(2)]
        dist.all_reduce_coalesced(tensors[0])
        dist.all_reduce_coalesced(tensors[1], group=gloo)
        assert all(map(torch.equal, *tensors))
    objects = [None] * n
    dist.all_gather_object(objects, {"rank": me})
    assert objects == [{"rank": rank} for rank in range(n)]
    sparse = torch.sparse_coo_tensor([[me, me + 1]], torch.tensor([1.0, 2.0]), (n + 1,))
    beside = sparse.clone()
    dist.all_reduce(sparse)
    dist.all_reduce(beside, group=gloo)
    assert torch.equal(sparse.to_dense(), beside.to_dense())


def check_without_gloo():
    """What gloo has not: expected values are made from the data of all ranks."""
    me, n = dist.get_rank(), dist.get_world_size()
    for dtype in TYPES + BESIDES:
        inputs = [data_of(rank, (n, 12), dtype) for rank in range(n)]
        total = sum(part.to(torch.int64) for part in inputs).to(dtype) if dtype == torch.bool else sum(inputs)
        for ours in views_of(inputs[me]):
            dist.all_reduce(ours)
            assert torch.equal(ours, total), dtype
        for ours in views_of(inputs[me]):
            output = torch.empty(12, dtype=dtype)
            dist._reduce_scatter_base(output, ours.contiguous())
            assert torch.equal(output, total[me]), dtype
            spread = torch.empty(24, dtype=dtype)[::2]
            dist.reduce_scatter(spread, list(ours))
            assert torch.equal(spread, total[me]), dtype
        gathered = torch.empty(n, n, 12, dtype=dtype)
        dist._all_gather_base(gathered, inputs[me])
        assert torch.equal(gathered, torch.stack(inputs))
        output = torch.empty(n, 12, dtype=dtype)
        dist.all_to_all_single(output, inputs[me])
        assert torch.equal(output, torch.stack([part[me] for part in inputs])), dtype
        outputs = [torch.empty(12, dtype=dtype) for _ in range(n)]
        dist.all_to_all(outputs, list(inputs[me]))
        assert torch.equal(torch.stack(outputs), output), dtype
        lists = [[torch.empty(3, dtype=dtype), torch.empty(2, 2, dtype=dtype)] for _ in range(n)]
        dist.all_gather_coalesced(lists, [inputs[me][0, :3], torch.full((2, 2), me).to(dtype)])
        assert all(torch.equal(part[0], inputs[rank][0, :3]) and torch.equal(part[1], torch.full((2, 2), rank).to(dtype))
                   for rank, part in enumerate(lists))
    # Unequal parts: rank r gives rank p r + 2p rows, some of them none.
    def rows(source, to):
        return (source + 2 * to) % 4
    row = torch.arange(3.0)
    sent = torch.cat([(row + 10 * me + to).repeat(rows(me, to), 1) for to in range(n)])
    received = torch.empty(sum(rows(source, me) for source in range(n)), 3)
    dist.all_to_all_single(received, sent, [rows(source, me) for source in range(n)], [rows(me, to) for to in range(n)])
    assert torch.equal(received, torch.cat([(row + 10 * source + me).repeat(rows(source, me), 1) for source in range(n)]))
    mean = torch.full((5,), float(me))
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    assert torch.allclose(mean, torch.tensor((n - 1) / 2))
    for operation, combine in ((dist.ReduceOp.BAND, torch.bitwise_and), (dist.ReduceOp.BOR, torch.bitwise_or),
                               (dist.ReduceOp.BXOR, torch.bitwise_xor)):
        for dtype in (torch.uint8, torch.int16, torch.int64, torch.bool):
            inputs = all_data((n, 7), dtype, 3)
            expected = inputs[0].clone()
            for other in inputs[1:]:
                expected = combine(expected, other)
            ours = inputs[me].clone()
            dist.all_reduce(ours, operation)
            assert torch.equal(ours, expected), (operation, dtype)
            output = torch.empty(7, dtype=dtype)
            dist._reduce_scatter_base(output, inputs[me], operation)
            assert torch.equal(output, expected[me])
    empty = torch.empty(0)
    dist.all_reduce(empty)
    dist.all_gather([torch.empty(0) for _ in range(n)], empty)


def check_messages():
    me, n = dist.get_rank(), dist.get_world_size()
    # Everyone sends to everyone at once, receives being posted after the sends and in another order.
    sent = [dist.isend(torch.full((1000,), 10.0 * me + to), to) for to in range(n) if to != me]
    received = {source: torch.empty(2000)[::2] for source in reversed(range(n)) if source != me}
    works = [dist.irecv(tensor, source) for source, tensor in received.items()]
    for work in works + sent:
        work.wait()
    assert all((tensor == 10.0 * source + me).all() for source, tensor in received.items())
    # Tags: what comes first is kept until it is asked for.
    if me == 0:
        for tag in range(5):
            dist.send(torch.tensor([tag]), 1, tag=tag)
    if me == 1:
        for tag in reversed(range(5)):
            got = torch.empty(1, dtype=torch.int64)
            dist.recv(got, 0, tag=tag)
            assert got.item() == tag
    # From whoever comes.
    if me == 0:
        sources = []
        for _ in range(n - 1):
            got = torch.empty(1, dtype=torch.int64)
            source = dist.recv(got, tag=7)
            assert got.item() == source
            sources.append(source)
        assert sorted(sources) == list(range(1, n))
        for source in range(1, n):  # Once more by name, from directions that waited for any.
            got = torch.empty(3)
            dist.recv(got, source, tag=8)
            assert (got == source).all()
    else:
        dist.send(torch.tensor([me]), 0, tag=7)
        dist.send(torch.full((3,), float(me)), 0, tag=8)
    # Beside collectives, which others wait in.
    if me == 0:
        work = dist.isend(torch.ones(3), 1)
    total = torch.ones(4)
    dist.all_reduce(total)
    if me == 1:
        got = torch.empty(3)
        dist.recv(got, 0)
        assert got.tolist() == [1, 1, 1] and total[0] == n
    if me == 0:
        work.wait()
    operations = [dist.P2POp(dist.isend, torch.full((5,), float(me)), (me + 1) % n),
                  dist.P2POp(dist.irecv, torch.empty(5), (me - 1) % n)]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert (operations[1].tensor == (me - 1) % n).all()


def check_works_and_groups():
    me, n = dist.get_rank(), dist.get_world_size()
    works = [dist.all_reduce(torch.full((1 << (3 * i),), float(me + i)), async_op=True) for i in range(6)]
    for i, work in enumerate(works):
        future = work.get_future()
        assert torch.equal(future.wait()[0], torch.full((1 << (3 * i),), float(sum(range(n)) + n * i)))
        assert work.wait() and work.is_completed() and torch.equal(work.result()[0], future.value()[0])
    doubled = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(lambda done: done.value()[0] * 2).wait()
    assert doubled.tolist() == [2 * n] * 3
    halves = [dist.new_group([rank for rank in range(n) if rank % 2 == part], backend="espalier") for part in range(2)]
    pairs = [dist.new_group([rank, (rank + 1) % n]) for rank in range(0, n, 2)]
    mine, pair = halves[me % 2], pairs[me // 2]
    started = [dist.all_reduce(torch.ones(1000), group=group, async_op=True) for group in (mine, pair, None)]
    assert [int(work.get_future().wait()[0][0]) for work in started] == [n // 2, 2, n]
    assert dist.get_world_size(mine) == n // 2 and espalier.torch.transports(mine) == ["shm"] * (n // 2)
    dist.barrier(mine)
    dist.barrier()
    world = dist.group.WORLD
    world.monitored_barrier(SECONDS)
    world.monitored_barrier(SECONDS)
    dist.destroy_process_group(mine)
    parameter = torch.nn.Parameter(torch.full((3,), float(me)))
    dist.broadcast(parameter.data, 0)
    assert parameter.tolist() == [0, 0, 0]


def check_refusals():
    me, n = dist.get_rank(), dist.get_world_size()
    for wrong in (lambda: dist.all_reduce(torch.ones(3, dtype=torch.bool), dist.ReduceOp.AVG),
                  lambda: dist.all_reduce(torch.ones(3, dtype=torch.complex64), dist.ReduceOp.MAX),
                  lambda: dist.all_reduce(torch.ones(3), dist.ReduceOp.BAND),
                  lambda: dist.all_gather([torch.ones(3)] * (n + 1), torch.ones(3)),
                  lambda: dist.all_to_all_single(torch.ones(n + 1), torch.ones(n + 1)),
                  lambda: dist._all_gather_base(torch.ones(n + 1), torch.ones(1)),
                  lambda: dist.group.WORLD.send([torch.ones(1)], me, 0)):
        try:
            wrong()
        except (ValueError, RuntimeError) as error:
            assert any(word in str(error) for word in ("Espalier", "complex")), error
        else:
            raise AssertionError("not refused")
    total = torch.ones(2)
    dist.all_reduce(total)
    assert total[0] == n


def time_out():
    me = dist.get_rank()
    short = datetime.timedelta(seconds=1)
    if me == 0:
        try:
            dist.group.WORLD.monitored_barrier(short, wait_all_ranks=True)
        except RuntimeError as error:
            assert "Ranks 1" in str(error), error
        else:
            raise AssertionError("rank 1 came")
        try:
            dist.group.WORLD.monitored_barrier(datetime.timedelta(0))
        except RuntimeError as error:
            assert "Rank 0 timed out" in str(error) and "rank 1" in str(error), error
        else:
            raise AssertionError("nobody was waited for")
        try:
            dist.irecv(torch.ones(1), 1).wait(short)
        except RuntimeError as error:
            assert "timed out" in str(error), error
        else:
            raise AssertionError("received")
    dist.barrier()


def is_shared(tensor):
    """Whether the tensor lies in memory that this process shares with other ranks."""
    with open("/proc/self/maps", encoding="ascii") as maps:
        for line in maps:
            begin, end = (int(number, 16) for number in line.split()[0].split("-"))
            if begin <= tensor.data_ptr() < end:
                return "espalier-buffer" in line
    raise AssertionError("no memory at all")


def share_buckets():
    rank, world = dist.get_rank(), dist.get_world_size()
    bucket, view, small = torch.full((50_000,), float(rank)), torch.zeros(2, 40_000)[1], torch.ones(100)
    address, total = bucket.data_ptr(), sum(range(world))
    for turn in range(4):
        dist.all_reduce(bucket)
        dist.all_reduce(view)
        dist.all_reduce(small)
        assert (bucket == total * world ** turn).all() and bucket.data_ptr() == address
        # From the second time on, if the memory is the tensor's alone.
        assert is_shared(bucket) == (turn > 0 and world > 1) and not is_shared(view) and not is_shared(small)
    other = dist.new_group()
    dist.all_reduce(bucket, group=other)  # The first group keeps what it shares.
    dist.all_reduce(bucket, group=other)
    assert (bucket == total * world**5).all()
    # What is freed while it is shared is taken back with the next call, and what comes in its place is its own.
    for turn in range(6):
        bucket = torch.full((50_000,), 1.0 + turn)
        for _ in range(2):
            dist.all_reduce(bucket)
        assert (bucket == (1 + turn) * world * world).all()
        del bucket
    kept = torch.arange(50_000.0)
    for turn in range(2):
        dist.all_reduce(kept)
    dist.destroy_process_group()
    assert not is_shared(kept) and (kept == torch.arange(50_000.0) * world * world).all()


def fork_beside_buckets():
    """What a forked child writes is its own, and it keeps what was there: workers of a DataLoader that normalise in place."""
    world = dist.get_world_size()
    mean = torch.zeros(50_000)
    for _ in range(3):
        mean.fill_(1.0)
        dist.all_reduce(mean)
    assert is_shared(mean) == (world > 1)
    mean.fill_(5.0)
    told, tell = os.pipe()
    children = []
    for _ in range(2):
        children.append(os.fork())
        if children[-1] == 0:
            os.close(tell)
            os.read(told, 1)  # The parent has written.
            was_kept = (mean.numpy() == 5.0).all()  # Not by threads, which a child lacks.
            mean.numpy()[:] = 99.0
            os._exit(0 if was_kept and (mean.numpy() == 99.0).all() else 1)
    os.close(told)
    mean.fill_(6.0)
    os.close(tell)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert (mean == 6.0).all()
    dist.all_reduce(mean)
    assert (mean == 6.0 * world).all()


def lose_a_peer(folder):
    try:
        dist.barrier()  # Who is slow in it learns of the death here.
        if dist.get_rank() == 1:
            os._exit(0)
        dist.all_reduce(torch.ones(1000))
    except RuntimeError as error:
        pathlib.Path(folder, str(dist.get_rank())).write_text(str(error))
    else:
        raise AssertionError("the call ended well")


class Collectives(unittest.TestCase):
    def test_against_gloo(self):
        for world in (2, 3):
            run_ranks(check_against_gloo, world)

    def test_without_gloo(self):
        for world in (2, 4):
            run_ranks(check_without_gloo, world)

    def test_lone_rank(self):
        run_ranks(check_without_gloo, 1)

    def test_over_tcp(self):
        os.environ["ESPALIER_TRANSPORT"] = "tcp"
        try:
            run_ranks(check_without_gloo, 2)
        finally:
            del os.environ["ESPALIER_TRANSPORT"]

    def test_messages(self):
        for world in (2, 4):
            run_ranks(check_messages, world)

    def test_works_and_groups(self):
        run_ranks(check_works_and_groups, 4)

    def test_buckets_are_shared(self):
        for world in (1, 2, 4):
            run_ranks(share_buckets, world)

    def test_forked_children_have_tensors_of_their_own(self):
        run_ranks(fork_beside_buckets, 1)
        run_ranks(fork_beside_buckets, 2)

    def test_refusals_leave_the_group_as_it_is(self):
        run_ranks(check_refusals, 2)

    def test_topology_and_plan(self):
        with tempfile.TemporaryDirectory() as folder:
            machine = espalier.Topology.generate("ring", [4])
            plan = f"{folder}/plan.json"
            espalier.plan(machine, "all_reduce", algorithm="ring").save(plan)
            os.environ["ESPALIER_PLAN"] = f"{plan}@64-1G"
            try:
                run_ranks(check_works_and_groups, 4)
                with self.assertRaisesRegex(AssertionError, "the plan .* has 4"):
                    run_ranks(check_refusals, 2)
            finally:
                del os.environ["ESPALIER_PLAN"]


class Failures(unittest.TestCase):
    def test_timeouts(self):
        run_ranks(time_out, 2)

    def test_dead_peer_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            run_ranks(lose_a_peer, 3, folder)
            for rank in (0, 2):
                self.assertIn("rank 1", pathlib.Path(folder, str(rank)).read_text())


if __name__ == "__main__":
    unittest.main(warnings="ignore")
