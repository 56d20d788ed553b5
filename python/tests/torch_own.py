#!/usr/bin/env python3
"""PyTorch's own tests of distributed backends, with this one in gloo's place: torch_own.py [TEST ...] [-k PATTERN].

They come with PyTorch (torch.testing._internal.distributed). Whatever asks for gloo gets Espalier, so that the tests which are
for gloo alone run as well. Those for GPUs skip. What fails is run over gloo itself too. Not part of CI: they take minutes.
"""
import importlib.util
import multiprocessing
import os
import subprocess
import sys
import tempfile
import types
import unittest

try:
    import torch.distributed as dist
    import torch.distributed.distributed_c10d as c10d

    import espalier.torch
except ImportError as error:
    print(f"skipped: {error} (scripts/setup --torch installs PyTorch)")
    sys.exit(77)

FOLDER = tempfile.mkdtemp(prefix="espalier")
os.environ.update(BACKEND="gloo", WORLD_SIZE=os.environ.get("WORLD_SIZE", "3"), TEMP_DIR=FOLDER,
                  INIT_METHOD=f"file://{FOLDER}/shared_init_file", TEST_REPORT_SOURCE_OVERRIDE="dist-gloo")
for name in ("barrier", "test_dir", "init_dir"):
    os.makedirs(f"{FOLDER}/{name}", exist_ok=True)


class InPlaceOfGloo(type):
    """What PyTorch takes for the class of gloo's groups."""

    def __call__(cls, store, rank, size, timeout):
        return espalier.torch._make_group(store, rank, size, timeout)

    def __instancecheck__(cls, instance):
        return isinstance(instance, espalier.torch._torch.ProcessGroupEspalier)


def wrap_in_checks(wrapped_pg, store_prefix, store, rank, world_size, timeout, gloo=c10d.ProcessGroupGloo):
    """What TORCH_DISTRIBUTED_DEBUG=DETAIL does: its checks themselves go over gloo."""
    checks = gloo(c10d.PrefixStore(f"helper:{store_prefix}", store), rank, world_size, timeout=timeout)
    return c10d._ProcessGroupWrapper(wrapped_pg, checks)


class QuietLogger(dist.Logger):
    """Of DistributedDataParallel: takes a group that is called gloo for one of gloo's class, and reads fields that only those have."""

    def set_construction_data_and_log(self, *told):
        pass


if "PLAIN" not in os.environ:  # With it they run over gloo: what fails then as well is not this backend's.
    c10d.ProcessGroupGloo, c10d._create_process_group_wrapper = InPlaceOfGloo("ProcessGroupEspalier", (), {}), wrap_in_checks
    dist.Logger = QuietLogger
if importlib.util.find_spec("expecttest") is None:  # They derive from its class, and these use nothing of it.
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase, sys.modules["expecttest"].ACCEPT = unittest.TestCase, False

from torch.testing._internal.distributed import distributed_test  # noqa: E402
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402


def name_of_backend(group=None, tell=c10d.get_backend):
    """What tests are told, for the names of a profiler's events; PyTorch itself goes on with gloo's name."""
    return tell(group).replace("gloo", "espalier")


if "PLAIN" not in os.environ:
    for supported in (distributed_test.PROFILING_SUPPORTED_BACKENDS, distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS):
        supported.append("espalier")


class WithEspalier(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        if "PLAIN" not in os.environ and self._testMethodName != "test_get_backend":  # Which asks for the name that was given.
            distributed_test.dist.get_backend = name_of_backend
        else:
            distributed_test.dist.get_backend = c10d.get_backend
        self._start_processes(multiprocessing.get_context("fork").Process)


def short_name(test):
    return test.id().rpartition(".")[2]


if __name__ == "__main__":
    done = unittest.main(warnings="ignore", exit=False).result
    if "PLAIN" not in os.environ:
        failed = sorted(short_name(test) for test, _ in done.failures + done.errors)
        alike = [name for name in failed if subprocess.run([sys.executable, __file__, f"WithEspalier.{name}"], env={**os.environ, "PLAIN": "1"},
                                                           capture_output=True, check=False).returncode != 0]
        print(f"{done.testsRun - len(done.skipped) - len(failed)} passed, {len(failed)} failed, {len(done.skipped)} skipped")
        print("failed over gloo too:", " ".join(alike) or "none")
        print("failed over espalier alone:", " ".join(sorted(set(failed) - set(alike))) or "none")
    sys.exit(not done.wasSuccessful())
