#include "topology/yaml/read_topology.h"

#include <fmt/format.h>

#include "base/check.h"
#include "compute/gpu.h"
#include "topology/reachable.h"
#include "topology/yaml/read_codes.h"
#include "topology/yaml/reading.h"

namespace espalier {
namespace {

/// The file's `name`, or else the file name without its extension.
std::string read_name(Reading& reading, const SourceFiles::File& file) {
  const Value root = file.document->root();
  if (!root.is_map() || !root.find("name")) {
    return std::filesystem::path(reading.findings.source_name(file.source)).stem().string();
  }
  return read_text(root.find("name"), "'name'", reading.environments.front(), reading.findings).value_or("");
}

/// The file's `profile`: whose costs predictions add there. What it names is not looked for here.
std::string read_profile_name(Reading& reading, const SourceFiles::File& file) {
  const Value root = file.document->root();
  if (!root.is_map() || !root.find("profile")) return {};
  return read_text(root.find("profile"), "'profile'", reading.environments.front(), reading.findings).value_or("");
}

/// The file's `gpu`: what its ranks compute on.
std::string read_gpu_name(Reading& reading, const SourceFiles::File& file) {
  const Value root = file.document->root();
  if (!root.is_map() || !root.find("gpu")) return {};
  const Value written = root.find("gpu");
  const auto name = read_text(written, "'gpu'", reading.environments.front(), reading.findings);
  if (!name) return {};
  const auto gpu = compute::find_gpu(*name);
  if (gpu) return *name;
  reading.findings.error(written.mark(), {read_codes::unknown_gpu, gpu.error().message, gpu.error().help});
  return {};
}

/// Reports ranks that are missing or cannot reach each other.
void check_ranks(Reading& reading, const Topology& topology, const std::vector<Mark>& marks) {
  const auto broken = find_unreachable(topology);
  if (!broken) return;
  const NodeId from = topology.node_of(broken->from);
  const NodeId to = topology.node_of(broken->to);
  const NodeId lonely = from.index() > to.index() ? from : to;
  reading.findings.error(
      marks[lonely.index()],
      {read_codes::unreachable,
       topology.first_not_relaying().is_none()
           ? fmt::format("the rank '{}' cannot reach the rank '{}'", topology.node(from).id, topology.node(to).id)
           : describe_unreachable(topology, *broken),
       "add links that join them, or write 'rank: false' on a node that takes no part"});
}

std::optional<Topology> finish(Reading& reading, const SourceFiles::File& file) {
  const std::string name = read_name(reading, file);
  if (!reading.findings.empty()) return std::nullopt;
  bool has_rank = false;
  std::vector<Mark> marks;
  for (std::uint32_t i = 0; i < reading.nodes.size(); ++i) {
    has_rank = has_rank || reading.nodes[i].is_rank;
    marks.push_back(reading.nodes.mark(i));
  }
  if (!has_rank) {
    const Mark mark = file.document->root().mark();
    reading.findings.error(mark, {read_codes::no_ranks, "the topology has no ranks",
                                  "list at least one node of kind gpu or cpu under 'nodes:'"});
    return std::nullopt;
  }
  auto topology = Topology::make(name, reading.nodes.take(), std::move(reading.links));
  ESPALIER_CHECK(topology.has_value(), "the reader let a topology pass that breaks an invariant");
  check_ranks(reading, *topology, marks);
  if (!reading.findings.empty()) return std::nullopt;
  return *std::move(topology);
}

TopologyReading read(Reading& reading, const SourceFiles::File& file, const TopologyParameters& parameters) {
  TopologyReading result;
  if (file.document) {
    Scope& scope = reading.scopes.emplace_back();
    read_file_body(reading, file, scope, nullptr, parameters, {file.source, 0, 0, 1});
    scope.end_node = static_cast<std::uint32_t>(reading.nodes.size());
    for (const Body& body : reading.bodies_with_links) {
      if (!reading.is_over()) read_links(reading, body);
    }
    result.provenance = read_provenance(reading, file);
    result.profile = read_profile_name(reading, file);
    result.gpu = read_gpu_name(reading, file);
    result.topology = finish(reading, file);
  }
  result.diagnostics = reading.findings.take();
  return result;
}

}  // namespace

TopologyReading read_topology_file(const std::filesystem::path& path, const TopologyParameters& parameters,
                                   const ExpansionLimits& limits) {
  Reading reading(path.parent_path().empty() ? std::filesystem::path(".") : path.parent_path(), limits);
  const SourceFiles::File& file = reading.files.add_file(path);
  return read(reading, file, parameters);
}

TopologyReading read_topology_text(std::string_view text, const std::string& name_for_messages,
                                   const std::optional<std::filesystem::path>& base,
                                   const TopologyParameters& parameters, const ExpansionLimits& limits) {
  Reading reading(base, limits);
  const std::filesystem::path place = base.value_or(".") / "text";
  const SourceFiles::File& file = reading.files.add_text(std::string(text), name_for_messages, place);
  return read(reading, file, parameters);
}

}  // namespace espalier
