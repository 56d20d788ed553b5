"""Records a real training step, and holds it against `espalier simulate --scenario` of the same step.

    recorder = StepRecorder()
    with recorder.step():
        ...                                                # what is computed
        with recorder.blocked(recorder.begin("all_reduce", tensor)):
            torch.distributed.all_reduce(tensor)
    compare_steps(recorder, folder)                        # on every rank, with the process group still there

The folder then has what every rank did: step.RANK.et, Chakra execution traces whose computing takes as long as it took here, with
step.yaml, the scenario of them; machine.yaml, a topology fitted to all_reduces of these ranks; and timeline.json, the measured and the simulated
step under each other for ui.perfetto.dev. Time is counted for both as docs/scenarios.md says: computing; exposed communication, in calls that
all their ranks have come to; waiting for others; idle.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

COMM_TYPES = {"all_reduce": 0, "broadcast": 5}  # ChakraProtoMsg.CollectiveCommType
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7  # its NodeType


@dataclasses.dataclass
class Event:
    """What a rank did: a piece of computing, or its part in a call. Nanoseconds of a clock that ranks of a machine share."""

    number: int  #: Among the rank's events of the step.
    kind: str  #: compute, send, receive, or a collective.
    name: str
    begin: int
    end: int = 0
    after: list = dataclasses.field(default_factory=list)  #: Events of this rank that had to end first, by number.
    size: int = 0
    peer: int = 0  #: Of send and receive; of a collective its root.
    tag: int = 0


class StepRecorder:
    """One rank's steps. What the rank does between `begin` and `blocked` is computing; a step's events are in the order of their begin.

    Outside `step` nothing is recorded, and `begin` gives None, which the others take.
    """

    def __init__(self):
        self.steps, self._events = [], None

    @contextlib.contextmanager
    def step(self):
        self._events, self._phase, self._mark = [], "compute", time.monotonic_ns()
        self._last, self._waited = [], []  # What the next piece of computing comes after.
        yield
        self._cut()
        self.steps.append(self._events)
        self._events = None

    def _add(self, *values, **more):
        event = Event(len(self._events), *values, **more)
        self._events.append(event)
        return event

    def _cut(self):
        """Ends the piece of computing that is under way."""
        now = time.monotonic_ns()
        if now == self._mark:
            return
        self._last = [self._add("compute", self._phase, self._mark, now, self._last + self._waited).number]
        self._waited, self._mark = [], now

    def new_phase(self, name):
        """What is computed from now on is called so."""
        if self._events is not None:
            self._cut()
            self._phase = name

    def begin(self, kind, tensor, peer=0, tag=0):
        """A call begins."""
        if self._events is None:
            return None
        self._cut()
        return self._add(kind, kind, self._mark, 0, self._last + self._waited, tensor.numel() * tensor.element_size(), peer, tag)

    def end(self, call):
        """It has ended, whichever thread says so; the first to say so counts."""
        if call is not None and call.end == 0:
            call.end = time.monotonic_ns()

    @contextlib.contextmanager
    def blocked(self, call):
        """Within, the rank waits for this call and does nothing else."""
        if call is not None:
            self._cut()
        yield
        self.end(call)
        self.waited_for(call)

    def waited_for(self, *calls):
        """Since the last begin of a call the rank has waited for these, which have ended, and computed nothing until then."""
        if self._events is not None and calls and None not in calls:
            self._mark = max(self._mark, *(call.end for call in calls))
            self._waited += [call.number for call in calls]


def _moved(events_of_ranks):
    """When all ranks of each call have come: {(rank, number): nanoseconds}, by the order of calls."""
    came, parts = {}, {}
    for rank, events in enumerate(events_of_ranks):
        counts = {}
        for number, event in enumerate(events):
            if event.kind == "compute":
                continue
            ends = {"send": (rank, event.peer, event.tag), "receive": (event.peer, rank, event.tag)}.get(event.kind, "collective")
            call = ends, event.kind if ends != "collective" else ends
            turn = counts[call] = counts.get(call, -1) + 1
            parts[rank, number] = ends, turn
            came[ends, turn] = max(came.get((ends, turn), 0), event.begin)
    return {part: came[call] for part, call in parts.items()}


def account(events_of_ranks):
    """{"step": seconds, "ranks": [{compute, exposed, waiting, idle}]} of a recorded step, as docs/scenarios.md counts."""
    begin = min(event.begin for events in events_of_ranks for event in events)
    end = max(event.end for events in events_of_ranks for event in events)
    moved, ranks = _moved(events_of_ranks), []
    for rank, events in enumerate(events_of_ranks):
        edges = {begin, end}
        for number, event in enumerate(events):
            edges |= {event.begin, event.end, min(max(moved.get((rank, number), event.begin), event.begin), event.end)}
        edges, times = sorted(edges), dict.fromkeys(("compute", "exposed", "waiting", "idle"), 0.0)
        for left, right in zip(edges, edges[1:]):
            now = [(number, event) for number, event in enumerate(events) if event.begin <= left and event.end >= right]
            calls = [number for number, event in now if event.kind != "compute"]
            state = ("compute" if len(calls) < len(now) else
                     "exposed" if any(moved[rank, number] <= left for number in calls) else "waiting" if calls else "idle")
            times[state] += (right - left) * 1e-9
        ranks.append(times)
    return {"step": (end - begin) * 1e-9, "ranks": ranks}


def _varint(value):
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(data + bytes([value]))


def _bytes_field(number, data):
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number_field(number, value):
    return _varint(number << 3) + _varint(value)


def chakra_of(events):
    """A rank's events as a Chakra execution trace (protobuf: a GlobalMetadata, then a Node each, all with their length before them)."""
    messages = [_bytes_field(1, b"0.0.4")]
    for number, event in enumerate(events):
        node_type = {"compute": COMPUTE, "send": SEND, "receive": RECEIVE}.get(event.kind, COLLECTIVE)
        node = _number_field(1, number) + _bytes_field(2, event.name.encode()) + _number_field(3, node_type)
        node += _bytes_field(5, b"".join(map(_varint, event.after)))
        attributes = {}
        if node_type == COMPUTE:
            node += _number_field(7, round((event.end - event.begin) / 1000))
        elif node_type == COLLECTIVE:
            attributes = {"comm_type": COMM_TYPES[event.kind], "comm_size": event.size, "comm_root": event.peer}
        else:
            attributes = {"comm_dst" if node_type == SEND else "comm_src": event.peer, "comm_size": event.size, "comm_tag": event.tag}
        for name, value in attributes.items():
            node += _bytes_field(10, _bytes_field(1, name.encode()) + _number_field(9, value))
        messages.append(node)
    return b"".join(_varint(len(message)) + message for message in messages)


def chrome_events(events_of_ranks):
    """The recorded step as events of a Chrome trace, from its begin; threads: 0 computes, others have calls."""
    begin = min(event.begin for events in events_of_ranks for event in events)
    for rank, events in enumerate(events_of_ranks):
        yield {"ph": "M", "pid": rank, "name": "process_name", "args": {"name": f"measured rank {rank}"}}
        free = []  # From when on each thread of calls is.
        for event in events:
            thread = 0
            if event.kind != "compute":
                thread = next((index for index, until in enumerate(free) if until <= event.begin), len(free))
                free[thread:thread + 1] = [event.end]
                thread += 1
            yield {"ph": "X", "pid": rank, "tid": thread, "ts": (event.begin - begin) / 1000, "dur": (event.end - event.begin) / 1000,
                   "name": event.name, "cat": "compute" if event.kind == "compute" else "call", "args": {"bytes": event.size}}


def write_scenario(events_of_ranks, machine, folder, element="float32"):
    """The step as a scenario on a topology: step.yaml, machine.yaml and the traces."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "machine.yaml").write_text(machine.to_yaml(), encoding="utf-8")
    (folder / "step.yaml").write_text("espalier_scenario: 1\ntopology: machine.yaml\n"
                                      f"training: {{trace: step, type: {element}}}\n", encoding="utf-8")
    for rank, events in enumerate(events_of_ranks):
        (folder / f"step.{rank}.et").write_bytes(chakra_of(events))


def simulate_step(events_of_ranks, folder):
    """What `espalier simulate` gives for the scenario in the folder, in the form of `account`; None where the command is not found."""
    folder = pathlib.Path(folder)
    command = os.environ.get("ESPALIER") or shutil.which("espalier")
    words = ["simulate", "--scenario", str(folder / "step.yaml"), "--json", "--trace", str(folder / "simulated.json")]
    if command is None:
        print(f"no command espalier in PATH or ESPALIER; to simulate: espalier {' '.join(words)}")
        return None
    done = subprocess.run([command, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    said = json.loads(done.stdout)
    trace = json.loads((folder / "simulated.json").read_text())["traceEvents"]
    for event in trace:
        event["pid"] += len(events_of_ranks)
        if event["name"] == "process_name":
            event["args"]["name"] = "simulated " + event["args"]["name"]
    both = [*chrome_events(events_of_ranks), *(event for event in trace if event["name"] != "elapsed_us")]
    (folder / "timeline.json").write_text(json.dumps({"traceEvents": both}), encoding="utf-8")
    (folder / "simulated.json").unlink()
    return {"step": said["elapsed"], "ranks": [{"compute": rank["compute"], "exposed": rank["exposed_communication"],
                                                "waiting": rank["waiting"], "idle": rank["idle"]} for rank in said["ranks"]]}


def table_of(sides):
    """Lines: the step and its parts, in the mean over ranks, of each side."""
    yield f"{'':10}  {'step (ms)':>9}  " + "  ".join(f"{name:>13}" for name in ("compute", "exposed", "waiting", "idle")) + "  (ms, % of the step)"
    for name, side in sides.items():
        parts = [statistics.mean(rank[part] for rank in side["ranks"]) for part in ("compute", "exposed", "waiting", "idle")]
        yield f"{name:10}  {side['step'] * 1e3:9.2f}  " + "  ".join(
            f"{part * 1e3:7.2f} {100 * part / side['step']:4.1f}%" for part in parts)


def fit_machine(sizes, calls=30):
    """The shipped machine one-host with rates and latency fitted to all_reduces of the default group. All ranks call it."""
    import torch
    import torch.distributed as dist

    import espalier

    measured = {}
    for size in sizes:
        tensor, seconds = torch.zeros(max(size // 4, 1)), []
        for _ in range(calls):
            dist.barrier()
            begin = time.perf_counter()
            dist.all_reduce(tensor)
            seconds.append(time.perf_counter() - begin)
        everyones = torch.tensor(seconds, dtype=torch.float64)
        dist.all_reduce(everyones, dist.ReduceOp.MIN)  # Of the rank that came last: what came before it is waiting, not moving.
        measured[size] = everyones.median().item()
    machine = espalier.Topology.load("one-host", ranks=dist.get_world_size())
    plan = espalier.plan(machine, "all_reduce", algorithm="ring")
    fit = espalier.calibrate(machine, [(plan, max(size // 4, 1) * 4, seconds) for size, seconds in measured.items()], hold_out=0)
    return fit.topology, measured


def compare_steps(recorder, folder, element="float32"):
    """The recorded step of median length beside its simulation, printed by rank 0; both sides in the form of `account`. All ranks call it."""
    import torch.distributed as dist

    everyones = [None] * dist.get_world_size()
    dist.all_gather_object(everyones, recorder.steps)
    sides = [account([steps[index] for steps in everyones]) for index in range(len(recorder.steps))]
    index = sorted(range(len(sides)), key=lambda number: sides[number]["step"])[len(sides) // 2]
    events = [steps[index] for steps in everyones]
    sizes = sorted({event.size for event in events[0] if event.kind != "compute"} | {2**12, 2**16, 2**20, 2**22})
    machine, _ = fit_machine(sizes)
    if dist.get_rank() != 0:
        return None
    write_scenario(events, machine, folder, element)
    sides = {"measured": sides[index], "simulated": simulate_step(events, folder)}
    sides = {name: side for name, side in sides.items() if side is not None}
    print(f"# step {index + 1} of {len(recorder.steps)}, the one of median length; {sum(e.kind != 'compute' for e in events[0])} calls of rank 0")
    print("\n".join(table_of(sides)))
    print(f"# timeline: {folder}/timeline.json (open it at ui.perfetto.dev)", flush=True)
    return sides
