#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "topology/yaml/document.h"
#include "topology/yaml/findings.h"
#include "topology/yaml/parameters.h"

namespace espalier {

/// The keys and values of one map, with the parameters of its place filled in. Whatever is wrong with a value is
/// reported once; the getter then returns nothing, as it does for a key that is not there.
class Fields {
 public:
  /// Reports keys that are not among `known`, and a value that is no map. `what` names it in messages: "a node".
  Fields(Value map, std::string_view what, std::span<const std::string_view> known, const Environment& environment,
         Findings& findings);

  [[nodiscard]] bool is_map() const { return map_.is_map(); }
  [[nodiscard]] bool has(std::string_view key) const { return static_cast<bool>(find(key)); }
  [[nodiscard]] Value find(std::string_view key) const { return map_.find(key); }
  [[nodiscard]] Mark mark() const { return map_.mark(); }
  /// The mark of a key's value, or of the map when the key is missing.
  [[nodiscard]] Mark mark_of(std::string_view key) const;

  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  /// A whole number. Reports one outside [low, high].
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  std::optional<Bandwidth> bandwidth(std::string_view key) const;
  std::optional<Picoseconds> latency(std::string_view key) const;
  std::optional<Picoseconds> duration(std::string_view key) const;
  /// A decimal above 0 and at most 1, in millionths.
  std::optional<std::int32_t> millionths(std::string_view key) const;

  /// Reports that a key is missing.
  void missing(std::string_view key, std::string_view help) const;
  void error(const Mark& mark, Problem problem) const { findings_.error(mark, std::move(problem)); }

 private:
  std::optional<Picoseconds> time(std::string_view key, Result<Picoseconds> (*parse)(std::string_view)) const;

  Value map_;
  std::string_view what_;
  const Environment& environment_;
  Findings& findings_;
};

/// Whether a file whose form begins with `key` is of another form of ours: then one error says so, and where it is
/// given.
bool is_of_another_form(Value root, std::string_view key, Findings& findings);

/// The text of a scalar with parameters filled in. Anything else is reported as `what` not being a text.
std::optional<std::string> read_text(Value value, std::string_view what, const Environment& environment,
                                     Findings& findings);

}  // namespace espalier
