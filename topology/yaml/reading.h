#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <deque>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "topology/topology.h"
#include "topology/yaml/document.h"
#include "topology/yaml/fields.h"
#include "topology/yaml/findings.h"
#include "topology/yaml/parameters.h"
#include "topology/yaml/read_topology.h"
#include "topology/yaml/scopes.h"
#include "topology/yaml/source_files.h"

namespace espalier {

/// The files that are being included at one place, innermost first.
struct IncludeChain {
  const SourceFiles::File* file = nullptr;
  const IncludeChain* outer = nullptr;
  std::size_t length = 1;
};

/// A map with nodes, groups and links (a file or a group), the scope it fills and the parameters it sees.
struct Body {
  Value map;
  Scope* scope = nullptr;
  const Environment* environment = nullptr;
  const IncludeChain* chain = nullptr;
};

/// Everything one reading has gathered. Nodes are read first, links last: a link may name any node of the file.
/// The deques keep what bodies point to in place.
struct Reading {
  Reading(std::optional<std::filesystem::path> base, const ExpansionLimits& most)
      : limits(most), files(std::move(base), findings), budget(most.steps) {}

  ExpansionLimits limits;
  Findings findings;
  SourceFiles files;
  Budget budget;
  NodeTable nodes;
  std::deque<Scope> scopes;
  std::deque<Environment> environments;
  std::deque<IncludeChain> chains;
  std::vector<Body> bodies_with_links;  ///< In the order their links are numbered.
  std::vector<Link> links;
  std::set<std::pair<const SourceFiles::File*, std::string>> unknown_classes;  ///< Reported, each once per file.

  /// True when going on would find nothing more to say.
  [[nodiscard]] bool is_over() const { return findings.is_full() || budget.is_spent(); }
  /// Counts one step; reports at `mark` when the file asks for too many.
  bool step(const Mark& mark);
  /// The list under `key`, or no value when it is missing or (reported) no list.
  Value list_of(const Body& body, std::string_view key);
};

/// Reads parameters, includes, classes, nodes and groups of a body, and notes it for its links. `passed` are the
/// parameters given from outside, by name.
using PassedParameters = std::vector<std::pair<std::string, std::string>>;
void read_file_body(Reading& reading, const SourceFiles::File& file, Scope& scope, const IncludeChain* outer,
                    const PassedParameters& passed, const Mark& passed_at);

/// The parts of a body, in the order they are read.
void read_includes(Reading& reading, const Body& body);
void read_classes(Reading& reading, const Body& body);
void read_nodes(Reading& reading, const Body& body);
void read_groups(Reading& reading, const Body& body);
void read_links(Reading& reading, const Body& body);

/// The rows of the file's own `provenance`; those of included files do not count.
std::vector<ProvenanceRow> read_provenance(Reading& reading, const SourceFiles::File& file);

/// Includes, classes, nodes, groups; then notes the body for its links.
void read_body(Reading& reading, const Body& body);

/// The names that the `id` and `count` of a node or group stand for; empty after errors. At most `most` of them.
std::vector<std::string> read_names(Reading& reading, const Fields& fields, std::string_view what,
                                    const Environment& environment, std::uint64_t most);

/// Bandwidth, latency, overhead and efficiency, as far as they are given.
LinkClass read_link_values(const Fields& fields);

}  // namespace espalier
