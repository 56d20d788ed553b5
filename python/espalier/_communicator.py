"""A rank in Python."""
import atexit
import contextlib
import ctypes
import sys
import weakref

import numpy

from . import _espalier
from ._checks import as_name
from ._interrupt import end_calls_on_interrupt
from ._units import whole_number
from .errors import Error

_open = weakref.WeakSet()


def as_array(data):
    """The numpy array that shows `data` where it lies: an array, what has the buffer protocol, or `__dlpack__` on the CPU.

    >>> from espalier._communicator import as_array
    >>> memory = bytearray(8)
    >>> as_array(memory)[0] = 7
    >>> memory[0]
    7
    """
    if type(data) is numpy.ndarray or data is None:
        return data
    try:
        return numpy.asarray(memoryview(data))
    except TypeError:
        pass
    if not hasattr(data, "__dlpack__"):
        raise _error(f"{type(data).__name__} is no array", "give a numpy array, a buffer, or what has __dlpack__")
    shown = numpy.from_dlpack(data)
    if shown.flags.writeable or shown.nbytes == 0 or not shown.flags.c_contiguous:
        return shown
    # DLPack's first version does not say whether memory may be written to, and numpy then says no.
    memory = (ctypes.c_char * shown.nbytes).from_address(shown.ctypes.data)
    memory.owner = shown
    return numpy.frombuffer(memory, shown.dtype).reshape(shown.shape)


def _error(message, help):
    return Error("invalid_input", message, help)


class Handle:
    """A collective that was started. Its arrays are kept, here and by the communicator, until it has ended.

    >>> import espalier, numpy
    >>> with espalier.Communicator() as ranks:
    ...     handle = ranks.all_reduce(numpy.ones(4, "f4"), asynchronous=True)
    ...     isinstance(handle, espalier.Handle), handle.wait().tolist(), handle.test()
    (True, [1.0, 1.0, 1.0, 1.0], True)
    """

    def __init__(self, communicator, call, result):
        self._communicator, self._call, self._result = communicator, call, result

    def test(self):
        """Whether it has ended, well or not."""
        return self._call.test()

    def wait(self):
        """Waits for its end and gives the array with the result. Raises espalier.Error where it failed."""
        self._communicator._call(lambda inner: inner.wait(self._call))
        return self._result


class Communicator:
    """Ranks that run collectives together, from this rank's side. All ranks make the same calls in the same order.

    `rank`, `world` and `rendezvous` ("host:port" of rank 0) are taken from the launcher where they are not given: `espalier.run`,
    mpirun, srun, torchrun. `transport` is "auto", "shm", "tcp", "shm+verbs" or "verbs"; `timeout` is the seconds that nothing may
    move in a call; `algorithm` and `topology` (one rank per process; default: all ranks connected alike) choose the schedules.
    Ranks that are started one by one share ESPALIER_SECRET or ESPALIER_SECRET_FILE.

    Arrays are numpy arrays, buffers, or what has `__dlpack__` (CPU), contiguous; calls work on them where they lie. Counts follow
    NCCL: all_gather, gather receive, and reduce_scatter, scatter send, a part for every rank. Methods give the array received into.
    With `asynchronous=True` they give a Handle at once. What fails raises espalier.Error, whose `rank` is the one to blame; the
    job is then over. Ctrl-C ends a call, and the job, on every rank.

        with espalier.Communicator() as ranks:
            total = ranks.all_reduce(numpy.arange(3.0))

    >>> import espalier, numpy
    >>> with espalier.Communicator() as ranks:  # A job of one.
    ...     ones, part = numpy.ones(2), ranks.empty(2, "f8")
    ...     ranks.reduce(ones.copy()), ranks.broadcast(ones.copy()), ranks.gather(ones), ranks.reduce_scatter(ones)
    ...     ranks.scatter(ones, part), ranks.all_to_all(ones)
    ...     ranks.barrier()
    ...     with ranks.group():
    ...         total = ranks.all_reduce(ones)
    ...     half = ranks.split([0])
    ...     half.size, ranks.transports, total.tolist()
    ...     half.close()
    (array([1., 1.]), array([1., 1.]), array([[1., 1.]]), array([1., 1.]))
    (array([1., 1.]), array([1., 1.]))
    (1, ['shm'], [1.0, 1.0])
    >>> try:
    ...     espalier.Communicator(rank=2, world=2)
    ... except espalier.Error as error:
    ...     print(error.code)
    invalid_input
    """

    def __init__(self, rank=None, world=None, rendezvous=None, transport="auto", timeout=30.0, algorithm="auto",
                 topology=None):
        self._take(_espalier.Communicator(rank, world, rendezvous, transport, timeout, algorithm, topology))

    def _take(self, inner):
        self._inner, self._calls = inner, 0
        self.rank, self.size = inner.rank, inner.size
        _open.add(self)
        end_calls_on_interrupt(_open)

    def _call(self, call):
        self._calls += 1
        try:
            return call(self._inner)
        finally:
            self._calls -= 1

    def _collective(self, kind, send, receive, op="sum", root=0, asynchronous=False, shares=None, counts=None):
        op = "avg" if op == "mean" else as_name(op, "an operation's name", "sum, prod, min, max, avg or mean")
        root = whole_number(root, "the root")
        if asynchronous:
            return Handle(self, self._inner.start(kind, as_array(send), as_array(receive), op, root, shares, counts),
                          receive)
        self._calls += 1
        try:
            self._inner.run(kind, as_array(send), as_array(receive), op, root, shares, counts)
        finally:
            self._calls -= 1
        return receive

    @property
    def transports(self):
        """How each rank is reached, by rank: "shm", "tcp", ..."""
        return self._inner.transports

    def all_reduce(self, send, receive=None, op="sum", asynchronous=False):
        """Adds up `send` of all ranks; in place where there is no `receive`. `op`: sum, prod, min, max, avg (or mean, numpy's word)."""
        return self._collective("all_reduce", send, send if receive is None else receive, op, 0, asynchronous)

    def reduce(self, send, receive=None, op="sum", root=0, asynchronous=False):
        """As all_reduce, with the result on `root` only: in place there where there is no `receive`."""
        if receive is None and self.rank == root:
            receive = send
        return self._collective("reduce", send, receive, op, root, asynchronous)

    def broadcast(self, array, root=0, asynchronous=False):
        """Gives all ranks what `array` is on `root`."""
        return self._collective("broadcast", array, array, "sum", root, asynchronous)

    def _room(self, array, is_needed, shares):
        if not is_needed:
            return None
        shown = as_array(array)
        if shares is not None:
            return numpy.empty(int(shares.sum()), shown.dtype)
        return numpy.empty((self.size, *shown.shape), shown.dtype)

    def _shares(self, shares):
        """Elements of each rank, as the calls take them; None for equal shards."""
        if shares is None:
            return None
        try:
            shares = numpy.array(shares, dtype=numpy.int64)
        except (TypeError, ValueError):
            raise _error(f"shares are {shares!r}", "give the elements of each rank") from None
        if shares.shape != (self.size,):
            raise _error(f"shares of shape {shares.shape} for {self.size} ranks", "give the elements of each rank")
        return shares

    def all_gather(self, send, receive=None, shares=None, asynchronous=False):
        """Gives all ranks the parts of all: (size, *shape of `send`) where there is no `receive`.

        With `shares`, the elements of each rank, parts are unequal and lie one after the other.

        >>> import espalier, numpy
        >>> with espalier.Communicator() as ranks:
        ...     ranks.all_gather(numpy.ones(3, "f4"), shares=[3]).tolist()
        [1.0, 1.0, 1.0]
        """
        shares = self._shares(shares)
        receive = self._room(send, True, shares) if receive is None else receive
        return self._collective("all_gather", send, receive, asynchronous=asynchronous, shares=shares)

    def gather(self, send, receive=None, root=0, shares=None, asynchronous=False):
        """As all_gather, on `root` only; None elsewhere."""
        shares = self._shares(shares)
        if receive is None:
            receive = self._room(send, self.rank == root, shares)
        return self._collective("gather", send, receive, "sum", root, asynchronous, shares)

    def reduce_scatter(self, send, receive=None, op="sum", shares=None, asynchronous=False):
        """Adds up `send`, a part for every rank along its first axis, and gives each rank its part; `shares` as in all_gather."""
        shares = self._shares(shares)
        if receive is None:
            shown = as_array(send)
            if shares is not None:
                receive = numpy.empty(int(shares[self.rank]), shown.dtype)
            elif shown.ndim == 0 or len(shown) % self.size:
                raise _error(f"{shown.shape} has no equal parts for {self.size} ranks", "give `receive`, or `shares`")
            else:
                receive = numpy.empty((len(shown) // self.size, *shown.shape[1:]), shown.dtype)
        return self._collective("reduce_scatter", send, receive, op, 0, asynchronous, shares)

    def scatter(self, send, receive, root=0, shares=None, asynchronous=False):
        """Gives each rank its part of `send` of `root`; others send None. `shares` as in all_gather."""
        return self._collective("scatter", send, receive, "sum", root, asynchronous, self._shares(shares))

    def _numbers(self, numbers, what):
        """A number for each rank; None where there are none."""
        if numbers is None:
            return None
        try:
            given = numpy.asarray(numbers)
        except ValueError:
            raise _error(f"{what} are {numbers!r}", "give a whole number for each rank") from None
        if given.shape != (self.size,):
            raise _error(f"{what} of shape {given.shape} for {self.size} ranks", "give a number for each rank")
        if given.dtype == numpy.int64:
            return numpy.array(given)  # The caller may change its own before the call has ended.
        return numpy.array([whole_number(number, what) for number in given.tolist()], dtype=numpy.int64)

    def all_to_all(self, send, receive=None, asynchronous=False, send_counts=None, receive_counts=None,
                   send_displacements=None, receive_displacements=None):
        """Part r of `send` goes to rank r; part r of what is received is from rank r.

        With `send_counts`, parts are unequal: so many entries along the first axis of `send` go to each rank, and `receive_counts`
        come from each, one after the other, or where the displacements say. Counts that do not match end the call on both ranks.
        Ranks tell each other their counts first where there are no `receive_counts`. The arrays may be the same one.

        >>> import espalier, numpy
        >>> with espalier.Communicator() as ranks:
        ...     ranks.all_to_all(numpy.arange(6).reshape(3, 2), send_counts=[2], send_displacements=[1]).tolist()
        [[2, 3], [4, 5]]
        """
        if send_counts is None and receive_counts is None:
            if send_displacements is not None or receive_displacements is not None:
                raise _error("all_to_all: displacements without counts", "give send_counts, too")
            if receive is None:
                receive = numpy.empty_like(as_array(send))
            return self._collective("all_to_all", send, receive, asynchronous=asynchronous)
        if send_counts is None:
            raise _error("all_to_all: receive_counts without send_counts", "give send_counts, too")
        send_counts = self._numbers(send_counts, "send_counts")
        if receive_counts is None:
            receive_counts = self.exchange_counts(send_counts)
        receive_counts = self._numbers(receive_counts, "receive_counts")
        places = self._numbers(receive_displacements, "receive_displacements")
        shown = as_array(send)
        if receive is None:
            ends = receive_counts if places is None else receive_counts + places
            length = int(receive_counts.sum() if places is None else ends.max())
            if min(receive_counts.min(), ends.min(), length) < 0:
                raise _error(f"receive_counts are {receive_counts.tolist()}", "give whole numbers from 0 on, and fewer")
            receive = numpy.empty((length, *shown.shape[1:]), shown.dtype)
        counts = (send_counts, self._numbers(send_displacements, "send_displacements"), receive_counts, places)
        return self._collective("all_to_all", send, receive, asynchronous=asynchronous, counts=counts)

    def exchange_counts(self, counts):
        """Tells each rank its entry of `counts`, and gives what each has for this one: how much will come from whom.

        >>> import espalier
        >>> with espalier.Communicator() as ranks:
        ...     ranks.exchange_counts([7]).tolist()
        [7]
        """
        counts = self._numbers(counts, "counts")
        return self._call(lambda inner: inner.exchange_counts(counts))

    def send(self, array, peer):
        """To one rank, which receives it.

        >>> import pathlib, sys, tempfile, espalier
        >>> folder = tempfile.mkdtemp()
        >>> sys.path.append(folder)
        >>> _ = pathlib.Path(folder, "swapping.py").write_text('''
        ... import espalier, numpy
        ... def swap(step):
        ...     with espalier.Communicator() as ranks:
        ...         got = numpy.empty(1)
        ...         with ranks.group():
        ...             ranks.send(numpy.full(1, 10.0 * ranks.rank + step), 1 - ranks.rank)
        ...             ranks.receive(got, 1 - ranks.rank)
        ...         return float(got[0])
        ... ''')
        >>> import swapping
        >>> espalier.run(swapping.swap, 2, 5)
        [15.0, 5.0]
        """
        self._call(lambda inner: inner.send(as_array(array), whole_number(peer, "a rank")))

    def receive(self, array, peer):
        """From one rank, which sends it."""
        self._call(lambda inner: inner.receive(as_array(array), whole_number(peer, "a rank")))
        return array

    def barrier(self):
        """Returns when all ranks came."""
        self._call(lambda inner: inner.barrier())

    @contextlib.contextmanager
    def group(self):
        """Calls within are launched together at its end; results are there after it."""
        self._inner.group_begin()
        try:
            yield
        except BaseException as error:
            self._inner.abort(f"the group raised {type(error).__name__}")
            with contextlib.suppress(Exception):
                self._inner.group_end()
            raise
        self._call(lambda inner: inner.group_end())

    def split(self, members, name="", algorithm="auto"):
        """A communicator of some ranks, which all call this; ranks are numbered in this order."""
        part = object.__new__(Communicator)
        part._take(self._call(lambda inner: inner.split(list(members), name, algorithm)))
        return part

    def empty(self, shape, dtype="float32"):
        """A zeroed array that the ranks of this machine reach directly: calls on it copy nothing in between.

        It keeps the job; the memory is given back when nothing shows it any more. A forked child has a copy of its own.
        """
        dtype = numpy.dtype(dtype)
        size = int(numpy.prod(shape, dtype=numpy.int64)) * dtype.itemsize
        return self._call(lambda inner: inner.allocate(size)).view(dtype).reshape(shape)

    @contextlib.contextmanager
    def registered(self, array):
        """Within, calls on this memory copy nothing in between, as on an array of `empty`.

        The other ranks of the machine reach its pages meanwhile, so it consists of whole pages, and no other thread uses it at the
        beginning and the end. A forked child has a copy of its own. What is mapped from a file, shared with other processes or
        read-only is refused: its pages are not this process's to replace.

        >>> import mmap, espalier, numpy
        >>> pages = numpy.frombuffer(mmap.mmap(-1, 8192, flags=mmap.MAP_PRIVATE), "f4")
        >>> with espalier.Communicator() as ranks, ranks.registered(pages):
        ...     pages += 1
        ...     float(ranks.all_reduce(pages)[0])
        1.0
        """
        shown = as_array(array)
        self._call(lambda inner: inner.register_buffer(shown))
        try:
            yield array
        finally:
            self._call(lambda inner: inner.deregister_buffer(shown))

    def abort(self, reason):
        """Fails the job on every rank, also while a call runs in another thread.

        >>> import espalier, numpy
        >>> ranks = espalier.Communicator()
        >>> ranks.abort("enough")
        >>> try:
        ...     ranks.all_reduce(numpy.ones(1))
        ... except espalier.Error as error:
        ...     print("enough" in error.message)
        True
        >>> ranks.close()
        """
        self._inner.abort(reason)

    def close(self):
        """Leaves; calls that were started end before."""
        _open.discard(self)
        self._inner.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.barrier()  # Nobody leaves while another still works.
        elif not issubclass(kind, KeyboardInterrupt):
            self.abort(f"{kind.__name__}: {error}")
        self.close()

    def __repr__(self):
        return f"<espalier.Communicator rank {self.rank} of {self.size}>"


@atexit.register
def _leave():
    """Those still open leave with a goodbye; with a reason where an exception ends the process."""
    for communicator in list(_open):
        if getattr(sys, "last_type", None) is not None:
            communicator.abort(f"{sys.last_type.__name__}: {sys.last_value}")
        communicator.close()
