#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::sim {

/// The largest simulated time, about 53 days; every moment of a simulation fits a 64-bit integer with room to add.
inline constexpr std::int64_t max_simulated_time = std::int64_t{1} << 62;

/// What serves chunks first come, first served: a link, a node's backplane, or the reduction at a rank or switch.
struct Resource {
  std::int64_t free_at = 0;  ///< When it has served everything that asked so far.
  std::int64_t latency = 0;
  std::int64_t bytes_per_second = 1;
  std::int64_t bytes = 0;  ///< Served so far.
  std::int64_t busy = 0;   ///< Time spent serving so far.
  std::int64_t known_bytes = 0;
  std::int64_t known_time = 0;

  /// transfer_time of a chunk. Most chunks of a resource have one of few sizes, so the last answer is kept.
  [[nodiscard]] std::int64_t service_time(std::int64_t chunk_bytes) {
    if (chunk_bytes != known_bytes) {
      known_bytes = chunk_bytes;
      known_time = transfer_time(Bytes{chunk_bytes}, Bandwidth{bytes_per_second}).count;
    }
    return known_time;
  }
};

/// The resources that the chunks of a route pass, as a run of steps: the source's backplane, then each link followed by
/// the backplane of the node it reaches, then the destination's reduction. Nodes without a limit have no step.
struct Path {
  std::uint32_t begin = 0;
  std::uint32_t first_link = 0;  ///< The step whose end is the chunk's departure.
  std::uint32_t last_link = 0;
  std::uint32_t end = 0;         ///< Past the last step of a copy.
  std::uint32_t reduce_end = 0;  ///< Past the last step of a reduce; `end` when the destination reduces for free.
  std::int64_t overhead = 0;     ///< Per-message costs of all links, paid at the sender.

  [[nodiscard]] std::uint32_t end_of(const Transfer& transfer) const {
    return transfer.reduces != 0 ? reduce_end : end;
  }
  [[nodiscard]] std::uint32_t steps_of(const Transfer& transfer) const { return end_of(transfer) - begin; }
};

/// The resources of a topology and the paths of a schedule's routes over them, flat.
class Network {
 public:
  /// Errors: invalid_input when a route has no links, passes a link or node twice, or is not of this topology.
  [[nodiscard]] static Result<Network> make(const Schedule& schedule, const Topology& topology);

  std::vector<Resource> resources;   ///< Links by id, then backplanes and reductions.
  std::vector<std::uint32_t> steps;  ///< Indices into `resources`.
  std::vector<Path> paths;           ///< By route id.

  /// The link that a resource is; none for a backplane or a reduction.
  [[nodiscard]] LinkId link(std::uint32_t resource) const {
    return resource < link_count_ ? LinkId(resource) : LinkId();
  }
  /// The node whose backplane or reduction a resource is; none for a link.
  [[nodiscard]] NodeId node(std::uint32_t resource) const {
    return resource < link_count_ ? NodeId() : nodes_[resource - link_count_];
  }

 private:
  Network() = default;
  std::uint32_t add_resource(NodeId node, Bandwidth rate);
  void add_nodes(const Topology& topology);
  /// The path of the schedule's next route.
  Result<void> add_path(const Schedule& schedule, const Topology& topology);

  std::uint32_t link_count_ = 0;
  std::vector<NodeId> nodes_;                // of the resources that are not links
  std::vector<std::uint32_t> backplanes_;    // by node: its resource, or `absent`
  std::vector<std::uint32_t> reductions_;    // by node: its resource, or `absent`
  std::vector<std::uint32_t> last_visitor_;  // by node: the latest path, plus one, that passed it
};

}  // namespace espalier::sim
