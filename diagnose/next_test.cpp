#include "diagnose/next_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "diagnose/fault_classes.h"
#include "topology/names/group.h"
#include "topology/names/name_list.h"

namespace espalier::diagnose {
namespace {

using Names = std::vector<std::string>;

/// Ranks by host, in the order of the topology; all of them one host where none is named.
std::vector<Names> ranks_by_host(const Topology& machine) {
  std::vector<Names> hosts;
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < machine.rank_count(); ++i) {
    const Node& node = machine.node(machine.node_of(Rank(i)));
    const auto [place, is_new] = index.emplace(node.host, hosts.size());
    if (is_new) hosts.emplace_back();
    hosts[place->second].push_back(node.id);
  }
  return hosts;
}

void append(Names& to, std::span<const std::string> from) { to.insert(to.end(), from.begin(), from.end()); }

/// Half of the hosts, one host, half of each host's ranks, every other rank, one rank of each host, two ranks.
std::vector<Names> rank_sets(const Topology& machine) {
  const std::vector<Names> hosts = ranks_by_host(machine);
  std::vector<Names> sets;
  Names half_of_hosts, half_of_each, every_other, first_of_each;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::span<const std::string> ranks = hosts[i];
    if (i < hosts.size() / 2) append(half_of_hosts, ranks);
    append(half_of_each, ranks.first((ranks.size() + 1) / 2));
    for (std::size_t k = 0; k < ranks.size(); k += 2) every_other.push_back(ranks[k]);
    first_of_each.push_back(ranks.front());
  }
  sets = {half_of_hosts, hosts.front(), half_of_each, every_other, first_of_each};
  if (hosts.size() > 1) {
    Names two_hosts = hosts[0];
    append(two_hosts, hosts[1]);
    sets.push_back(two_hosts);
    sets.push_back({hosts[0].front(), hosts[1].front()});
  }
  if (hosts.front().size() > 1) sets.push_back({hosts.front()[0], hosts.front()[1]});
  std::erase_if(sets, [&](const Names& set) { return set.size() < 2 || set.size() == machine.rank_count(); });
  std::ranges::sort(sets);
  const auto twice = std::ranges::unique(sets);
  sets.erase(twice.begin(), twice.end());
  return sets;
}

Result<Topology> tested(const Topology& machine, const Names& ranks) {
  std::vector<NodeId> nodes;
  for (const std::string& rank : ranks) nodes.push_back(machine.find_node(rank));
  return with_ranks(machine, nodes);
}

/// The ranks as --ranks takes them, by ranges where these say all.
std::string ranks_text(const Topology& machine, const Names& ranks) {
  std::string text = summarize_names(ranks);
  const auto named = find_rank_nodes(machine, text);
  return named && named->size() == ranks.size() ? text : fmt::format("{}", fmt::join(ranks, ","));
}

/// A test that may be proposed.
struct Proposed {
  Names ranks;
  std::vector<std::pair<std::string, std::size_t>> alike;  ///< Of parts that it makes the same: one, and how many.
  std::size_t min_left = 0;                                ///< So many are left at least: those alike.
};

/// Those first of which least may be left, then those of fewer ranks.
std::vector<Proposed> propose(const Topology& machine, const std::set<std::string>& parts) {
  std::vector<Proposed> all;
  for (Names& ranks : rank_sets(machine)) {
    const auto test = tested(machine, ranks);
    if (!test) continue;
    Proposed& one = all.emplace_back(std::move(ranks));
    for (const FaultClass& each : find_fault_classes(std::span(&*test, 1))) {
      std::size_t count = 0;
      for (const std::string& part : each.parts) count += parts.contains(part) ? 1U : 0U;
      if (count > 0) one.alike.emplace_back(each.parts.front(), count);
      one.min_left = std::max(one.min_left, count);
    }
  }
  std::ranges::stable_sort(all, {}, [](const Proposed& one) { return std::pair(one.min_left, one.ranks.size()); });
  return all;
}

/// How many of the parts are left at most when the test has shown one of its outcomes; nothing where it cannot be
/// predicted.
std::optional<std::size_t> max_left(const Proposed& test, const Question& question, Bytes size, Fault fault,
                                    const Predict& predict) {
  const auto healthy = predict(question, {}, std::span(&size, 1));
  if (!healthy) return std::nullopt;
  std::map<long, std::size_t> outcomes;  ///< By how much longer it takes, in steps of 5 %.
  for (const auto& [part, count] : test.alike) {
    fault.part = part;
    const auto with = predict(question, std::span(&fault, 1), std::span(&size, 1));
    constexpr double step = 0.05;
    const long outcome = with ? std::lround(std::log(with->front() / healthy->front()) / step) : -1;
    outcomes[outcome] += count;
  }
  std::size_t most = 0;
  for (const auto& [outcome, count] : outcomes) most = std::max(most, count);
  return most;
}

}  // namespace

std::optional<NextTest> find_next_test(const Topology& machine, std::span<const std::string> parts, const Fault& fault,
                                       const Question& like, Bytes size, const Predict& predict,
                                       std::size_t max_predicted) {
  const std::set<std::string> of_interest(parts.begin(), parts.end());
  std::optional<NextTest> best;
  std::size_t predicted = 0;
  for (const Proposed& test : propose(machine, of_interest)) {
    const auto is_beaten = [&](std::size_t left) {
      return left >= of_interest.size() ||
             (best && std::pair(best->left, best->ranks) <= std::pair(left, test.ranks.size()));
    };
    if (is_beaten(test.min_left)) continue;  // Whatever is predicted, which may take long.
    if (predicted++ == max_predicted) break;
    Question question = like;
    question.ranks = ranks_text(machine, test.ranks);
    const auto left = max_left(test, question, size, fault, predict);
    if (left && !is_beaten(*left)) best = NextTest{std::move(question), size, test.ranks.size(), *left};
  }
  return best;
}

}  // namespace espalier::diagnose
