#include <variant>

#include "python/bind/bindings.h"
#include "topology/analysis/describe.h"
#include "topology/draw/topology_svg.h"
#include "topology/generate/generate.h"
#include "topology/slow.h"
#include "topology/without.h"
#include "topology/yaml/read_topology.h"
#include "topology/yaml/write_topology.h"

namespace espalier::python {
namespace {

Topology read_or_raise(TopologyReading reading) {
  if (reading.topology) return *std::move(reading.topology);
  std::string all;
  for (const Diagnostic& diagnostic : reading.diagnostics) {
    if (diagnostic.severity == Severity::error) all += (all.empty() ? "" : "\n") + render(diagnostic, false);
  }
  throw ErrorRaised({ErrorCode::invalid_input, all, ""});
}

TopologyParameters parameters_of(const py::dict& given) {
  TopologyParameters parameters;
  for (const auto& [name, value] : given) parameters.emplace_back(py::str(name), py::str(value));
  return parameters;
}

/// One row per link: (tail, head, bandwidth in bytes/s, latency in s, overhead in s, class).
py::list links_of(const Topology& topology) {
  py::list rows;
  for (const Link& link : topology.links()) {
    rows.append(py::make_tuple(link.tail.index(), link.head.index(), link.bandwidth().bytes_per_second,
                               link.latency.seconds(), link.overhead.seconds(), link.link_class));
  }
  return rows;
}

/// One row per node: (id, kind, is_rank, host, rail or None, whether it relays, backplane and rate of reduction in
/// bytes/s, 0 where not limited, whether it copies, whether it reduces in the network, a processor's model).
py::list nodes_of(const Topology& topology) {
  py::list rows;
  for (const Node& node : topology.nodes()) {
    const py::object rail = node.rail ? py::object(py::int_(*node.rail)) : py::object(py::none());
    rows.append(py::make_tuple(node.id, std::string(to_string(node.kind)), node.is_rank, node.host, rail, node.relay,
                               node.bandwidth.bytes_per_second, node.reduce_bandwidth.bytes_per_second, node.multicast,
                               node.reduction, node.model));
  }
  return rows;
}

Wire wire_of(double bandwidth, double latency) {
  return {.bandwidth = {static_cast<std::int64_t>(bandwidth)},
          .latency = {static_cast<std::int64_t>(latency * 1e12 + 0.5)},
          .link_class = "link"};
}

Topology generate(const std::string& family, const std::vector<std::int64_t>& sizes, double bandwidth, double latency,
                  std::uint64_t seed) {
  const auto size = [&](std::size_t i, std::int64_t otherwise) { return i < sizes.size() ? sizes[i] : otherwise; };
  const Wire wire = wire_of(bandwidth, latency);
  if (family == "ring") return value_of(generate_ring({.ranks = size(0, 8), .one_way = false, .wire = wire}));
  if (family == "torus") return value_of(generate_torus({.dims = sizes, .wire = wire}));
  if (family == "mesh") return value_of(generate_mesh({.dims = sizes, .wire = wire}));
  if (family == "hypercube") return value_of(generate_hypercube({.dimensions = size(0, 3), .wire = wire}));
  if (family == "full") return value_of(generate_fully_connected({.ranks = size(0, 8), .wire = wire}));
  if (family == "fat-tree")
    return value_of(generate_fat_tree({.k = size(0, 4), .oversubscription = size(1, 1), .wire = wire}));
  if (family == "random") {
    RandomOptions options;
    options.ranks = size(0, 8);
    options.switches = size(1, 0);
    options.extra = size(2, 8);
    options.seed = seed;
    return value_of(generate_random(options));
  }
  throw ErrorRaised({ErrorCode::invalid_input, "there is no family '" + family + "'",
                     "known are ring, torus, mesh, hypercube, full, fat-tree, random"});
}

/// One name or several.
using Names = std::variant<std::string, std::vector<std::string>>;

std::vector<std::string> listed(const Names& names) {
  if (const auto* const one = std::get_if<std::string>(&names)) return {*one};
  return std::get<std::vector<std::string>>(names);
}

}  // namespace

void bind_topology(py::module_& module) {
  py::class_<Topology, std::shared_ptr<Topology>>(module, "Topology", py::dynamic_attr())
      .def_static(
          "_read_file",
          [](const std::string& path, const py::dict& parameters) {
            TopologyReading reading = read_topology_file(path, parameters_of(parameters));
            std::string gpu = reading.gpu;
            return py::make_tuple(std::make_shared<Topology>(read_or_raise(std::move(reading))), std::move(gpu));
          },
          py::arg("path"), py::arg("parameters") = py::dict())
      .def_static(
          "from_yaml",
          [](const std::string& text, const py::dict& parameters) {
            return read_or_raise(read_topology_text(text, "text", std::nullopt, parameters_of(parameters)));
          },
          py::arg("text"), py::arg("parameters") = py::dict(),
          "A topology from the text of a YAML file (docs/topology.md). Raises espalier.Error with every line that is "
          "wrong.")
      .def_static(
          "generate", &generate, py::arg("family"), py::arg("sizes"), py::arg("bandwidth") = 25e9,
          py::arg("latency") = 1e-6, py::arg("seed") = 1,
          "A topology of a family: ring, torus, mesh, hypercube, full, fat-tree or random. `bandwidth` in bytes per "
          "second, `latency` in seconds, per cable and direction.")
      .def(
          "without",
          [](const Topology& topology, const Names& names) { return value_of(without(topology, listed(names))); },
          py::arg("names"), "What is left when these nodes, hosts or links (\"gpu0-gpu1\") fail.")
      .def(
          "slow",
          [](const Topology& topology, const Names& names) { return value_of(slow_down(topology, listed(names))); },
          py::arg("names"), "The topology with links at a part of their rates: \"gpu0-gpu1=25%\".")
      .def_property_readonly("name", &Topology::name)
      .def_property_readonly("rank_count", &Topology::rank_count, "How many nodes take part in collectives.")
      .def_property_readonly("node_count", &Topology::node_count)
      .def_property_readonly("link_count", &Topology::link_count, "Directed links; a duplex cable is two.")
      .def("rank_name",
           [](const Topology& topology, std::int64_t rank) {
             if (rank < 0 || static_cast<std::size_t>(rank) >= topology.rank_count())
               throw py::index_error("no such rank");
             return topology.rank_name(Rank(static_cast<std::size_t>(rank)));
           })
      .def(
          "link_name",
          [](const Topology& topology, std::int64_t link) {
            if (link < 0 || static_cast<std::size_t>(link) >= topology.link_count())
              throw py::index_error("no such link");
            return topology.link_name(LinkId(static_cast<std::size_t>(link)));
          },
          "\"gpu0>gpu1\".")
      .def(
          "_repr_svg_", [](const Topology& topology) { return topology_svg(topology); },
          "A picture of the machine (SVG), as notebooks show it.")
      .def(
          "to_yaml", [](const Topology& topology) { return write_topology(topology); },
          "The plain form as YAML, which `from_yaml` reads back.")
      .def(py::pickle([](const Topology& topology) { return py::make_tuple(write_topology(topology)); },
                      [](const py::tuple& state) {
                        return std::make_shared<Topology>(read_or_raise(
                            read_topology_text(state[0].cast<std::string>(), "a pickle", std::nullopt, {})));
                      }))
      .def("_links", &links_of)
      .def("_nodes", &nodes_of);
}

}  // namespace espalier::python
