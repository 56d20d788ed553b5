#include "topology/analysis/symmetry_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/format_units.h"
#include "topology/analysis/majority.h"

namespace espalier {

namespace {

using Rates = std::vector<std::int64_t>;

/// What joins two nodes, sorted by rate, in each direction.
struct Joint {
  Rates forth;
  Rates back;
};

/// "25 GB/s", "2 x 25 GB/s + 10 GB/s". Requires: sorted rates.
std::string rates_text(const Rates& rates) {
  std::vector<std::string> terms;
  for (auto first = rates.begin(); first != rates.end();) {
    const auto last = std::upper_bound(first, rates.end(), *first);
    const std::string times = last - first > 1 ? fmt::format("{} x ", last - first) : "";
    terms.push_back(times + format_bandwidth({*first}));
    first = last;
  }
  return fmt::format("{}", fmt::join(terms, " + "));
}

/// T105: pairs of nodes whose two directions differ, when at least three quarters of all pairs do not.
void compare_directions(const Topology& topology, std::vector<Diagnostic>& found) {
  std::map<std::pair<NodeId, NodeId>, Joint> joints;
  for (const Link& link : topology.links()) {
    Joint& joint = joints[{std::min(link.tail, link.head), std::max(link.tail, link.head)}];
    (link.tail < link.head ? joint.forth : joint.back).push_back(link.bandwidth().bytes_per_second);
  }
  std::vector<std::pair<std::pair<NodeId, NodeId>, Joint>> odd;
  for (auto& [pair, joint] : joints) {
    std::ranges::sort(joint.forth);
    std::ranges::sort(joint.back);
    if (joint.forth != joint.back) odd.emplace_back(pair, joint);
  }
  if (4 * odd.size() > joints.size()) return;
  for (const auto& [pair, joint] : odd) {
    const std::string& a = topology.node(pair.first).id;
    const std::string& b = topology.node(pair.second).id;
    if (joint.forth.empty() || joint.back.empty()) {
      const bool forth = joint.back.empty();
      found.push_back(
          asymmetry("T105", fmt::format("{} of {} pairs are joined both ways, but nothing leads back from {} to {}",
                                        joints.size() - odd.size(), joints.size(), forth ? b : a, forth ? a : b)));
      continue;
    }
    found.push_back(asymmetry("T105", fmt::format("the directions between {} and {} differ: {} forth, {} back", a, b,
                                                  rates_text(joint.forth), rates_text(joint.back))));
  }
}

/// T106: a link that is slower than most of its class between the same two nodes (or, of two, than the other).
void compare_bundles(const Topology& topology, std::set<LinkId>& reported, std::vector<Diagnostic>& found) {
  std::map<std::tuple<NodeId, NodeId, std::string>, std::vector<LinkId>> bundles;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    bundles[{link.tail, link.head, link.link_class}].emplace_back(i);
  }
  for (const auto& [key, bundle] : bundles) {
    Rates rates;
    for (const LinkId id : bundle) rates.push_back(topology.link(id).bandwidth().bytes_per_second);
    const std::int64_t fastest = *std::ranges::max_element(rates);
    const auto as_fast = static_cast<std::size_t>(std::ranges::count(rates, fastest));
    // Links without a class may well be of different kinds: there only a clear majority tells which one is odd.
    if (std::get<2>(key).empty() ? as_fast < 3 || 4 * as_fast < 3 * rates.size() : 2 * as_fast < rates.size()) continue;
    for (std::size_t i = 0; i < bundle.size(); ++i) {
      if (rates[i] == fastest) continue;
      reported.insert(bundle[i]);
      found.push_back(asymmetry("T106", fmt::format("link {} runs at {}, its parallel {} at {}",
                                                    topology.link_name(bundle[i]), format_bandwidth({rates[i]}),
                                                    as_fast == 1 ? "link" : "links", format_bandwidth({fastest}))));
    }
  }
}

/// T107: links whose rate is not that of most links of their class.
void compare_classes(const Topology& topology, const std::set<LinkId>& reported, std::vector<Diagnostic>& found) {
  std::map<std::string, std::vector<LinkId>> classes;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const std::string& name = topology.link(LinkId(i)).link_class;
    if (!name.empty()) classes[name].emplace_back(i);
  }
  for (const auto& [name, members] : classes) {
    Rates rates;
    for (const LinkId id : members) rates.push_back(topology.link(id).bandwidth().bytes_per_second);
    const auto majority = find_majority(rates, rates.size());
    if (!majority) continue;
    std::map<std::int64_t, std::vector<std::string>> by_rate;
    for (const std::size_t position : majority->deviants) {
      if (!reported.contains(members[position])) {
        by_rate[rates[position]].push_back(topology.link_name(members[position]));
      }
    }
    for (const auto& [rate, names] : by_rate) {
      found.push_back(asymmetry(
          "T107", fmt::format("{} of {} {} links run at {}, {} at {}", majority->agreeing, members.size(), name,
                              format_bandwidth({majority->value}), list_names(names), format_bandwidth({rate}))));
    }
  }
}

}  // namespace

std::vector<Diagnostic> find_link_asymmetry(const Topology& topology) {
  std::vector<Diagnostic> found;
  std::set<LinkId> reported;
  compare_directions(topology, found);
  compare_bundles(topology, reported, found);
  compare_classes(topology, reported, found);
  return found;
}

}  // namespace espalier
