#include "topology/import/formats/slurm_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "topology/import/lines.h"
#include "topology/names/patterns.h"

namespace espalier {
namespace {

constexpr std::uint64_t max_slurm_nodes = 100'000;
constexpr int deepest_tree = 32;

}  // namespace

Result<std::vector<std::string>> read_hostlist(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    std::size_t end = 0;
    for (int depth = 0; end < list.size() && (list[end] != ',' || depth > 0); ++end) {
      depth += (list[end] == '[' ? 1 : 0) - (list[end] == ']' ? 1 : 0);
    }
    const std::string_view part = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    const auto pattern = NamePattern::parse(part);
    if (!pattern)
      return fail(ErrorCode::invalid_input, cited(part) + " is no hostlist", "write node[1-32] or node1,node2");
    if (part.empty() || pattern->has_star() || pattern->size() > max_slurm_nodes - names.size()) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{} names nothing, or more than {} nodes", cited(part), max_slurm_nodes),
                  "write node[1-32] or node1,node2");
    }
    for (std::string& name : pattern->names()) names.push_back(std::move(name));
  }
  return names;
}

Result<void> SlurmTree::add(std::string_view name, std::string_view nodes, std::string_view switches, bool is_block) {
  const auto known = [&](std::map<std::string, std::size_t>& places, const std::string& id, DraftNode node) {
    const auto found = places.find(id);
    return found != places.end() ? found->second : places.emplace(id, draft_.add(std::move(node))).first->second;
  };
  const std::size_t own = known(switches_, std::string(name), {.id = std::string(name), .kind = NodeKind::switch_node});
  const auto hosts = read_hostlist(nodes);
  if (!hosts) return tl::unexpected(hosts.error());
  std::vector<std::size_t> below;
  for (const std::string& host : *hosts) {
    const std::size_t node = known(hosts_, host, {.id = host, .kind = NodeKind::cpu, .is_rank = true, .host = host});
    if (is_block) draft_.nodes[node].domain = name;
    below.push_back(node);
  }
  const auto lower = read_hostlist(switches);
  if (!lower) return tl::unexpected(lower.error());
  for (const std::string& id : *lower) {
    const std::size_t node = known(switches_, id, {.id = id, .kind = NodeKind::switch_node});
    below.push_back(node);
    has_above_[node] = true;
  }
  const auto [known_below, is_new] = below_.emplace(own, below);
  if (is_new || known_below->second == below) return {};  // Twice the same, as of two printouts in one paste.
  return fail(ErrorCode::invalid_input, fmt::format("{} is there twice, with other nodes below it", cited(name)),
              "give a file for each cluster");
}

bool SlurmTree::reaches_all_hosts(std::size_t top) const {
  std::set<std::size_t> seen = {top};
  std::size_t hosts = 0;
  for (std::vector<std::size_t> open = {top}; !open.empty();) {
    const std::size_t node = open.back();
    open.pop_back();
    if (draft_.nodes[node].is_rank) ++hosts;
    const auto lower = below_.find(node);
    if (lower == below_.end()) continue;
    for (const std::size_t each : lower->second) {
      if (seen.insert(each).second) open.push_back(each);
    }
  }
  return hosts == hosts_.size();
}

void SlurmTree::join_tops() {
  std::vector<std::size_t> tops;
  for (const auto& [name, node] : switches_) {
    if (!has_above_[node]) tops.push_back(node);
  }
  // Several spines above the same leaves need nothing to join them.
  if (tops.size() < 2 || std::ranges::any_of(tops, [this](std::size_t top) { return reaches_all_hosts(top); })) return;
  draft_.warn(import_codes::left_out, 0,
              fmt::format("the file does not say what joins its {} topmost switches", tops.size()),
              "one more switch that does not limit them is assumed");
  const std::size_t root = draft_.add({.id = "top", .kind = NodeKind::switch_node});
  below_[root] = std::move(tops);
}

Result<std::size_t> SlurmTree::hosts_below(std::size_t node, int depth) {
  if (draft_.nodes[node].is_rank) return std::size_t{1};
  if (const auto known = counts_.find(node); known != counts_.end()) return known->second;
  if (depth > deepest_tree) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: the switch {} is below itself", draft_.file, draft_.nodes[node].id),
                "correct 'Switches' of one of them");
  }
  std::size_t sum = 0;
  for (const std::size_t lower : below_[node]) {
    const auto count = hosts_below(lower, depth + 1);
    if (!count) return count;
    sum = std::min<std::size_t>(sum + *count, max_slurm_nodes);
  }
  return counts_[node] = sum;
}

Result<Draft> SlurmTree::take() {
  if (hosts_.empty())
    return fail(ErrorCode::infeasible, draft_.file + " names no nodes", "give the file with 'Nodes='");
  for (const auto& [name, node] : switches_) {
    if (below_.contains(node)) continue;
    return fail(
        ErrorCode::invalid_input,
        fmt::format("{}: {} is below a switch, and the file does not say what is below it", draft_.file, cited(name)),
        "the end of the file may be missing: give the whole of it");
  }
  const auto below = below_;
  for (const auto& [upper, lowers] : below) {
    for (const std::size_t lower : lowers) {
      const auto count = hosts_below(lower, 0);
      if (!count) return tl::unexpected(count.error());
      if (*count == 0 || lower == upper) continue;
      draft_.links.push_back({.tail = lower,
                              .head = upper,
                              .medium = Medium::net,
                              .count = static_cast<std::int64_t>(*count),
                              .link_class = draft_.nodes[lower].is_rank ? "net" : "uplink"});
    }
  }
  return std::move(draft_);
}

}  // namespace espalier
