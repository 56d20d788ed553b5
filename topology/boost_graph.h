#pragma once

// Tested by: tests/unit/topology/boost_graph_test.cpp

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <boost/iterator/transform_iterator.hpp>
#include <boost/property_map/property_map.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "topology/topology.h"

/// A Topology as a graph of the Boost Graph Library: any of its algorithms runs on a machine as it is, without a copy.
///
/// It models VertexListGraph, EdgeListGraph, IncidenceGraph and BidirectionalGraph; it is directed, and has parallel
/// edges where links are parallel. A vertex is the index of a node (NodeId(vertex)), an edge is a LinkId. Its property
/// maps, all for reading:
///
/// | `get(tag, topology)` | key | value |
/// |---|---|---|
/// | `boost::vertex_index` | vertex | its index |
/// | `boost::vertex_name` | vertex | the node's id |
/// | `boost::edge_index` | edge | its index |
/// | `boost::edge_weight` | edge | latency, in picoseconds: what shortest paths minimise when told nothing else |
/// | `boost::edge_capacity` | edge | rate, in bytes per second |
/// | `boost::edge_name` | edge | the name of the link's class |
///
/// Source of the concepts: J. Siek, L.-Q. Lee, A. Lumsdaine, "The Boost Graph Library", 2002.
namespace espalier::boost_graph {

using Vertex = std::uint32_t;
using VertexIterator = boost::counting_iterator<Vertex>;

struct LinkOfIndex {
  LinkId operator()(std::uint32_t index) const { return LinkId(index); }
};
using EdgeIterator = boost::transform_iterator<LinkOfIndex, boost::counting_iterator<std::uint32_t>, LinkId, LinkId>;
using IncidentIterator = const LinkId*;

struct TraversalCategory : boost::bidirectional_graph_tag, boost::vertex_list_graph_tag, boost::edge_list_graph_tag {};

/// A property of a node or link, read by a function of its key.
template <class Key, class Value, Value (*read)(const Topology&, Key)>
class PropertyMap {
 public:
  using key_type = Key;
  using value_type = std::remove_cvref_t<Value>;
  using reference = Value;
  using category = boost::readable_property_map_tag;

  PropertyMap() = default;
  explicit PropertyMap(const Topology& topology) : topology_(&topology) {}
  friend Value get(const PropertyMap& map, Key key) { return read(*map.topology_, key); }
  Value operator[](Key key) const { return read(*topology_, key); }

 private:
  const Topology* topology_ = nullptr;
};

inline Vertex index_of_vertex(const Topology& /*topology*/, Vertex vertex) { return vertex; }
inline std::size_t index_of_edge(const Topology& /*topology*/, LinkId link) { return link.index(); }
inline const std::string& name_of_vertex(const Topology& topology, Vertex vertex) {
  return topology.node(NodeId(vertex)).id;
}
inline const std::string& class_of_edge(const Topology& topology, LinkId link) {
  return topology.link(link).link_class;
}
inline std::int64_t latency_of_edge(const Topology& topology, LinkId link) { return topology.link(link).latency.count; }
inline std::int64_t rate_of_edge(const Topology& topology, LinkId link) {
  return topology.link(link).bandwidth().bytes_per_second;
}

/// The property map of a tag.
template <class Tag>
struct MapOf;
template <>
struct MapOf<boost::vertex_index_t> {
  using type = PropertyMap<Vertex, Vertex, index_of_vertex>;
};
template <>
struct MapOf<boost::vertex_name_t> {
  using type = PropertyMap<Vertex, const std::string&, name_of_vertex>;
};
template <>
struct MapOf<boost::edge_index_t> {
  using type = PropertyMap<LinkId, std::size_t, index_of_edge>;
};
template <>
struct MapOf<boost::edge_weight_t> {
  using type = PropertyMap<LinkId, std::int64_t, latency_of_edge>;
};
template <>
struct MapOf<boost::edge_capacity_t> {
  using type = PropertyMap<LinkId, std::int64_t, rate_of_edge>;
};
template <>
struct MapOf<boost::edge_name_t> {
  using type = PropertyMap<LinkId, const std::string&, class_of_edge>;
};

inline std::span<const LinkId> links_of(const Topology& topology, Vertex vertex, bool leaving) {
  return leaving ? topology.out_links(NodeId(vertex)) : topology.in_links(NodeId(vertex));
}
inline std::pair<IncidentIterator, IncidentIterator> ends_of(std::span<const LinkId> links) {
  return {links.data(), links.data() + links.size()};
}

}  // namespace espalier::boost_graph

template <>
struct boost::graph_traits<espalier::Topology> {
  using vertex_descriptor = espalier::boost_graph::Vertex;
  using edge_descriptor = espalier::LinkId;
  using directed_category = boost::bidirectional_tag;
  using edge_parallel_category = boost::allow_parallel_edge_tag;
  using traversal_category = espalier::boost_graph::TraversalCategory;
  using vertices_size_type = std::uint32_t;
  using edges_size_type = std::uint32_t;
  using degree_size_type = std::uint32_t;
  using vertex_iterator = espalier::boost_graph::VertexIterator;
  using edge_iterator = espalier::boost_graph::EdgeIterator;
  using out_edge_iterator = espalier::boost_graph::IncidentIterator;
  using in_edge_iterator = espalier::boost_graph::IncidentIterator;
  static vertex_descriptor null_vertex() { return std::numeric_limits<vertex_descriptor>::max(); }
};

template <>
struct boost::graph_traits<const espalier::Topology> : boost::graph_traits<espalier::Topology> {};

template <class Tag>
struct boost::property_map<espalier::Topology, Tag> {
  using type = typename espalier::boost_graph::MapOf<Tag>::type;
  using const_type = type;
};

/// Found by argument-dependent lookup, as the library's algorithms call them.
namespace espalier {

inline std::uint32_t num_vertices(const Topology& topology) {
  return static_cast<std::uint32_t>(topology.node_count());
}
inline std::uint32_t num_edges(const Topology& topology) { return static_cast<std::uint32_t>(topology.link_count()); }

inline std::pair<boost_graph::VertexIterator, boost_graph::VertexIterator> vertices(const Topology& topology) {
  return {boost_graph::VertexIterator(0), boost_graph::VertexIterator(num_vertices(topology))};
}
inline std::pair<boost_graph::EdgeIterator, boost_graph::EdgeIterator> edges(const Topology& topology) {
  using Index = boost::counting_iterator<std::uint32_t>;
  return {boost_graph::EdgeIterator(Index(0)), boost_graph::EdgeIterator(Index(num_edges(topology)))};
}

inline boost_graph::Vertex source(LinkId edge, const Topology& topology) { return topology.link(edge).tail.value(); }
inline boost_graph::Vertex target(LinkId edge, const Topology& topology) { return topology.link(edge).head.value(); }

inline auto out_edges(boost_graph::Vertex vertex, const Topology& topology) {
  return boost_graph::ends_of(boost_graph::links_of(topology, vertex, true));
}
inline auto in_edges(boost_graph::Vertex vertex, const Topology& topology) {
  return boost_graph::ends_of(boost_graph::links_of(topology, vertex, false));
}
inline std::uint32_t out_degree(boost_graph::Vertex vertex, const Topology& topology) {
  return static_cast<std::uint32_t>(boost_graph::links_of(topology, vertex, true).size());
}
inline std::uint32_t in_degree(boost_graph::Vertex vertex, const Topology& topology) {
  return static_cast<std::uint32_t>(boost_graph::links_of(topology, vertex, false).size());
}
inline std::uint32_t degree(boost_graph::Vertex vertex, const Topology& topology) {
  return out_degree(vertex, topology) + in_degree(vertex, topology);
}

template <class Tag>
typename boost_graph::MapOf<Tag>::type get(Tag /*tag*/, const Topology& topology) {
  return typename boost_graph::MapOf<Tag>::type(topology);
}
template <class Tag, class Key>
decltype(auto) get(Tag /*tag*/, const Topology& topology, Key key) {
  return typename boost_graph::MapOf<Tag>::type(topology)[key];
}

}  // namespace espalier
