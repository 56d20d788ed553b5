"""Runs held against each other."""
import dataclasses
import os

from . import _espalier
from ._tables import Table


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What two runs differ in. Errors are (a - b) / b."""

    rows: Table  #: Of two tables: collective, algorithm, size, a, b (seconds), error. Of two timelines: what, name, a, b, error.
    errors: dict  #: count, median, p90, worst and bias of the rows' errors; of timelines of the transfers' durations.
    notes: list  #: What was done to make them comparable.
    svg: str  #: Of two timelines: both over each other; else empty.

    def to_pandas(self, units=False):
        """The rows as a pandas.DataFrame, whose columns say their units with `units`."""
        return self.rows.to_pandas(units)

    def _repr_html_(self):
        return self.svg + self.rows._repr_html_()


def compare(a, b, collective="", algorithm=""):
    """Holds file `a`, mostly a prediction, against file `b`, as `espalier compare` does.

    Each is a timeline (`Simulation.save_trace`, `espalier run --trace`), a results document (`--json` of simulate and run), or
    what nccl-tests print. `collective` is that of an nccl-tests file that does not say it; `algorithm` compares only that one.

    >>> import tempfile, espalier
    >>> machine = espalier.Topology.load("dgx1v")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("ring", "tree"):
    ...         plan = espalier.plan(machine, "all_reduce", algorithm=name)
    ...         espalier.simulate(plan, "1M", timeline=True).save_trace(f"{folder}/{name}.json")
    ...     same = espalier.compare(f"{folder}/ring.json", f"{folder}/ring.json")
    ...     other = espalier.compare(f"{folder}/ring.json", f"{folder}/tree.json")
    >>> same.rows[0]["error"], other.rows[0]["error"] < 0, other.svg[:4]
    (0.0, True, '<svg')
    >>> isinstance(same, espalier.Comparison), same.errors["count"] > 0
    (True, True)
    """
    rows, errors, notes, svg = _espalier.compare_files(os.fspath(a), os.fspath(b), collective, algorithm)
    return Comparison(Table(rows), errors, notes, svg)
