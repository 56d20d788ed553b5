#include "topology/yaml/findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_limits.h"

namespace espalier {
namespace {

constexpr std::size_t longest_excerpt = 4096;  // A file may be one line of megabytes; nobody reads that in a terminal.

std::string line_of(std::string_view text, std::uint32_t line) {
  std::size_t begin = 0;
  for (std::uint32_t i = 1; i < line; ++i) {
    begin = text.find('\n', begin);
    if (begin == std::string_view::npos) return {};
    ++begin;
  }
  std::string_view found = text.substr(begin, text.find('\n', begin) - begin);
  if (found.ends_with('\r')) found.remove_suffix(1);
  return std::string(found.substr(0, longest_excerpt));
}

}  // namespace

std::uint32_t Findings::add_source(std::string name, std::string_view text) {
  sources_.push_back({std::move(name), text});
  return static_cast<std::uint32_t>(sources_.size() - 1);
}

void Findings::error(const Mark& mark, Problem problem) {
  if (!seen_.emplace(mark.source, mark.line, mark.column, problem.code).second) return;
  if (diagnostics_.size() >= read_limits::errors) {
    ++hidden_;
    return;
  }
  diagnostics_.emplace_back(mark, located(Severity::error, mark, std::move(problem)));
}

void Findings::warning(const Mark& mark, Problem problem) {
  const bool is_new = seen_.emplace(mark.source, mark.line, mark.column, problem.code).second;
  if (!is_new || warnings_.size() >= read_limits::errors) return;
  warnings_.emplace_back(mark, located(Severity::warning, mark, std::move(problem)));
}

Diagnostic Findings::located(Severity severity, const Mark& mark, Problem problem) const {
  const Source& source = sources_[mark.source];
  Diagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.code = problem.code;
  diagnostic.place = {source.name, static_cast<int>(mark.line), static_cast<int>(mark.column)};
  const bool is_shown = mark.line > 0 && mark.column <= longest_excerpt && problem.code != read_codes::not_text;
  if (is_shown) diagnostic.excerpt = line_of(source.text, mark.line);
  diagnostic.width = static_cast<int>(mark.width);
  diagnostic.message = std::move(problem.message);
  diagnostic.help = std::move(problem.help);
  return diagnostic;
}

bool Findings::has(const Mark& mark, std::string_view code) const {
  return seen_.contains({mark.source, mark.line, mark.column, code});
}

std::vector<Diagnostic> Findings::take() {
  diagnostics_.insert(diagnostics_.end(), warnings_.begin(), warnings_.end());
  warnings_.clear();
  std::ranges::stable_sort(diagnostics_, {}, [](const auto& entry) {
    const Mark& mark = entry.first;
    return std::tuple(mark.source, mark.line, mark.column);
  });
  std::vector<Diagnostic> diagnostics;
  diagnostics.reserve(diagnostics_.size() + 1);
  for (auto& [mark, diagnostic] : diagnostics_) diagnostics.push_back(std::move(diagnostic));
  if (hidden_ > 0) {
    diagnostics.push_back({Severity::error,
                           std::string(read_codes::more_errors),
                           {sources_[0].name, 0, 0},
                           "",
                           1,
                           fmt::format("there are more errors; the first {} are shown", read_limits::errors),
                           "mend these first"});
  }
  diagnostics_.clear();
  seen_.clear();
  hidden_ = 0;
  return diagnostics;
}

}  // namespace espalier
