#include "topology/analysis/symmetry.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "base/format_units.h"
#include "topology/analysis/majority.h"
#include "topology/analysis/symmetry_links.h"

namespace espalier {

namespace {

/// "GPUs", as in "7 of 8 GPUs".
std::string_view plural(NodeKind kind) {
  switch (kind) {
    case NodeKind::gpu: return "GPUs";
    case NodeKind::cpu: return "CPUs";
    case NodeKind::nic: return "NICs";
    case NodeKind::switch_node: return "switches";
    case NodeKind::pcie: return "PCIe switches";
  }
  return "nodes";
}

/// Nodes that should be alike: one kind and, for those that only forward, one role. The role is what is left of the id
/// without the host's name and without digits.
struct PeerKey {
  NodeKind kind = NodeKind::gpu;
  bool is_rank = false;
  std::string role;
  std::string host;  ///< Empty for the peers over all hosts.
  auto operator<=>(const PeerKey&) const = default;
};

PeerKey peer_key(const Node& node) {
  PeerKey key{node.kind, node.is_rank, "", ""};
  if (node.is_rank) return key;
  std::string_view name = node.id;
  if (!node.host.empty() && name.starts_with(node.host)) name.remove_prefix(node.host.size());
  std::ranges::copy_if(name, std::back_inserter(key.role), [](char letter) { return letter < '0' || letter > '9'; });
  return key;
}

/// One property that peers should share.
struct Trait {
  const char* code;
  std::string name;  ///< Tells traits of one code apart.
  std::function<std::int64_t(NodeId)> read;
  std::function<std::string(std::int64_t)> words;   ///< "6 nvlink links".
  std::function<std::string(std::int64_t)> remark;  ///< What a deviant has: "5".
  std::size_t max_deviants;
};

/// Links without a class go by their rate: "of 25 GB/s".
bool is_rate(const std::string& name) { return name.starts_with("of "); }

/// "6 nvlink links", "1 link of 25 GB/s".
std::string links_text(std::int64_t count, const std::string& name) {
  const std::string_view noun = count == 1 ? "link" : "links";
  return is_rate(name) ? fmt::format("{} {} {}", count, noun, name) : fmt::format("{} {} {}", count, name, noun);
}

std::string rate_words(std::string_view what, std::int64_t rate) {
  return rate == 0 ? fmt::format("no {}", what) : fmt::format("a {} of {}", what, format_bandwidth({rate}));
}

class Survey {
 public:
  explicit Survey(const Topology& topology)
      : topology_(topology), cables_(topology.node_count()), switches_(topology.node_count()) {
    count_cables();
    for (std::size_t i = 0; i < topology.node_count(); ++i) {
      PeerKey key = peer_key(topology.node(NodeId(i)));
      peers_[key].emplace_back(i);
      key.host = topology.node(NodeId(i)).host;
      if (!key.host.empty()) peers_[key].emplace_back(i);
    }
  }

  std::vector<Diagnostic> report() && {
    // Keys with an empty host sort before those of the same role with a host: all hosts are looked at first.
    for (const auto& [key, members] : peers_) {
      if (key.host.empty()) compare_peers(key, members);
    }
    for (const auto& [key, members] : peers_) {
      if (!key.host.empty()) compare_peers(key, members);
    }
    compare_hosts();
    return std::move(found_);
  }

 private:
  /// Counts links per node and class; a cable counts once, and so does a link without its way back, which is reported
  /// as such.
  void count_cables() {
    std::map<std::tuple<NodeId, NodeId, std::string>, std::pair<std::int64_t, std::int64_t>> pairs;
    for (const Link& link : topology_.links()) {
      const std::string name = link.link_class.empty() ? "of " + format_bandwidth(link.bandwidth()) : link.link_class;
      auto& [there, back] = pairs[{std::min(link.tail, link.head), std::max(link.tail, link.head), name}];
      ++(link.tail < link.head ? there : back);
    }
    std::vector<std::set<NodeId>> neighbours(topology_.node_count());
    for (const auto& [key, both] : pairs) {
      const auto& [a, b, name] = key;
      for (const auto& [node, other] : {std::pair(a, b), std::pair(b, a)}) {
        cables_[node.index()][name] += std::max(both.first, both.second);
        const NodeKind kind = topology_.node(other).kind;
        if (kind == NodeKind::switch_node || kind == NodeKind::pcie) neighbours[node.index()].insert(other);
      }
      if (topology_.node(a).is_rank && topology_.node(b).is_rank) direct_.insert(name);
    }
    for (std::size_t i = 0; i < neighbours.size(); ++i) {
      switches_[i] = static_cast<std::int64_t>(neighbours[i].size());
    }
  }

  void compare_peers(const PeerKey& key, const std::vector<NodeId>& members) {
    if (members.size() < 4) return;
    compare_links(key, members);
    for (const auto& [what, rate] :
         {std::pair("backplane bandwidth", &Node::bandwidth), std::pair("reduce bandwidth", &Node::reduce_bandwidth)}) {
      const auto words = [what = what](std::int64_t bytes) { return rate_words(what, bytes); };
      compare(key, members,
              {"T103", what, [&, rate = rate](NodeId node) { return (topology_.node(node).*rate).bytes_per_second; },
               words, words, members.size()});
    }
  }

  void compare_links(const PeerKey& key, const std::vector<NodeId>& members) {
    std::set<std::string> classes;
    for (const NodeId node : members) {
      for (const auto& [name, count] : cables_[node.index()]) classes.insert(name);
    }
    const std::size_t few = std::clamp<std::size_t>(members.size() / 16, 2, 8);
    std::vector<Trait> traits;
    bool unanimous = true;
    bool regular_rates = true;
    for (const std::string& name : classes) {
      const auto count = [this, name](NodeId node) {
        const auto found = cables_[node.index()].find(name);
        return found == cables_[node.index()].end() ? 0 : found->second;
      };
      traits.push_back({"T101", name, count, [name](std::int64_t links) { return links_text(links, name); },
                        [](std::int64_t links) { return std::to_string(links); },
                        key.is_rank && direct_.contains(name) ? few : members.size()});
      const auto majority = find_majority(read(members, traits.back()), traits.back().max_deviants);
      if (!majority || !majority->deviants.empty()) unanimous = false;
      if (!majority && is_rate(name)) regular_rates = false;
    }
    // Rates without class names tell something only where all of them are regular: elsewhere the graph is just uneven.
    for (const Trait& trait : traits) {
      if (regular_rates || !is_rate(trait.name)) compare(key, members, trait);
    }
    // A missing link explains a missing neighbour.
    if (!unanimous) return;
    compare(key, members,
            {"T102", "", [this](NodeId node) { return switches_[node.index()]; },
             [](std::int64_t count) { return fmt::format("{} neighbouring switches", count); },
             [](std::int64_t count) { return std::to_string(count); }, members.size()});
  }

  static std::vector<std::int64_t> read(const std::vector<NodeId>& members, const Trait& trait) {
    std::vector<std::int64_t> values;
    for (const NodeId node : members) values.push_back(trait.read(node));
    return values;
  }

  void compare(const PeerKey& key, const std::vector<NodeId>& members, const Trait& trait) {
    const std::vector<std::int64_t> values = read(members, trait);
    const auto majority = find_majority(values, trait.max_deviants);
    if (!majority || majority->deviants.empty()) return;
    // Most peers having no such link says nothing against the one that has: often one GPU sits beside the NIC.
    if (majority->value == 0 && trait.code != std::string_view("T103")) return;
    std::vector<std::string> remarks;
    std::map<std::int64_t, std::vector<std::string>> by_value;
    bool news = false;
    for (const std::size_t position : majority->deviants) {
      by_value[values[position]].push_back(topology_.node(members[position]).id);
      if (reported_.emplace(members[position], trait.code + trait.name).second) news = true;
    }
    if (!news) return;
    for (const auto& [value, names] : by_value) {
      remarks.push_back(
          fmt::format("{} {} {}", list_names(names), names.size() == 1 ? "has" : "have", trait.remark(value)));
    }
    const std::string where = key.host.empty() ? "" : " in " + key.host;
    found_.push_back(asymmetry(
        trait.code, fmt::format("{} of {} {}{} have {}, {}", majority->agreeing, members.size(), plural(key.kind),
                                where, trait.words(majority->value), fmt::join(remarks, ", "))));
  }

  /// T104: hosts that have fewer or more nodes of a role than the other hosts.
  void compare_hosts() {
    std::map<std::string, std::size_t> host_index;
    for (const auto& [key, members] : peers_) {
      if (!key.host.empty()) host_index.emplace(key.host, host_index.size());
    }
    std::map<PeerKey, std::vector<std::int64_t>> counts;
    for (const auto& [key, members] : peers_) {
      if (key.host.empty()) continue;
      PeerKey role = key;
      role.host.clear();
      auto& per_host = counts.try_emplace(role, host_index.size(), 0).first->second;
      per_host[host_index[key.host]] = static_cast<std::int64_t>(members.size());
    }
    std::vector<std::string> hosts(host_index.size());
    for (const auto& [host, index] : host_index) hosts[index] = host;
    std::map<std::pair<NodeKind, bool>, std::vector<std::int64_t>> of_kind;
    for (const auto& [role, per_host] : counts) {
      auto& all = of_kind.try_emplace({role.kind, role.is_rank}, hosts.size(), 0).first->second;
      for (std::size_t i = 0; i < hosts.size(); ++i) all[i] += per_host[i];
    }
    for (const auto& [role, per_host] : counts) {
      // Hosts that name their nodes in other ways, and have as many, lack none.
      const auto& all = of_kind.at({role.kind, role.is_rank});
      if (std::ranges::adjacent_find(all, std::ranges::not_equal_to()) == all.end()) continue;
      compare_host_counts(role, hosts, per_host);
    }
  }

  void compare_host_counts(const PeerKey& role, const std::vector<std::string>& hosts,
                           const std::vector<std::int64_t>& counts) {
    const auto remark = [&](std::size_t host) { return fmt::format("{} has {}", hosts[host], counts[host]); };
    if (counts.size() == 2) {
      // Two hosts have no majority; a difference of at most a quarter looks like a loss and not like another machine.
      const auto [less, more] = std::minmax(counts[0], counts[1]);
      if (less == more || 4 * less < 3 * more) return;
      const std::size_t poorer = counts[0] < counts[1] ? 0 : 1;
      found_.push_back(
          asymmetry("T104", fmt::format("host {} {}, {}", hosts[1 - poorer],
                                        fmt::format("has {} {}", more, plural(role.kind)), remark(poorer))));
      return;
    }
    const auto majority = find_majority(counts, counts.size());
    if (!majority || majority->deviants.empty() || majority->value == 0) return;
    std::vector<std::string> remarks;
    for (const std::size_t host : majority->deviants) {
      if (remarks.size() == 8) {
        remarks.push_back(fmt::format("and {} more differ", majority->deviants.size() - remarks.size()));
        break;
      }
      remarks.push_back(remark(host));
    }
    found_.push_back(asymmetry("T104", fmt::format("{} of {} hosts have {} {}, {}", majority->agreeing, counts.size(),
                                                   majority->value, plural(role.kind), fmt::join(remarks, ", "))));
  }

  const Topology& topology_;
  std::vector<std::map<std::string, std::int64_t>> cables_;  ///< By node: class to number of cables.
  std::vector<std::int64_t> switches_;                       ///< By node: how many switches are its neighbours.
  std::set<std::string> direct_;                             ///< Classes that join ranks to ranks.
  std::map<PeerKey, std::vector<NodeId>> peers_;
  std::set<std::pair<NodeId, std::string>> reported_;
  std::vector<Diagnostic> found_;
};

}  // namespace

std::string list_names(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 8;
  if (names.size() == 1) return names.front();
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(shown, names.size() - 1)));
  if (names.size() > shown) return fmt::format("{} and {} more", fmt::join(first, ", "), names.size() - shown);
  return fmt::format("{} and {}", fmt::join(first, ", "), names.back());
}

Diagnostic asymmetry(const char* code, std::string message) {
  return {.severity = Severity::warning,
          .code = code,
          .message = std::move(message),
          .help = "look for a link or device that is down; if the machine is meant to be like this, nothing is wrong"};
}

std::vector<Diagnostic> find_asymmetry(const Topology& topology) {
  std::vector<Diagnostic> found = Survey(topology).report();
  for (Diagnostic& diagnostic : find_link_asymmetry(topology)) found.push_back(std::move(diagnostic));
  return found;
}

}  // namespace espalier
