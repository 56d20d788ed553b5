"""Espalier in Python: topologies, exact bounds, schedules and simulations of collective communication.

Sizes are bytes (or "64M", as on the command line), times seconds, rates bytes per second; exact figures are
fractions.Fraction. What is wrong raises espalier.Error.

>>> import espalier
>>> machine = espalier.Topology.load("dgx1v-degraded")
>>> limit = espalier.bound(machine, "all_gather")
>>> limit.time_per_byte, round(limit.busbw / 1e9, 2)
(Fraction(7, 880000000000), 110.0)
>>> plan = espalier.plan(machine, "all_gather", algorithm="packing")
>>> plan.verify()
[]
>>> result = espalier.simulate(plan, "256M")
>>> 0.98 < result.of_bound <= 1
True
"""

import os.path as _path

from ._namesake import warn_of_namesake as _warn_of_namesake

_warn_of_namesake(_path.dirname(_path.dirname(__file__)))

from ._topology import Topology
from .errors import Error
from ._calibrate import Calibration, calibrate
from ._compare import Comparison, compare
from ._communicator import Communicator, Handle
from ._estimate import Estimate, estimate
from ._experts import experts
from ._gossip import Gossip, gossip
from ._launch import run
from ._plans import Bound, Breach, Schedule, bound, plan, planners
from ._simulation import Simulation, Simulator, simulate
from ._sweep import sweep
from ._tables import Table
from ._units import parse_size
from . import _espalier
from ._checks import speak_own_words as _speak_own_words

__all__ = ["Bound", "Breach", "Calibration", "Communicator", "Comparison", "Error", "Estimate", "Gossip", "Handle", "Schedule", "Simulation", "Simulator", "Table", "Topology",
           "bound", "calibrate", "compare", "estimate", "experts", "gossip", "parse_size", "plan", "planners", "run", "simulate", "sweep"]

for _bound in (Topology, Schedule, Simulator):
    _speak_own_words(_bound)
_speak_own_words(_espalier.Communicator, but=("run", "start"))

__version__ = _espalier._version
