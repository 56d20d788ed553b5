#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/format_units.h"
#include "topology/import/import.h"

namespace espalier::test {

/// The topology of texts in files named a, b, ...; fails the test when there is none.
inline ImportedTopology import_good(const std::vector<std::string>& texts, const ImportOptions& options = {}) {
  std::vector<ImportFile> files;
  for (const std::string& text : texts) files.push_back({std::string(1, static_cast<char>('a' + files.size())), text});
  auto imported = import_topology(files, options);
  if (imported) return *std::move(imported);
  ADD_FAILURE() << imported.error().message;
  return {*Topology::make("none", {{.id = "none"}}, {}), {}, {}};
}

/// Why a text is refused; empty when it is not.
inline std::string refusal(std::string_view text, const ImportOptions& options = {}) {
  const std::vector<ImportFile> files{{"a", text}};
  const auto imported = import_topology(files, options);
  return imported ? "" : imported.error().message;
}

/// "3 x 25 GB/s nvlink" for the links from one node to another; several kinds are parted by commas.
inline std::string links(const Topology& topology, std::string_view tail, std::string_view head) {
  const NodeId from = topology.find_node(tail), to = topology.find_node(head);
  if (from.is_none() || to.is_none()) return "no such node";
  std::string text;
  const auto between = topology.links_between(from, to);
  for (std::size_t i = 0; i < between.size();) {
    const LinkValues& values = topology.link(between[i]);
    std::size_t count = 0;
    for (; i < between.size() && topology.link(between[i]).values() == values; ++i) ++count;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " x " + format_bandwidth(values.nominal) + " " +
            values.link_class;
  }
  return text;
}

/// Codes of the warnings, in order.
inline std::string codes(const ImportedTopology& imported) {
  std::string text;
  for (const Diagnostic& warning : imported.warnings) text += (text.empty() ? "" : " ") + warning.code;
  return text;
}

}  // namespace espalier::test
