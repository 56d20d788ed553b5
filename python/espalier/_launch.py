"""Ranks as processes of this machine."""
import os
import pathlib
import pickle
import runpy
import sys
import tempfile
import types

from . import _espalier
from .errors import Error

_importing_main = False


def run(function, world, *arguments, grace=5.0):
    """Calls function(*arguments) in `world` processes, the ranks of one job, and gives what each returned.

    In them, `espalier.Communicator()` finds its rank and the job. Function, arguments and results are pickled, so the function
    belongs to a module or script, which the ranks import (a script needs `if __name__ == "__main__"`). What ranks write to
    standard error comes with "rank 3: " before it. A rank that fails raises espalier.Error with that `rank`; the
    others are ended after `grace` seconds.

    >>> import operator, espalier
    >>> espalier.run(operator.add, 2, 1, 2)
    [3, 3]
    """
    if _importing_main:
        raise Error("invalid_input", "run was called while a rank imports the script",
                    'call it under if __name__ == "__main__"')
    main = sys.modules["__main__"]
    with tempfile.TemporaryDirectory(prefix="espalier") as folder:
        task = {"path": sys.path, "main": getattr(main, "__file__", None), "call": pickle.dumps((function, arguments))}
        (pathlib.Path(folder) / "task").write_bytes(pickle.dumps(task))
        start = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent.parent)!r}); " \
                f"from espalier._launch import _be_rank; _be_rank({folder!r})"
        try:
            _espalier.run_ranks(sys.executable, ["-c", start], world, grace,
                                lambda rank, line: print(f"rank {rank}: {line}", file=sys.stderr))
        except Error as error:
            error.rank = _to_blame(pathlib.Path(folder), error.rank)
            raise
        files = [pathlib.Path(folder) / str(rank) for rank in range(world)]
        for rank, file in enumerate(files):
            if not file.exists():
                raise Error("unavailable", f"rank {rank} ended without a result", "the function has to return", rank)
        return [pickle.loads(file.read_bytes()) for file in files]


def _to_blame(folder, rank):
    """The rank that a failed one names, or the one that it names, and so on: who sees a peer end may end before the peer does."""
    seen = set()
    while rank is not None and rank not in seen:
        seen.add(rank)
        file = folder / f"{rank}.blames"
        if not file.exists():
            break
        rank = int(file.read_text())
    return rank


def _be_rank(folder):
    task = pickle.loads((pathlib.Path(folder) / "task").read_bytes())
    sys.path[:] = task["path"]
    if task["main"] is not None:
        global _importing_main
        _importing_main = True
        main = types.ModuleType("__main__")
        main.__dict__.update(runpy.run_path(task["main"], run_name="__mp_main__"))
        sys.modules["__main__"] = main
        _importing_main = False
    function, arguments = pickle.loads(task["call"])
    own = pathlib.Path(folder) / os.environ["ESPALIER_RANK"]
    try:
        result = function(*arguments)
    except Error as error:
        if error.rank is not None:
            own.with_suffix(".blames").write_text(str(error.rank))
        raise
    own.write_bytes(pickle.dumps(result))
