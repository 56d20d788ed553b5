#!/usr/bin/env python3
"""The torch.distributed backend under what PyTorch 2 adds: coalesced and functional collectives, meshes, DTensor, FSDP2, beginning anew."""
import datetime
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from torch_ranks import run_ranks

import torch
import torch.distributed as dist

import espalier.torch
from espalier import _torch_build

if torch.__version__.startswith("1."):
    print("skipped: PyTorch 1.x has none of it")
    sys.exit(77)

import torch.distributed._functional_collectives as functional  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402


def brought(rank, *shape):
    """What a rank brings; every rank can make that of all. Small whole numbers, which every type adds exactly."""
    return torch.randint(1, 4, shape, generator=torch.Generator().manual_seed(rank)).float()


def check_coalesced_forms():
    """Each pair of tensors as one call of its own would: types and shapes differ, and one input is not contiguous."""
    me, n = dist.get_rank(), dist.get_world_size()
    world = dist.group.WORLD
    for shapes in ([(3,)], [(3,), (2, 5), (0,)], [(70_000,), (1, 3)]):
        inputs = [[brought(rank, *shape).to(dtype) for shape, dtype in zip(shapes, (torch.float32, torch.int64, torch.bfloat16))]
                  for rank in range(n)]
        mine = [tensor.t().contiguous().t() if tensor.dim() == 2 else tensor for tensor in inputs[me]]
        outputs = [torch.empty(n * tensor.shape[0], *tensor.shape[1:], dtype=tensor.dtype) for tensor in mine]
        world.allgather_into_tensor_coalesced(outputs, mine).wait()
        for i, output in enumerate(outputs):
            assert torch.equal(output, torch.cat([inputs[rank][i] for rank in range(n)]))
        wholes = [[torch.cat([tensor * (part + 1) for part in range(n)]) for tensor in inputs[rank]] for rank in range(n)]
        for operation in (dist.ReduceOp.SUM, dist.ReduceOp.MAX):
            options = dist.ReduceScatterOptions()
            options.reduceOp = operation
            outputs = [torch.empty_like(tensor) for tensor in inputs[me]]
            world.reduce_scatter_tensor_coalesced(outputs, wholes[me], options).wait()
            for i, output in enumerate(outputs):
                everyones = torch.stack([inputs[rank][i] * (me + 1) for rank in range(n)])
                expected = everyones.sum(0) if operation == dist.ReduceOp.SUM else everyones.max(0).values
                assert torch.equal(output, expected.to(output.dtype))
    for wrong in (lambda b: b.allgather_into_tensor_coalesced([torch.ones(n)], [torch.ones(1), torch.ones(1)]),
                  lambda b: b.allgather_into_tensor_coalesced([torch.ones(n + 1)], [torch.ones(1)])):
        try:
            wrong(world)
        except ValueError as error:
            assert "ProcessGroupEspalier" in str(error), error
        else:
            raise AssertionError("not refused")


def use_functional(x, group, n):
    total = functional.all_reduce(x, "sum", group)
    gathered = functional.all_gather_tensor(total + 1, 0, group)
    part = functional.reduce_scatter_tensor(gathered, "avg", 0, group)
    swapped = functional.all_to_all_single(part.repeat(n, 1), None, None, group)
    pair = functional.all_reduce_coalesced([swapped, x], "max", group)
    lists = functional.all_gather_into_tensor_coalesced([x, x + 1], group)
    parts = functional.reduce_scatter_tensor_coalesced(lists, "sum", [0, 0], group)
    return total, gathered, part, swapped, pair[0], pair[1], lists[1], parts[0], parts[1]


def check_functional_collectives():
    me, n = dist.get_rank(), dist.get_world_size()
    group = dist.group.WORLD
    all_x = [brought(rank, 2, 3) for rank in range(n)]
    total = sum(all_x)
    maximum = torch.stack(all_x).max(0).values
    gathered = torch.cat([total + 1] * n)
    both = torch.cat([x + 1 for x in all_x])
    expected = (total, gathered, total + 1, torch.cat([total + 1] * n), torch.cat([total + 1] * n), maximum, both,
                all_x[me] * n, (all_x[me] + 1) * n)
    compiled = torch.compile(use_functional, backend="aot_eager", fullgraph=True)
    for function in (use_functional, compiled):
        for found, wanted in zip(function(all_x[me], group, n), expected):
            assert torch.equal(found + 0, wanted), (function, found, wanted)


def check_meshes():
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner"))
    assert {dist.get_backend(mesh.get_group(name)) for name in ("outer", "inner")} == {"espalier"}
    whole = torch.arange(6 * 8.0).reshape(6, 8)
    placements = [Replicate(), Shard(0), Shard(1)]
    for first in placements:
        for second in placements:
            spread = distribute_tensor(whole, mesh, [first, second])
            for to in ([Replicate(), Replicate()], [Shard(0), Shard(1)], [Shard(1), Shard(0)], [Shard(0), Shard(0)]):
                assert torch.equal(spread.redistribute(mesh, to).full_tensor(), whole), (first, second, to)
    pieces = DTensor.from_local(torch.full((4, 4), float(dist.get_rank())), mesh, [Partial(), Partial()])
    assert (pieces.full_tensor() == 6).all()
    assert (pieces.redistribute(mesh, [Shard(0), Replicate()]).full_tensor() == 6).all()


def make_model():
    torch.manual_seed(5)
    return torch.nn.Sequential(torch.nn.Linear(9, 16), torch.nn.Tanh(), torch.nn.Linear(16, 7))


def check_fully_sharded():
    """Losses and the whole state are those of one process on all data; sums of four in another order differ in the last digits."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    from torch.distributed.fsdp import fully_shard
    me, n = dist.get_rank(), dist.get_world_size()
    single, sharded = make_model(), make_model()
    for layer in (sharded[0], sharded[2], sharded):
        fully_shard(layer, mesh=init_device_mesh("cpu", (n,)))
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.5) for model in (single, sharded)]
    for step in range(3):
        data = torch.randn(4 * n, 9, generator=torch.Generator().manual_seed(step))
        for model, optimizer, part in ((single, optimizers[0], data), (sharded, optimizers[1], data[4 * me:4 * me + 4])):
            optimizer.zero_grad()
            model(part).square().mean().backward()
            optimizer.step()
    found = get_model_state_dict(sharded, options=StateDictOptions(full_state_dict=True))
    if me == 0:  # The others get none.
        for name, wanted in single.state_dict().items():
            assert torch.allclose(found[name], wanted, rtol=1e-5, atol=1e-6), name


def check_operations():
    me, n = dist.get_rank(), dist.get_world_size()
    values = [brought(rank, 40) for rank in range(n)]
    for factor in (0.5, torch.tensor([0.25])):
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
            scaled = sum(values).to(dtype) * float(factor)  # Quarters of small numbers are exact in all of them.
            operation = dist._make_nccl_premul_sum(factor)
            ours = values[me].to(dtype, copy=True)
            dist.all_reduce(ours, operation)
            assert torch.equal(ours, scaled), (factor, dtype)
            part = torch.empty(40 // n, dtype=dtype)
            dist.reduce_scatter_tensor(part, values[me].to(dtype), operation)
            assert torch.equal(part, scaled.chunk(n)[me])
            ours = values[me].to(dtype, copy=True)
            dist.reduce(ours, 1, operation)
            assert me != 1 or torch.equal(ours, scaled)
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        ours = values[me].to(dtype, copy=True)
        gathered = [torch.empty_like(ours) for _ in range(n)]
        dist.all_gather(gathered, ours)
        assert all(torch.equal(part.float(), whole) for part, whole in zip(gathered, values))
        swapped = torch.empty_like(ours)
        dist.all_to_all_single(swapped, ours)
        assert torch.equal(swapped.float(), torch.cat([whole.chunk(n)[me] for whole in values]))
        for operation, total in ((dist.ReduceOp.SUM, sum(values)), (dist.ReduceOp.MAX, torch.stack(values).max(0).values)):
            reduced = ours.clone()
            dist.all_reduce(reduced, operation)
            assert torch.equal(reduced.float(), total.to(dtype).float()), (dtype, operation)
    average = values[me].to(torch.bfloat16)
    dist.all_reduce(average, dist.ReduceOp.AVG)
    assert torch.equal(average, (sum(values) / n).to(torch.bfloat16))
    try:
        dist.all_reduce(torch.ones(3, dtype=torch.int32), dist._make_nccl_premul_sum(2.0))
    except ValueError as error:
        assert "PREMUL_SUM of Int" in str(error), error
    else:
        raise AssertionError("not refused")


def check_splitting():
    """As torch's split_group does it, which itself wants an accelerator."""
    me = dist.get_rank()
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert backend.supports_splitting
    halves = [[0, 2], [1, 3]]
    ranks = halves[me % 2]
    options = backend.options
    assert options._timeout == datetime.timedelta(seconds=60)
    half = dist.group.WORLD.split_group(ranks, datetime.timedelta(seconds=50), options, f"half{me % 2}", "")
    assert (half.rank(), half.size()) == (ranks.index(me), 2)
    total = torch.tensor([float(me)])
    half.allreduce([total]).wait()
    assert total.item() == sum(ranks)


def check_many_calls(calls):
    """Memory grows by no object a call: 60,000 calls that kept 100 bytes would show as 6 MB."""
    def resident():
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    tensor, other = torch.ones(8), torch.empty(8 * dist.get_world_size())
    def call(times):
        for _ in range(times):
            dist.all_reduce(tensor, dist.ReduceOp.MAX)
            dist.all_gather_into_tensor(other, tensor)
    call(2000)
    before = resident()
    call(calls // 2)  # Of two each.
    assert resident() - before < 3e6, resident() - before


def check_ranges():
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        dist.all_reduce(torch.ones(1000))
        dist.barrier()
    names = [event.name for event in recorded.events()]
    assert "espalier:all_reduce" in names and "espalier:barrier" in names, names
    shapes = [event.input_shapes for event in recorded.events() if event.name == "espalier:all_reduce"]
    assert [[1000]] in shapes, shapes
    check_tracks(profile, ProfilerActivity)


def check_tracks(profile, activities):
    """Ranges of calls are on the backend's tracks, whole and in PyTorch's words, while the caller goes on."""
    me, other = dist.get_rank(), 1 - dist.get_rank()
    values, large = torch.ones(1000), torch.ones(1 << 22)
    with profile(activities=[activities.CPU], record_shapes=True) as recorded:
        dist.broadcast(values, 0)
        works = [dist.all_reduce(large, async_op=True), dist.isend(values, other), dist.irecv(torch.empty(1000), other)]
        for _ in range(20):
            values @ values
        for work in works:
            work.wait()
        dist.all_gather_into_tensor(torch.empty(10, dtype=torch.bfloat16), torch.ones(5, dtype=torch.bfloat16))
    with tempfile.TemporaryDirectory() as folder:
        recorded.export_chrome_trace(folder + "/trace.json")
        events = [event for event in json.loads(pathlib.Path(folder, "trace.json").read_text())["traceEvents"] if event.get("ph") == "X"]
    ranges = {event["name"]: event for event in events if event["name"].startswith("espalier:")}
    assert set(ranges) == {"espalier:broadcast", "espalier:all_reduce", "espalier:send", "espalier:recv", "espalier:_all_gather_base"}, ranges
    assert (ranges["espalier:broadcast"]["args"]["Input Dims"], ranges["espalier:broadcast"]["args"]["Input type"]) == ([[1000]], ["float"])
    callers = {event["tid"] for event in events if event["name"].startswith("c10d::")}
    assert not callers & {event["tid"] for event in ranges.values()}, (callers, ranges)
    tracks = {}
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        around = tracks.setdefault((event["pid"], event["tid"]), [])
        while around and around[-1] <= event["ts"]:
            around.pop()
        assert not around or event["ts"] + event["dur"] <= around[-1] + 0.01, event  # Microseconds, rounded.
        around.append(event["ts"] + event["dur"])
    said = [event["args"] for event in events if event["name"] == "record_param_comms"]
    words = [(one["Collective name"], one["In msg nelems"], one["Out msg nelems"], one["dtype"], one["Group size"]) for one in said]
    assert words == [("broadcast", 1000, 1000, "Float", 2), ("allreduce", 1 << 22, 1 << 22, "Float", 2), ("send", 1000, 1000, "Float", 2),
                     ("recv", 1000, 1000, "Float", 2), ("_allgather_base", 5, 10, "BFloat16", 2)], (me, words)


def check_words():
    """Errors name what was called, in PyTorch's words."""
    me = dist.get_rank()
    groups = [dist.new_group() for _ in range(2)] + [dist.new_group(timeout=datetime.timedelta(seconds=2))]
    calls = [(lambda: dist.broadcast(torch.ones(1000), 0, group=groups[0]), lambda: dist.all_reduce(torch.ones(1000), group=groups[0]),
              "broadcast of 1000 float, root 0"),
             (lambda: dist.barrier(group=groups[1]), lambda: dist.broadcast(torch.ones(3).double(), 0, group=groups[1]), "barrier"),
             (lambda: dist.barrier(group=groups[2]), lambda: time.sleep(6), "init_process_group(timeout=)")]
    for first, second, word in calls:
        try:
            (second if me else first)()
        except RuntimeError as error:
            assert word in str(error) and "uint8" not in str(error) and "--timeout" not in str(error), error
        else:
            assert me == 1 and word == "init_process_group(timeout=)", word


def check_calls_from_callbacks():
    """What a future calls back may make calls of the same group and wait for them, as PowerSGD's hook does, and those of theirs too. All
    ranks make the group's calls in one order, so nobody else makes any meanwhile."""
    n = dist.get_world_size()
    def again(depth):
        def call(future):
            tensor = future.value()[0]
            made = dist.all_reduce(tensor, async_op=True).get_future()
            return (made.then(again(depth - 1)) if depth else made).wait()
        return call
    for depth in (0, 1, 3) * 10:
        value = dist.all_reduce(torch.ones(5), async_op=True).get_future().then(again(depth)).wait()
        value = value[0] if isinstance(value, list) else value
        assert (value == n ** (depth + 2)).all(), (value, depth)


def abort_from_one():
    me = dist.get_rank()
    if me == 1:
        time.sleep(0.3)
        dist.group.WORLD._get_backend(torch.device("cpu")).abort()
    try:
        dist.all_reduce(torch.ones(10))
    except RuntimeError as error:
        assert "aborted" in str(error), error
    else:
        raise AssertionError("the call ended well")


def keep_waiting():
    """A limit that is set later holds for calls that do not bring one."""
    me = dist.get_rank()
    dist.barrier()
    dist.group.WORLD.set_timeout(datetime.timedelta(seconds=1))
    begin = time.monotonic()
    if me == 0:
        try:
            dist.all_reduce(torch.ones(10))
        except RuntimeError as error:
            assert "timed out" in str(error) and time.monotonic() - begin < 10, error
        else:
            raise AssertionError("the call ended well")
    else:
        time.sleep(2)


def begin_anew(turns):
    """Ranks that leave earlier than rank 0, or later, begin anew on one port: nobody believes what an earlier job left there."""
    me, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    for turn in range(turns):
        dist.init_process_group("cpu:espalier,cuda:espalier" if turn % 2 else "espalier", timeout=datetime.timedelta(seconds=20))
        total = torch.ones(3)
        dist.all_reduce(total)
        assert total[0] == n
        dist.group.WORLD._get_backend(torch.device("cpu")).monitored_barrier(datetime.timedelta(seconds=20))
        group = dist.new_group([0, 1])
        if me < 2:
            dist.all_reduce(total, group=group)
            other = torch.tensor([float(me)])
            work = dist.isend(other, 1 - me)
            got = torch.empty(1)
            dist.recv(got, 1 - me)
            work.wait()
            assert got.item() == 1 - me
        if (turn + me) % 3 == 0:
            time.sleep(0.2)
        dist.destroy_process_group()


class Today(unittest.TestCase):
    def test_coalesced_forms(self):
        for world in (1, 3, 4):
            run_ranks(check_coalesced_forms, world)

    def test_functional_collectives_also_compiled(self):
        run_ranks(check_functional_collectives, 3)

    def test_meshes_and_distributed_tensors(self):
        run_ranks(check_meshes, 4)

    def test_fully_sharded_training_equals_one_process(self):
        run_ranks(check_fully_sharded, 4)

    def test_operations_and_types(self):
        run_ranks(check_operations, 4)

    def test_splitting(self):
        run_ranks(check_splitting, 4)

    def test_many_calls_keep_nothing(self):
        run_ranks(check_many_calls, 2, 60_000)

    def test_profiler_shows_ranges(self):
        run_ranks(check_ranges, 2)

    def test_errors_in_words_of_pytorch(self):
        run_ranks(check_words, 2)

    def test_callbacks_make_calls(self):
        for world in (1, 3):
            run_ranks(check_calls_from_callbacks, world)

    def test_abort_ends_calls_of_all(self):
        run_ranks(abort_from_one, 3)

    def test_timeout_that_is_set_later(self):
        run_ranks(keep_waiting, 2)

    def test_begins_anew_on_one_port(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        program = ("import sys; sys.path.insert(0, sys.argv[1])\nimport torch_today\ntorch_today.begin_anew(7)\n")
        ranks = []
        for rank in range(3):
            environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=str(rank), WORLD_SIZE="3")
            ranks.append(subprocess.Popen([sys.executable, "-c", program, str(pathlib.Path(__file__).parent)], env=environment,
                                          stderr=subprocess.PIPE, text=True))
        for rank in ranks:
            said = rank.communicate(timeout=120)[1]
            self.assertEqual(rank.returncode, 0, said)


class Compilation(unittest.TestCase):
    """Of a source that needs no PyTorch, which is quick."""

    def compile(self, folder, cxx, processes=1):
        program = ("import pathlib, sys; from espalier import _torch_build as build\n"
                   "print(build.compiled(pathlib.Path(sys.argv[1]), 'probe'))\n")
        source = pathlib.Path(folder, "source")
        source.mkdir(exist_ok=True)
        (source / "probe.cpp").write_text("int probe() { return 7; }\n")
        environment = dict(os.environ, CXX=cxx, XDG_CACHE_HOME=f"{folder}/cache")
        started = [subprocess.Popen([sys.executable, "-c", program, source], env=environment, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True) for _ in range(processes)]
        return [(*process.communicate(timeout=120), process.returncode) for process in started]

    def test_once_for_ranks_that_start_together(self):
        with tempfile.TemporaryDirectory() as folder:
            compiler = pathlib.Path(folder, "compiler")
            compiler.write_text(f"#!/bin/sh\necho once >>{folder}/count\nsleep 1\nexec c++ \"$@\"\n")
            compiler.chmod(0o755)
            ended = self.compile(folder, str(compiler), 3)
            self.assertEqual([status for _, _, status in ended], [0] * 3, ended)
            self.assertEqual(len({out for out, _, _ in ended}), 1)
            self.assertEqual(pathlib.Path(folder, "count").read_text().split(), ["once"])

    def test_no_compiler_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            _, told, status = self.compile(folder, "/nowhere/c++")[0]
            self.assertEqual(status, 1)
            self.assertIn("CXX names /nowhere/c++, which is not there", told)
            self.assertIn("apt-get install g++", told)

    def test_what_the_compiler_says_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            compiler = pathlib.Path(folder, "compiler")
            compiler.write_text("#!/bin/sh\necho 'x.cpp:1: error: no such thing'\nexit 1\n")
            compiler.chmod(0o755)
            _, told, status = self.compile(folder, str(compiler))[0]
            self.assertEqual(status, 1)
            self.assertIn("error: no such thing", told)
            self.assertTrue(list(pathlib.Path(folder, "cache", "espalier").glob("*.log")))

    def test_nothing_is_loaded_from_a_folder_that_others_may_write(self):
        with tempfile.TemporaryDirectory() as folder:
            shared = pathlib.Path(folder, "cache", "espalier")
            shared.mkdir(parents=True)
            shared.chmod(0o777)
            out, told, status = self.compile(folder, "c++")[0]
            self.assertEqual(status, 0, told)
            self.assertFalse(out.startswith(str(folder)), out)
            self.assertEqual(list(shared.iterdir()), [])
            pathlib.Path(out.strip()).unlink()


if __name__ == "__main__":
    unittest.main(warnings="ignore")
