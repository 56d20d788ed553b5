#pragma once

// Tested by: tests/unit/schedule/json/schedule_json_test.cpp

#include <string_view>
#include <unordered_map>
#include <vector>

#include "schedule/json/plan_cursor.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// Turns the routes of a plan into route ids of its schedule: lists of node names, link names ("a>b#1") or both.
class PlanRoutes {
 public:
  PlanRoutes(PlanCursor& cursor, const Topology& topology, Schedule& schedule)
      : cursor_(cursor), topology_(topology), schedule_(schedule) {}

  /// The route written at `offset` as `text`, for a transfer from src to dst; false when the cursor has failed.
  bool read(std::size_t offset, std::string_view text, Rank src, Rank dst, RouteId& route);

  /// The only direct link between two ranks; fails at `offset` when there is none or several.
  bool direct(std::size_t offset, Rank src, Rank dst, RouteId& route);

 private:
  struct Key {
    std::string_view text;
    Rank src;
    Rank dst;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      const std::size_t ends = std::size_t{key.src.value()} << 32U | key.dst.value();
      return std::hash<std::string_view>{}(key.text) ^ (ends * 0x9E3779B97F4A7C15U);
    }
  };

  bool resolve(std::size_t offset);
  bool add_name(std::size_t offset, std::string_view name);
  bool add_hop(std::size_t offset, NodeId from, NodeId to);

  PlanCursor& cursor_;
  const Topology& topology_;
  Schedule& schedule_;
  std::unordered_map<Key, RouteId, KeyHash> known_;  ///< Most transfers repeat a route that was resolved before.
  std::vector<LinkId> links_;                        ///< Scratch: the route being resolved,
  NodeId at_;                                        ///< where it has come to,
  bool at_node_name_ = false;                        ///< and whether a node's name led there.
};

}  // namespace espalier
