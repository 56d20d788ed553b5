#pragma once

// Tested by: tests/fuzz/fuzz_flags.cpp

#include <cstdint>
#include <limits>
#include <vector>

#include "topology/topology.h"

namespace espalier::sim {

/// What serves chunks: a link, a node's backplane, the reduction at a rank or switch, or a rank's processor.
struct Resource {
  std::int64_t bytes_per_second = 1;  ///< Of a processor: of all its rank's links, which it never limits.
  std::int64_t latency = 0;           ///< In picoseconds.
  std::int64_t each = 0;              ///< Of a processor: picoseconds per chunk, whatever its bytes.
};

/// What moves data out of a rank's memory: each engine carries one chunk at a time, and the routes that begin at a rank
/// are dealt to its engines in turn, as streams are to a GPU's copy engines, the first one by where it leads.
struct CopyEngines {
  std::uint32_t per_rank = 0;  ///< None: sending takes nothing but the links.
  Bandwidth rate;              ///< Of one engine; zero: that of the rank's fastest link.
  /// What a chunk keeps its source's and then its destination's processor busy, one after the other for all lanes of
  /// the rank: LogGP's o, of which g is made. None: a rank has no processor.
  Picoseconds message;
  /// Processors of a host, dealt to its ranks in turn; none: every rank has its own, as have ranks without a host.
  std::uint32_t processors_per_host = 0;
};

/// The most copy engines of a rank.
inline constexpr std::uint32_t max_copy_engines = 64;

/// The resources of a topology, flat: links by id, then backplanes, reductions, processors and copy engines. Immutable.
class Network {
 public:
  static constexpr std::uint32_t absent = std::numeric_limits<std::uint32_t>::max();

  /// Requires: at most max_copy_engines, a rate and a message time that are not negative.
  explicit Network(const Topology& topology, const CopyEngines& engines = {});

  [[nodiscard]] const std::vector<Resource>& resources() const { return resources_; }
  [[nodiscard]] std::uint32_t link_count() const { return link_count_; }
  [[nodiscard]] std::size_t node_count() const { return backplanes_.size(); }

  /// The resource of a node, or `absent` where the node has no limit.
  [[nodiscard]] std::uint32_t backplane(NodeId node) const { return backplanes_[node.index()]; }
  [[nodiscard]] std::uint32_t reduction(NodeId node) const { return reductions_[node.index()]; }

  [[nodiscard]] std::uint32_t processor(NodeId node) const {
    return processors_.empty() ? absent : processors_[node.index()];
  }
  [[nodiscard]] bool is_processor(std::uint32_t resource) const { return resources_[resource].each > 0; }

  /// The engine that the k-th route from a rank's node takes, or `absent`.
  [[nodiscard]] std::uint32_t engine(NodeId node, std::uint32_t k) const {
    const std::uint32_t first = engines_.empty() ? absent : engines_[node.index()];
    return first == absent ? absent : first + k % engines_per_rank_;
  }
  [[nodiscard]] bool is_engine(std::uint32_t resource) const { return resource >= first_engine_; }

  /// The link that a resource is; none for what belongs to a node.
  [[nodiscard]] LinkId link(std::uint32_t resource) const {
    return resource < link_count_ ? LinkId(resource) : LinkId();
  }
  /// The node whose backplane, reduction, processor or copy engine a resource is; none for a link.
  [[nodiscard]] NodeId node(std::uint32_t resource) const {
    return resource < link_count_ ? NodeId() : nodes_[resource - link_count_];
  }

 private:
  std::uint32_t add_resource(NodeId node, Bandwidth rate);
  void add_processors(const Topology& topology, const CopyEngines& engines);
  void add_engines(const Topology& topology, const CopyEngines& engines);

  std::uint32_t link_count_ = 0;
  std::vector<Resource> resources_;
  std::vector<NodeId> nodes_;              // of the resources that are not links
  std::vector<std::uint32_t> backplanes_;  // by node: its resource, or `absent`
  std::vector<std::uint32_t> reductions_;  // by node: its resource, or `absent`
  std::vector<std::uint32_t> processors_;  // by node: its resource, or `absent`; empty without processors
  std::uint32_t engines_per_rank_ = 0;
  std::uint32_t first_engine_ = absent;
  std::vector<std::uint32_t> engines_;  // by node: its first engine, or `absent`; empty without engines
};

}  // namespace espalier::sim
