#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "topology/names/patterns.h"
#include "topology/topology.h"
#include "topology/yaml/findings.h"

namespace espalier {

struct IncludeChain;

/// What a link class gives to the links that name it.
struct LinkClass {
  std::optional<Bandwidth> bandwidth;
  std::optional<Picoseconds> latency;
  std::optional<Picoseconds> overhead;
  std::optional<std::int32_t> efficiency_ppm;
  std::optional<Bandwidth> reported;
  bool is_broken = false;               ///< Its bandwidth is written and was refused.
  const IncludeChain* chain = nullptr;  ///< Of the file that defines it.
};

/// The file as a whole, or one instance of a group: the names that are known there. A name that is not found is looked
/// up in the scope around it.
struct Scope {
  const Scope* outer = nullptr;
  std::string prefix;  ///< "pod0.box3.", empty for the file.
  std::string host;    ///< The machine its nodes sit in; empty when none was said.
  std::size_t depth = 0;
  std::map<std::string, LinkClass, std::less<>> classes;
  std::uint32_t first_node = 0;  ///< Its nodes, those of its groups included, are first_node .. end_node - 1.
  std::uint32_t end_node = 0;
  /// Its nodes by the shape of their names, built when a star first asks.
  mutable std::unordered_map<std::string, std::vector<std::uint32_t>> by_shape;
};

/// Counts what a reading may still do, so that a small file cannot ask for an endless one.
class Budget {
 public:
  explicit Budget(std::uint64_t steps) : steps_(steps) {}

  /// False when the steps are used up.
  bool spend(std::uint64_t steps);
  [[nodiscard]] bool is_spent() const { return spent_; }
  void end() { spent_ = true; }

 private:
  std::uint64_t steps_;
  std::uint64_t used_ = 0;
  bool spent_ = false;
};

/// The nodes read so far, by name.
class NodeTable {
 public:
  /// The place of the node that already has this id, or nothing after adding it.
  std::optional<Mark> add(Node node, const Mark& mark);

  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] const Node& operator[](std::uint32_t i) const { return nodes_[i]; }
  [[nodiscard]] const Mark& mark(std::uint32_t i) const { return marks_[i]; }

  /// The nodes that a pattern stands for, in the innermost scope that has its first name (or, with a star, any match).
  /// Errors: unknown_node, too_much_work.
  tl::expected<std::vector<std::uint32_t>, Problem> resolve(const NamePattern& pattern, std::string_view written,
                                                            const Scope& scope, Budget& budget) const;

  std::vector<Node> take() { return std::move(nodes_); }

 private:
  [[nodiscard]] std::optional<std::uint32_t> find(const Scope& scope, const std::string& name) const;
  [[nodiscard]] Problem unknown(std::string_view name, const Scope& scope) const;
  void index_shapes(const Scope& scope) const;
  tl::expected<std::vector<std::uint32_t>, Problem> resolve_star(const NamePattern& pattern, std::string_view written,
                                                                 const Scope& scope, Budget& budget) const;

  std::vector<Node> nodes_;
  std::vector<Mark> marks_;
  std::unordered_map<std::string, std::uint32_t> by_id_;
};

}  // namespace espalier
