#pragma once

// Tested by: tests/options/options_test.py

#include <CLI/CLI.hpp>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::cli {

/// A collective, and the message size that a traffic matrix of bytes gives it.
struct SizedCollective {
  Collective collective;
  std::optional<Bytes> size;
};

/// The COLLECTIVE argument and its flags -r, --shares and --matrix.
struct CollectiveFlags {
  std::string name;
  std::string root;    ///< A rank's number or its node id; empty for rank 0.
  std::string shares;  ///< Whole numbers parted by commas, one per rank; empty for equal shards.
  std::string matrix;  ///< A traffic matrix, as load_traffic takes it; empty for equal blocks.

  /// Adds all to a verb.
  void add_to(CLI::App& command, bool required);

  /// Whether a plan is of the collective that was named, if one was: an error if not.
  [[nodiscard]] std::optional<Error> find_contradiction(const Collective& of_plan) const;

  /// Errors: invalid_input, naming what is wrong; the caller reports it as wrong usage.
  [[nodiscard]] Result<Collective> resolve(const Topology& topology) const;
  /// The same, with the size of a matrix of bytes. Errors: also those of load_traffic.
  [[nodiscard]] Result<SizedCollective> resolve_sized(const Topology& topology) const;

 private:
  [[nodiscard]] Result<SizedCollective> resolve_matrix(CollectiveKind kind, const Topology& topology) const;
};

/// Its options for a Mode (modes.h).
inline constexpr std::array<std::string_view, 4> collective_options = {"COLLECTIVE", "--root", "--shares", "--matrix"};

/// "  shares 3,1,1" for the head of a table, or what a traffic matrix is like; nothing where all parts are equal.
std::string shares_text(const Collective& collective);

}  // namespace espalier::cli
