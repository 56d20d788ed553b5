#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/diagnostic.h"

namespace espalier {

/// A place in one of the files being read. Lines and columns count from 1; line 0 stands for the file as a whole.
struct Mark {
  std::uint32_t source = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t width = 1;
};

/// What is wrong and what to write instead, before it is known where.
struct Problem {
  std::string_view code;  ///< From topology/yaml/read_codes.h.
  std::string message;
  std::string help;
};

/// Collects the diagnostics of one reading. The same code at the same place is reported once, however many instances of
/// a group run into it.
class Findings {
 public:
  /// Registers a text that marks may point into; the text must stay alive until `take`.
  std::uint32_t add_source(std::string name, std::string_view text);

  void error(const Mark& mark, Problem problem);
  /// What does not keep the file from being used.
  void warning(const Mark& mark, Problem problem);

  /// True when `error` with this code and place would be dropped as a repetition.
  [[nodiscard]] bool has(const Mark& mark, std::string_view code) const;
  /// Whether there are no errors.
  [[nodiscard]] bool empty() const { return diagnostics_.empty() && hidden_ == 0; }
  /// True when no further error would be shown: a good moment to stop looking.
  [[nodiscard]] bool is_full() const { return hidden_ > 0; }
  [[nodiscard]] const std::string& source_name(std::uint32_t source) const { return sources_[source].name; }

  /// All diagnostics in the order of their places. Leaves the collection empty.
  std::vector<Diagnostic> take();

 private:
  struct Source {
    std::string name;
    std::string_view text;
  };
  [[nodiscard]] Diagnostic located(Severity severity, const Mark& mark, Problem problem) const;

  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::string_view>;

  std::vector<Source> sources_;
  std::vector<std::pair<Mark, Diagnostic>> diagnostics_;
  std::vector<std::pair<Mark, Diagnostic>> warnings_;
  std::set<Key> seen_;
  std::size_t hidden_ = 0;
};

}  // namespace espalier
