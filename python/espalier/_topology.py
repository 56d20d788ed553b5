"""Networks."""
import functools
import json
import os
import pathlib

from . import _espalier
from ._units import as_integer, is_several, whole_number
from .errors import Error

Topology = _espalier.Topology


_HERE = os.path.dirname(os.path.realpath(__file__))


def _shipped_folder():
    return _shipped_folder_of(os.environ.get("ESPALIER_CONFIGS"))


@functools.lru_cache(maxsize=16)
def _shipped_folder_of(told):
    if told:  # Also where nothing is there: then names are not found, rather than others' files taken.
        return pathlib.Path(told)
    for folder in [os.path.join(_HERE, "configs"), os.path.join(os.path.dirname(_HERE), "configs")]:
        if os.path.isdir(folder):
            return pathlib.Path(folder)
    return None


def find_topology_file(name):
    """The path of a YAML file, or of a shipped machine by its name.

    >>> find_topology_file("dgx1v").name
    'dgx1v.yaml'
    """
    path = pathlib.Path(name)
    folder = _shipped_folder()
    if not path.exists() and path.name == str(name) and folder and (folder / f"{name}.yaml").exists():
        path = folder / f"{name}.yaml"
    if not path.exists():
        raise Error("unavailable", f"there is no file or shipped machine {str(name)!r}",
                    "espalier topo show --list names the machines")
    return path


def find_profile(name):
    """The path of a profile's file, and the launch after a colon; two empty texts for None."""
    if name is None:
        return "", ""
    name, _, launch = str(name).partition(":")
    folder = _shipped_folder()
    for path in (name, *([f"{folder}/profiles/{name}.yaml"] if folder else [])):
        if os.path.isfile(path):
            return path, launch
    raise Error("unavailable", f"there is no profile {name!r}", "docs/profiles.md names those that are shipped")


def measured_errors_file():
    """The path of what is known of errors of predictions; an empty text where it is not shipped."""
    folder = _shipped_folder()
    return f"{folder}/profiles/errors.csv" if folder else ""


def _rank_numbered(topology, rank):
    """The name of the rank of that number."""
    number = whole_number(rank, "a rank")
    if number >= topology.rank_count:
        raise Error("invalid_input", f"there is no rank {number} in {topology.name}", f"its ranks are 0 to {topology.rank_count - 1}")
    return topology.rank_name(number)


def root_number(topology, root):
    """A root as the libraries take it: the number of a rank, or none; of a name its number."""
    if root is None:
        return None
    if isinstance(root, str):
        names = [topology.rank_name(rank) for rank in range(topology.rank_count)]
        if root not in names:
            raise Error("invalid_input", f"there is no rank {root!r} in {topology.name}", f"its ranks are {names[0]} to {names[-1]}")
        return names.index(root)
    number = as_integer(root)
    if number is None or abs(number) > 1 << 62:
        raise Error("invalid_input", f"the root is {root!r}", "give the number of a rank, or its name")
    return number


def ranks_text(topology, ranks):
    """A list of ranks as the command line has it, of a text, a name or number, or several."""
    if isinstance(ranks, str):
        return ranks
    given = list(ranks) if is_several(ranks) else [ranks]
    return ", ".join(each if isinstance(each, str) else _rank_numbered(topology, each) for each in given)


def load(name, **parameters):
    """A topology from a YAML file, or a shipped machine by name; parameters of a compact file by name.

    >>> Topology.load("dgx1v").rank_count
    8
    """
    topology, topology._gpu = _read_file(str(find_topology_file(name)), parameters)
    return topology


def _keeping_gpu(method):
    @functools.wraps(method)
    def changed(self, names):
        topology = method(self, names)
        topology._gpu = gpu_of(self)
        return topology
    return changed


def gpu_of(topology):
    """The `gpu` that a machine's file names; an empty text where it does not say.

    >>> gpu_of(Topology.load("dgx-h100-x4").without("box0.nic0")), gpu_of(Topology.generate("ring", [3]))
    ('h100-sxm', '')
    """
    return getattr(topology, "_gpu", "")


_NODE_KEYS = ("id", "kind", "is_rank", "host", "rail", "relay", "bandwidth", "reduce_bandwidth", "multicast", "reduction", "model")


def nodes(self):
    """[{"id", "kind", "is_rank", "host", "rail", ...}], by node id; with "relay", "bandwidth" and "reduce_bandwidth" in bytes per
    second (0: not limited), "multicast" and "reduction", and a processor's "model".

    >>> machine = Topology.load("dgx1v")
    >>> len(machine.nodes()) == machine.node_count, machine.nodes()[0]["id"], machine.rank_name(7)
    (True, 'gpu0', 'gpu7')
    >>> broken, slow = machine.without(["gpu0-gpu1"]), machine.slow(["gpu0-gpu1=25%"])
    >>> machine.link_count - broken.link_count > 0, slow.link_count == machine.link_count
    (True, True)
    >>> again = Topology.from_yaml(broken.to_yaml())
    >>> again.link_count == broken.link_count, again.name
    (True, 'dgx1v without gpu0-gpu1')
    """
    return [dict(zip(_NODE_KEYS, row)) for row in self._nodes()]


def links(self):
    """[{"tail", "head", "bandwidth", "latency", "overhead", "link_class"}], by link id; ends are node indices,
    bandwidth in bytes per second, times in seconds. A duplex cable is two links.

    >>> machine = Topology.generate("ring", [3], bandwidth=25e9)
    >>> machine.links()[0]["bandwidth"], machine.link_count, machine.link_name(0)
    (25000000000, 6, 'gpu0>gpu1')
    """
    keys = ("tail", "head", "bandwidth", "latency", "overhead", "link_class")
    return [dict(zip(keys, row)) for row in self._links()]


def to_networkx(self):
    """A networkx.MultiDiGraph: nodes by their ids with what `nodes` says of them, links keyed by link id. `from_networkx` reads it.

    >>> try:
    ...     graph = Topology.generate("ring", [3]).to_networkx()
    ...     print(graph.number_of_nodes(), graph.number_of_edges())
    ... except ImportError:
    ...     print(3, 6)  # Without networkx.
    3 6
    """
    import networkx

    graph = networkx.MultiDiGraph(name=self.name)
    names = []
    for node in self.nodes():
        names.append(node.pop("id"))
        graph.add_node(names[-1], **node)
    for index, link in enumerate(self.links()):
        graph.add_edge(names[link.pop("tail")], names[link.pop("head")], key=index, **link)
    return graph


def from_networkx(graph, name=None):
    """A topology of a networkx graph, as `to_networkx` makes it or of your own.

    An edge needs `bandwidth` (bytes per second, or "25 GB/s") and may have `latency` and `overhead` (seconds, or "1 us") and
    `link_class`; of a graph without directions it is a link each way. A node may have what `nodes` says of one; where no `kind` is
    given it is a gpu. Other attributes mean nothing here.

    >>> try:
    ...     import networkx
    ...     square = networkx.cycle_graph(4)
    ...     networkx.set_edge_attributes(square, "25 GB/s", "bandwidth")
    ...     print(Topology.from_networkx(square).link_count)
    ... except ImportError:
    ...     print(8)  # Without networkx.
    8
    """
    if not hasattr(graph, "is_multigraph"):
        raise Error("invalid_input", f"a {type(graph).__name__} is given where a networkx graph belongs", "Topology.generate makes usual networks")
    edges = list(graph.edges(keys=True, data=True) if graph.is_multigraph() else ((*edge[:2], None, edge[2]) for edge in graph.edges(data=True)))
    if len({key for _, _, key, _ in edges if as_integer(key) is not None}) == len(edges):
        edges.sort(key=lambda edge: edge[2])  # Link ids.
    document = {"espalier": 1, "name": str(name or graph.name or "networkx"),
                "nodes": [_node_entry(node, values) for node, values in graph.nodes(data=True)],
                "links": [_link_entry(tail, head, values, graph.is_directed()) for tail, head, _, values in edges]}
    return Topology.from_yaml(json.dumps(document))


def _node_entry(node, values):
    entry = {"id": str(node), "kind": values.get("kind", "gpu")}
    for key, ours in (("is_rank", "rank"), ("relay", "relay"), ("multicast", "multicast"), ("reduction", "reduction")):
        if key in values and (ours != "relay" or not values[key]) and (ours not in ("multicast", "reduction") or values[key]):
            entry[ours] = bool(values[key])
    for key in ("host", "rail", "model"):
        if values.get(key) not in (None, ""):
            entry[key] = values[key]
    for key in ("bandwidth", "reduce_bandwidth"):
        if values.get(key):
            entry[key] = _with_unit(values[key], 1, "B/s", f"{key} of {node}")
    return entry


def _link_entry(tail, head, values, is_directed):
    where = f"the edge from {tail} to {head}"
    if "bandwidth" not in values:
        raise Error("invalid_input", f"{where} has no bandwidth", 'set it in bytes per second, or as "25 GB/s"')
    entry = {"from": str(tail), "to": str(head)} if is_directed else {"between": [str(tail), str(head)]}
    entry["bandwidth"] = _with_unit(values["bandwidth"], 1, "B/s", f"bandwidth of {where}")
    entry["latency"] = _with_unit(values.get("latency", 0), 10**12, "ps", f"latency of {where}")
    if values.get("overhead"):
        entry["overhead"] = _with_unit(values["overhead"], 10**12, "ps", f"overhead of {where}")
    if values.get("link_class"):
        entry["class"] = str(values["link_class"])
    return entry


def _with_unit(value, scale, unit, what):
    """A number in the base unit as text with a unit; texts have theirs."""
    if isinstance(value, str):
        return value
    try:
        return f"{round(value * scale)} {unit}"
    except (TypeError, ValueError, OverflowError):
        raise Error("invalid_input", f"the {what} is {value!r}", "give a number, or a text with its unit") from None


def _repr(self):
    return f"<espalier.Topology {self.name}: {self.rank_count} ranks, {self.node_count} nodes, {self.link_count} links>"


_read_file = Topology._read_file
Topology.load = staticmethod(load)
Topology.without, Topology.slow = _keeping_gpu(Topology.without), _keeping_gpu(Topology.slow)
Topology.nodes = nodes
Topology.links = links
Topology.to_networkx = to_networkx
Topology.from_networkx = staticmethod(from_networkx)
Topology.__repr__ = _repr
