"""Networks."""
import os
import pathlib

from . import _espalier
from .errors import Error

Topology = _espalier.Topology


def _shipped_folder():
    here = pathlib.Path(__file__).resolve().parent
    told = os.environ.get("ESPALIER_CONFIGS")
    for folder in ([pathlib.Path(told)] if told else []) + [here / "configs", here.parent / "configs"]:
        if folder.is_dir():
            return folder
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


def load(name, **parameters):
    """A topology from a YAML file, or a shipped machine by name; parameters of a compact file by name.

    >>> Topology.load("dgx1v").rank_count
    8
    """
    return Topology._read_file(str(find_topology_file(name)), parameters)


def nodes(self):
    """[{"id", "kind", "is_rank", "host", "rail"}], by node id.

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
    return [dict(zip(("id", "kind", "is_rank", "host", "rail"), row)) for row in self._nodes()]


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
    """A networkx.MultiDiGraph: nodes by their ids with kind, is_rank, host and rail, links keyed by link id.

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


def _repr(self):
    return f"<espalier.Topology {self.name}: {self.rank_count} ranks, {self.node_count} nodes, {self.link_count} links>"


Topology.load = staticmethod(load)
Topology.nodes = nodes
Topology.links = links
Topology.to_networkx = to_networkx
Topology.__repr__ = _repr
