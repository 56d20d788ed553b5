#include "topology/import/finish.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/format_units.h"
#include "base/printable.h"
#include "topology/import/lines.h"
#include "topology/names/node_id.h"
#include "topology/reachable.h"
#include "topology/topology_builder.h"

namespace espalier {
namespace {

/// Bandwidth and latency with where they came from.
struct Resolved {
  Known<Bandwidth> bandwidth;
  Known<Picoseconds> latency;
};

bool is_switch(const DraftNode& node) { return node.kind == NodeKind::switch_node; }

Resolved resolve(const Draft& draft, const DraftLink& link, const Preset* preset) {
  const DraftNode& tail = draft.nodes[link.tail];
  const DraftNode& head = draft.nodes[link.head];
  std::optional<Known<Bandwidth>> bandwidth = link.bandwidth;
  const bool is_between_gpus = link.medium == Medium::nvlink || link.medium == Medium::xgmi;
  if (!bandwidth && is_between_gpus) {
    bandwidth = tail.link_rate;
    // Two GPUs of unlike generations speak at the rate of the slower one.
    if (!bandwidth || (head.link_rate && head.link_rate->value < bandwidth->value)) bandwidth = head.link_rate;
  }
  if (preset != nullptr && preset_rate(*preset, link.medium).bytes_per_second > 0) {
    const bool is_weaker = !bandwidth || bandwidth->origin < Origin::captured;
    if (is_weaker) bandwidth = {preset_rate(*preset, link.medium), Origin::preset, std::string(preset->name)};
  }
  if (!bandwidth) bandwidth = {assumed_rate(link.medium), Origin::assumed, "no file has it"};
  std::optional<Known<Picoseconds>> latency = link.latency;
  if (!latency) {
    latency = {assumed_latency(link.medium, is_switch(tail) || is_switch(head)), Origin::assumed, "no file has it"};
  }
  return {*bandwidth, *latency};
}

/// Digits count as numbers, so that gpu10 comes behind gpu9.
bool comes_before(std::string_view a, std::string_view b) {
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const auto end_of = [&](std::string_view text, std::size_t at) {
        while (at < text.size() && is_digit(text[at])) ++at;
        return at;
      };
      while (i + 1 < end_of(a, i) && a[i] == '0') ++i;
      while (j + 1 < end_of(b, j) && b[j] == '0') ++j;
      const std::string_view left = a.substr(i, end_of(a, i) - i), right = b.substr(j, end_of(b, j) - j);
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
      i += left.size();
      j += right.size();
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  return a.size() - i < b.size() - j;
}

/// GPUs (or what else is a rank) by host and number, then all else in the order of the files.
std::vector<std::size_t> order_nodes(const Draft& draft) {
  std::map<std::string_view, std::size_t> hosts;
  for (const DraftNode& node : draft.nodes) hosts.emplace(node.host, hosts.size());
  std::vector<std::size_t> order(draft.nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const DraftNode& left = draft.nodes[a];
    const DraftNode& right = draft.nodes[b];
    if (left.is_rank != right.is_rank) return left.is_rank;
    if (!left.is_rank) return false;
    if (left.host != right.host) return hosts.at(left.host) < hosts.at(right.host);
    return comes_before(left.id, right.id);
  });
  return order;
}

/// A name in letters that need no quotes anywhere.
std::string plain_name(std::string_view name) {
  constexpr std::size_t longest = 200;
  std::string plain(name.substr(0, longest));
  for (char& letter : plain) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || letter == '_';
    if (!is_plain) letter = '_';
  }
  return plain;
}

/// An id that a topology may have, and that no node has yet.
std::string free_id(const DraftNode& node, std::map<std::string, int>& taken) {
  const bool is_host_itself = node.id == node.host;
  std::string id = plain_name(node.host.empty() || is_host_itself ? node.id : node.host + "." + node.id);
  if (id.empty()) id = "node";
  std::string free = id;
  while (!taken.emplace(free, 1).second) free = fmt::format("{}-{}", id, ++taken[id]);
  return free;
}

/// Those that a file says it of, and NVSwitches of generations whose switches do.
std::set<std::size_t> switches_that_add(const Draft& draft, const GpuGeneration* generation) {
  std::set<std::size_t> adding;
  for (std::size_t i = 0; i < draft.nodes.size(); ++i) {
    if (draft.nodes[i].adds) adding.insert(i);
  }
  if (generation == nullptr || !generation->switches_add) return adding;
  for (const DraftLink& link : draft.links) {
    if (link.medium != Medium::nvlink) continue;
    for (const std::size_t end : {link.tail, link.head}) {
      if (is_switch(draft.nodes[end])) adding.insert(end);
    }
  }
  return adding;
}

class Finisher {
 public:
  Finisher(const Draft& draft, const FinishOptions& options) : draft_(draft), options_(options) {}

  Result<ImportedTopology> finish() {
    const auto order = order_nodes(draft_);
    if (draft_.nodes.empty() || !draft_.nodes[order.front()].is_rank) {
      return fail(ErrorCode::infeasible, draft_.file + " has neither GPUs nor hosts", "import a file that lists them");
    }
    std::vector<NodeId> ids(draft_.nodes.size());
    std::map<std::string, int> taken;
    const GpuGeneration* const generation = generation_of(draft_, options_.preset);
    const std::set<std::size_t> adding = switches_that_add(draft_, generation);
    std::vector<std::string> names;
    for (const std::size_t i : order) {
      const DraftNode& node = draft_.nodes[i];
      const bool adds = options_.in_network && adding.contains(i);
      std::string id = free_id(node, taken);
      if (adding.contains(i)) names.push_back(id);
      ids[i] = builder_.node({.id = std::move(id),
                              .kind = node.kind,
                              .is_rank = node.is_rank,
                              .multicast = adds,
                              .reduction = adds,
                              .host = plain_name(node.host),
                              .model = node.kind == NodeKind::gpu ? std::string() : plain_name(node.model)});
    }
    for (const DraftLink& link : draft_.links) add_link(link, ids);
    auto topology = std::move(builder_).build(printable_line(options_.name));
    if (!topology) return tl::unexpected(topology.error());
    if (const auto broken = find_unreachable(*topology)) {
      return fail(ErrorCode::infeasible,
                  fmt::format("{}: {} cannot reach {}", draft_.file, topology->rank_name(broken->from),
                              topology->rank_name(broken->to)),
                  "import a file with what joins them as well");
    }
    warn_of_assumptions();
    ImportedTopology imported{*std::move(topology), std::move(rows_), std::move(warnings_)};
    if (generation != nullptr) imported.profile = generation->profile;
    imported.gpu = gpu_model_of(draft_, options_.preset);
    if (!names.empty() && !options_.in_network) {
      imported.notes.push_back(
          fmt::format("{} can copy and add in the network, which is not counted: --in-network does", listed(names)));
    }
    return imported;
  }

 private:
  /// Links into a switch are bundled, as configs/ has them; those between two GPUs stay apart.
  void add_link(const DraftLink& link, const std::vector<NodeId>& ids) {
    Resolved known = resolve(draft_, link, options_.preset);
    std::int64_t count = link.count;
    const bool is_bundled = is_switch(draft_.nodes[link.tail]) || is_switch(draft_.nodes[link.head]);
    if (is_bundled) {
      known.bandwidth.value.bytes_per_second *= count;
      if (count > 1) known.bandwidth.source += fmt::format(" x {} links", count);
      count = 1;
    }
    const std::string link_class =
        link.link_class.empty() ? std::string(to_string(link.medium)) : plain_name(link.link_class);
    const Wire wire{known.bandwidth.value, known.latency.value, link_class};
    for (std::int64_t i = 0; i < count; ++i) {
      builder_.link(ids[link.tail], ids[link.head], wire);
      if (!link.one_way) builder_.link(ids[link.head], ids[link.tail], wire);
    }
    note(wire.link_class, "bandwidth", format_bandwidth(wire.bandwidth), known.bandwidth.origin,
         known.bandwidth.source);
    note(wire.link_class, "latency", format_latency(wire.latency), known.latency.origin, known.latency.source);
    if (known.bandwidth.origin == Origin::assumed) assumed_[wire.link_class].insert(format_bandwidth(wire.bandwidth));
  }

  void note(const std::string& link_class, std::string key, std::string value, Origin origin, std::string source) {
    ProvenanceRow row{link_class, std::move(key), std::move(value), origin, printable_line(source)};
    if (seen_.insert(row).second) rows_.push_back(std::move(row));
  }

  void warn_of_assumptions() {
    warnings_ = draft_.warnings;
    for (const auto& [link_class, rates] : assumed_) {
      std::string all;
      for (const std::string& rate : rates) all += (all.empty() ? "" : ", ") + rate;
      Diagnostic warning;
      warning.severity = Severity::warning;
      warning.code = import_codes::assumed_rate;
      warning.place.file = draft_.file;
      warning.message = fmt::format("no file has a rate of links of class {}: {} are assumed", link_class, all);
      warning.help = options_.preset == nullptr ? "name the machine with --preset, or change the file that is written"
                                                : "the preset has none either: change the file that is written";
      warnings_.push_back(std::move(warning));
    }
  }

  const Draft& draft_;
  const FinishOptions& options_;
  TopologyBuilder builder_;
  std::vector<ProvenanceRow> rows_;
  std::vector<Diagnostic> warnings_;
  std::set<ProvenanceRow> seen_;
  std::map<std::string, std::set<std::string>> assumed_;  // By class.
};

}  // namespace

const GpuGeneration* generation_of(const Draft& draft, const Preset* preset) {
  if (preset != nullptr) return find_generation(preset->generation);
  const GpuGeneration* found = nullptr;
  for (const DraftNode& node : draft.nodes) {
    if (node.model.empty() || node.kind != NodeKind::gpu) continue;
    const GpuGeneration* const own = find_generation(node.model);
    if (own == nullptr || (found != nullptr && found->profile != own->profile)) return nullptr;
    found = own;
  }
  return found;
}

std::string_view gpu_model_of(const Draft& draft, const Preset* preset) {
  if (preset != nullptr && !find_gpu_model(preset->name).empty()) return find_gpu_model(preset->name);
  std::string_view found;
  for (const DraftNode& node : draft.nodes) {
    if (node.kind != NodeKind::gpu) continue;
    const std::string_view own = find_gpu_model(node.model);
    if (own.empty() || (!found.empty() && found != own)) return {};
    found = own;
  }
  return found;
}

Result<ImportedTopology> finish_import(const Draft& draft, const FinishOptions& options) {
  return Finisher(draft, options).finish();
}

}  // namespace espalier
