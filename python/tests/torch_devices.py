#!/usr/bin/env python3
"""The torch.distributed backend on tensors of a device: late_device.cpp, whose streams work as late as they may.

With ESPALIER_DEVICE_TENSORS=engine the engine works for them on the GPUs of the driver that the library path leads to: the fake one's,
whose memory that device reaches.
"""
import os
import pathlib
import sys
import types
import unittest

import torch_ranks

import torch
import torch.distributed as dist

import espalier
from espalier import _torch_build

DEVICE = torch.device("privateuseone:1")
IS_OLD = torch.__version__.startswith("1.")
ON_GPUS = os.environ.get("ESPALIER_DEVICE_TENSORS") == "engine"
TYPES = [torch.uint8, torch.int16, torch.int64, torch.float16, torch.float32, torch.float64, torch.bool, torch.complex64]


def run_ranks(function, world, *arguments):
    """From 2.0 on, a group has a backend for each kind of device: here the same."""
    torch_ranks.run_ranks(function, world, *arguments, backend="espalier" if IS_OLD else "cpu:espalier,privateuseone:espalier")


def values(rank, *shape, dtype=torch.float32):
    """What a rank brings; every rank can make that of all."""
    made = torch.randint(1, 4, shape, generator=torch.Generator().manual_seed(rank))
    return (made > 2) if dtype == torch.bool else made.to(dtype)


def on_device(tensor):
    """The values on the device, where they become these only when somebody waits for its stream."""
    moved = torch.empty(tensor.shape, dtype=tensor.dtype, device=DEVICE)
    moved.copy_(tensor, non_blocking=True)
    return moved


def empty(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device=DEVICE)


def check_equal(found, expected, what=""):
    assert found.device == DEVICE and torch.equal(found.cpu(), expected), (what, found.cpu(), expected)


def total_of(parts):
    """The sum; of truth values whether one is true."""
    return sum(part.to(torch.int64) for part in parts).to(torch.bool) if parts[0].dtype == torch.bool else sum(parts)


def check_collectives():
    me, n = dist.get_rank(), dist.get_world_size()
    for dtype in TYPES:
        brought = [values(rank, n, 6, dtype=dtype) for rank in range(n)]
        total = total_of(brought)
        ours = on_device(brought[me])
        dist.all_reduce(ours)
        check_equal(ours, total, ("all_reduce", dtype))
        wide = on_device(torch.zeros(n, 12, dtype=dtype))
        strided = wide[:, ::2]
        strided.copy_(brought[me])
        dist.all_reduce(strided)
        check_equal(strided, total, ("all_reduce, strided", dtype))
        check_equal(wide[:, 1::2], torch.zeros(n, 6, dtype=dtype), "what lies between")
        several = [on_device(brought[me]), on_device(brought[me][0])]
        dist.all_reduce_coalesced(several)
        check_equal(several[0], total, ("coalesced", dtype))
        check_equal(several[1], total[0], ("coalesced", dtype))
        for root in range(n):
            ours = on_device(brought[me])
            dist.reduce(ours, root)
            check_equal(ours, total if me == root else brought[me], ("reduce", dtype))
            ours = on_device(brought[me])
            dist.broadcast(ours, root)
            check_equal(ours, brought[root], ("broadcast", dtype))
            outputs = [empty(n, 6, dtype=dtype) for _ in range(n)] if me == root else None
            dist.gather(on_device(brought[me]), outputs, root)
            for found, expected in zip(outputs or [], brought):
                check_equal(found, expected, ("gather", dtype))
            output = empty(6, dtype=dtype)
            dist.scatter(output, [on_device(part) for part in brought[root]] if me == root else None, root)
            check_equal(output, brought[root][me], ("scatter", dtype))
        outputs = [empty(n, 6, dtype=dtype) for _ in range(n)]
        dist.all_gather(outputs, on_device(brought[me]))
        for found, expected in zip(outputs, brought):
            check_equal(found, expected, ("all_gather", dtype))
        lists = [[empty(n, 6, dtype=dtype), empty(6, dtype=dtype)] for _ in range(n)]
        dist.all_gather_coalesced(lists, [on_device(brought[me]), on_device(brought[me][0])])
        for found, expected in zip(lists, brought):
            check_equal(found[0], expected, ("all_gather_coalesced", dtype))
            check_equal(found[1], expected[0], ("all_gather_coalesced", dtype))
        output = empty(n, n, 6, dtype=dtype)
        dist._all_gather_base(output, on_device(brought[me]))
        check_equal(output, torch.stack(brought), ("_all_gather_base", dtype))
        output = empty(6, dtype=dtype)
        dist.reduce_scatter(output, [on_device(part) for part in brought[me]])
        check_equal(output, total[me], ("reduce_scatter", dtype))
        output = empty(6, dtype=dtype)
        dist._reduce_scatter_base(output, on_device(brought[me]))
        check_equal(output, total[me], ("_reduce_scatter_base", dtype))
        output = empty(n, 6, dtype=dtype)
        dist.all_to_all_single(output, on_device(brought[me]))
        check_equal(output, torch.stack([part[me] for part in brought]), ("all_to_all_single", dtype))
        outputs = [empty(6, dtype=dtype) for _ in range(n)]
        dist.all_to_all(outputs, [on_device(part) for part in brought[me]])
        for found, part in zip(outputs, brought):
            check_equal(found, part[me], ("all_to_all", dtype))
        unequal = [values(rank, sum(range(1, n + 1)), dtype=dtype) for rank in range(n)]
        output = empty((me + 1) * n, dtype=dtype)
        dist.all_to_all_single(output, on_device(unequal[me]), [me + 1] * n, list(range(1, n + 1)))
        begin = sum(range(1, me + 1))
        check_equal(output, torch.cat([part[begin:begin + me + 1] for part in unequal]), ("all_to_all, unequal", dtype))
    ours = on_device(torch.tensor([1 << me, 7]))
    dist.all_reduce(ours, dist.ReduceOp.BOR)
    check_equal(ours, torch.tensor([(1 << n) - 1, 7]), "BOR")
    for bytes_each in (0, 1 << 20):
        ours = on_device(torch.full((bytes_each,), me + 1))
        dist.all_reduce(ours)
        check_equal(ours, torch.full((bytes_each,), n * (n + 1) // 2), "sizes")
    dist.barrier()


def check_messages():
    me, n = dist.get_rank(), dist.get_world_size()
    for dtype in TYPES:
        works = []
        received = {peer: empty(5, 3, dtype=dtype)[:, ::2] if peer % 2 else empty(5, 2, dtype=dtype) for peer in range(n)}
        for peer in range(n):
            if peer != me:
                works.append(dist.isend(on_device(values(me, 5, 2, dtype=dtype)), peer, tag=peer))
                works.append(dist.irecv(received[peer], peer, tag=me))
        for work in works:
            work.wait()
        for peer in range(n):
            if peer != me:
                check_equal(received[peer], values(peer, 5, 2, dtype=dtype), ("receive", dtype))
    if me == 0:  # From the device to the CPU of others, and from any source.
        for peer in range(1, n):
            dist.send(on_device(values(0, 4)), peer)
        found = [empty(4) for _ in range(1, n)]
        sources = [dist.recv(tensor) for tensor in found]
        for source, tensor in zip(sources, found):
            check_equal(tensor, values(source, 4), "any source")
    else:
        output = torch.empty(4)
        dist.recv(output, 0)
        assert torch.equal(output, values(0, 4))
        dist.send(values(me, 4), 0)


def check_order():
    """Calls begin behind what the current stream was given, on whatever stream that is; what has ended is seen on all."""
    late = torch.ops.late_device
    me, n = dist.get_rank(), dist.get_world_size()
    ours = empty(1000)
    torch.ops.late_device.use_stream(ours, 3)
    ours.copy_(torch.zeros(1000), non_blocking=True)
    late.add_late(ours, me + 1.0)
    work = dist.all_reduce(ours, async_op=True)
    work.wait()
    late.add_late(ours, 0.5)
    late.use_stream(ours, 0)
    expected = n * (n + 1) / 2
    assert torch.equal(ours.cpu(), torch.full((1000,), expected))  # This stream does not wait for the other.
    late.use_stream(ours, 3)
    check_equal(ours, torch.full((1000,), expected + 0.5))
    work = dist.all_reduce(ours, async_op=True)
    (summed,) = work.get_future().wait()
    assert summed.device == DEVICE
    check_equal(ours, torch.full((1000,), n * (expected + 0.5)))
    future = dist.all_reduce(ours, async_op=True).get_future().then(lambda done: done.value()[0].cpu())
    assert torch.equal(future.wait(), torch.full((1000,), n * n * (expected + 0.5)))


def check_refusals():
    me = dist.get_rank()
    for call, text in [
            (lambda: dist.all_to_all([empty(2)] * 2, [torch.empty(2)] * 2), "requires tensors of one device"),
            (lambda: dist.all_gather([torch.empty(2)] * 2, empty(2)), "requires tensors of one device"),
            (lambda: dist._all_gather_base(torch.empty(4), empty(2)), "requires tensors of one device"),
            (lambda: dist.all_reduce_coalesced([empty(2), torch.empty(2, device="privateuseone:0")]), "requires tensors of one device")]:
        try:
            call()
        except ValueError as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"{text}: nothing was refused")
    if me == 0:
        work = dist.irecv(kept := on_device(torch.full((4,), 8.0)), 1)
        try:
            work.wait()
        except RuntimeError as error:
            assert "has 16" in str(error), error
        else:
            raise AssertionError("a message of another size was taken")
        check_equal(kept, torch.full((4,), 8.0))
    else:
        dist.send(on_device(torch.zeros(3)), 0)


def take_device(index):
    global DEVICE
    DEVICE = torch.device("privateuseone", index)


def check_kernels(world_has_own):
    """Ranks with a GPU each are added up by kernels, which then fail as told; ranks that share one are not."""
    take_device(dist.get_rank() if world_has_own else 1)
    os.environ["FAKE_CUDA_FAIL"] = "cuLaunchCooperativeKernel:1:719"
    ours = on_device(torch.ones(1000))
    try:
        dist.all_reduce(ours)
    except RuntimeError as error:
        assert world_has_own and "cannot launch the interpreter" in str(error), error
    else:
        assert not world_has_own
        check_equal(ours, torch.full((1000,), 2.0))


def check_own_gpus():
    take_device(dist.get_rank())
    check_collectives()


def check_one_gpu():
    take_device(0)
    dist.all_reduce(on_device(torch.ones(4)))
    take_device(1)
    try:
        dist.all_reduce(on_device(torch.ones(4)))
    except RuntimeError as error:
        assert "earlier ones were on privateuseone:0" in str(error), error
    else:
        raise AssertionError("a group worked on two GPUs of a rank")


def check_no_gpu():
    if dist.get_rank() == 0:
        os.environ["FAKE_CUDA_GPUS"] = "0"
    for _ in range(2):  # What was not there the first time is looked for again.
        try:
            dist.all_reduce(on_device(torch.ones(4)))
        except RuntimeError as error:
            expected = "GPU" if dist.get_rank() == 0 else "another rank cannot work on its GPU"
            assert expected in str(error), error
        else:
            raise AssertionError("a rank without a GPU worked on it")
    ours = torch.ones(4)
    dist.all_reduce(ours)  # The job goes on.
    assert (ours == 2).all()


def check_messages_of_own_gpus():
    take_device(dist.get_rank())
    check_messages()
    ours = on_device(torch.full((1 << 18,), 5.0)) if dist.get_rank() == 0 else empty(1 << 18)
    for _ in range(3):  # One after the other through the same memory of the engine's.
        dist.send(ours, 1) if dist.get_rank() == 0 else dist.recv(ours, 0)
        check_equal(ours, torch.full((1 << 18,), 5.0))


def check_message_without_gpu():
    if dist.get_rank() == 0:
        os.environ["FAKE_CUDA_GPUS"] = "0"
    try:
        dist.send(on_device(torch.ones(4)), 1) if dist.get_rank() == 0 else dist.recv(empty(4), 0)
    except RuntimeError as error:
        assert "rank 0 or rank 1 cannot work on its GPU" in str(error), error
    else:
        raise AssertionError("a rank without a GPU sent from it")


@unittest.skipUnless(ON_GPUS, "the host works on them")
class OnGpus(unittest.TestCase):
    def test_own_gpus(self):
        run_ranks(check_own_gpus, 2)

    def test_kernels(self):
        for has_own in (True, False):
            run_ranks(check_kernels, 2, has_own)

    def test_one_gpu(self):
        run_ranks(check_one_gpu, 2)

    def test_no_gpu(self):
        run_ranks(check_no_gpu, 2)

    def test_messages(self):
        run_ranks(check_messages_of_own_gpus, 2)
        run_ranks(check_message_without_gpu, 2)


class TensorsOfADevice(unittest.TestCase):
    def test_collectives(self):
        for world in (1, 2, 3):
            run_ranks(check_collectives, world)

    def test_messages(self):
        run_ranks(check_messages, 3)

    def test_order(self):
        run_ranks(check_order, 2)

    def test_refusals(self):
        run_ranks(check_refusals, 2)


def register_device():
    """What PyTorch 2 asks of the module torch.DEVICE."""
    module = types.ModuleType("torch.privateuseone")
    module.is_available, module.device_count, module.current_device = lambda: True, lambda: 2, lambda: 0
    module._is_in_bad_fork, module._lazy_init = lambda: False, lambda: None
    torch._register_device_module("privateuseone", module)


if __name__ == "__main__":
    if not IS_OLD:
        register_device()
    torch.ops.load_library(str(_torch_build.compiled(pathlib.Path(__file__).parent, "late_device")))
    unittest.main()
