"""What software takes to send tokens to experts on other GPUs."""

import operator

from . import _espalier
from ._checks import as_name, as_topology
from .errors import Error


def _whole(value, name):
    try:
        number = operator.index(value)
    except TypeError:
        raise Error("invalid_input", f"{name} is {value!r}", "give a whole number") from None
    if abs(number) >= 2**62:
        raise Error("invalid_input", f"{name} is {number}", "give a smaller number")
    return number


def experts(topology, software="deepep-normal", tokens=128, hidden=7168, top_k=8, experts=256, sms=20, max_boxes=4, dispatch="fp8",
            combine="bf16", ranks=0, gpu="h100-sxm"):
    """The seconds of a dispatch of tokens to experts and of the combine, as `espalier experts` says them (docs/expert-parallel.md).

    Args:
        software: "deepep-normal", "deepep-low-latency", "trtllm-nvlink" or "trtllm-nvlink-one-sided".
        tokens, hidden, top_k, experts: tokens of a rank, elements of a token, experts of a token, experts of all ranks.
        sms, max_boxes: of deepep-normal: multiprocessors that it is given, boxes that the experts of a token may be in.
        dispatch, combine: how elements are written on the way: "bf16", "fp8" or "nvfp4".
        ranks: as many of the machine, from the first on; 0: all.
        gpu: whose multiprocessors there are.

    >>> import espalier
    >>> found = experts(espalier.Topology.load("dgx-h100"), tokens=4096, sms=24)
    >>> [phase["name"] for phase in found["phases"]], found["boxes"]
    (['dispatch', 'combine'], 1)
    >>> experts(espalier.Topology.load("dgx-h100"), tokens=8192, sms=24)["seconds"] > found["seconds"]
    True
    """
    numbers = [_whole(value, name) for value, name in (
        (tokens, "tokens"), (hidden, "hidden"), (top_k, "top_k"), (experts, "experts"), (sms, "sms"), (max_boxes, "max_boxes"))]
    count = _whole(ranks, "ranks")
    if count < 0:
        raise Error("invalid_input", f"ranks is {count}", "give a number of ranks, or 0 for all")
    names = [as_name(value, name, "a word") for value, name in ((software, "software"), (dispatch, "dispatch"), (combine, "combine"), (gpu, "gpu"))]
    return _espalier._experts(as_topology(topology), names[0], *numbers, names[1], names[2], count, names[3])
