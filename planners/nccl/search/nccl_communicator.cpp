#include "planners/nccl/search/nccl_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "planners/graph/rank_groups.h"

namespace espalier::planners {
namespace {

constexpr std::uint32_t max_opened = 64;

/// A machine and what was found in it.
struct Member {
  std::vector<Rank> gpus;  ///< By number in the box.
  BoxGraphs graphs;
};

void align(NcclGraph& all, const NcclGraph& one) {
  all.channels = std::min(all.channels, one.channels);
  all.same_channels = std::min(all.same_channels, one.same_channels);
  all.inside = std::min(all.inside, one.inside);
  all.outside = std::min(all.outside, one.outside);
  all.way_inside = std::max(all.way_inside, one.way_inside);
  all.way_outside = std::max(all.way_outside, one.way_outside);
  all.cross_nic = std::max(all.cross_nic, one.cross_nic);
}

NcclGraph without_order(NcclGraph graph) {
  graph.order.clear();
  graph.nets.clear();
  return graph;
}

/// Places in a binary tree over machines; none: no such machine.
struct TreePlace {
  std::optional<std::size_t> parent;
  bool is_second = false;  ///< Its parent's second child.
};

/// Leaves and inner machines alternate; machine 0 is the root.
TreePlace place_in_tree(std::size_t count, std::size_t machine) {
  if (machine == 0) return {};
  std::size_t bit = 1;
  while ((bit & machine) == 0) bit <<= 1;
  std::size_t parent = (machine ^ bit) | (bit << 1);
  if (parent >= count) parent = machine ^ bit;
  return {parent, machine > parent};
}

/// The second tree mirrors the first, or is shifted by one where machines are odd.
TreePlace place_in_second_tree(std::size_t count, std::size_t machine) {
  if (count % 2 == 1) {
    TreePlace place = place_in_tree(count, (machine + count - 1) % count);
    if (place.parent) place.parent = (*place.parent + 1) % count;
    return place;
  }
  TreePlace place = place_in_tree(count, count - 1 - machine);
  if (place.parent) place.parent = count - 1 - *place.parent;
  return place;
}

class Connector {
 public:
  Connector(NcclCommunicator& made, const std::vector<Member>& members) : made_(made), members_(members) {}

  void connect() {
    const auto channels = static_cast<std::uint32_t>(made_.ring.channels);
    std::vector<std::vector<Rank>> rings, trees;
    for (std::uint32_t c = 0; c < channels; ++c) rings.push_back(ring(c));
    for (const bool second : {false, true}) {
      for (std::uint32_t c = 0; c < channels; ++c) trees.push_back(tree(c, second));
    }
    open();
    for (std::uint32_t c = 0; c < made_.channels && channels > 0; ++c) {
      add(made_.rings, c, rings[c % channels], &NcclRing::order);
      add(made_.trees, c, trees[c % (2 * channels)], &NcclTree::parent);
    }
  }

 private:
  template <class Kind>
  static void add(std::vector<Kind>& all, std::uint32_t channel, const std::vector<Rank>& what,
                  std::vector<Rank> Kind::*member) {
    auto known = std::ranges::find(all, what, member);
    if (known == all.end()) {
      all.emplace_back();
      known = std::prev(all.end());
      (*known).*member = what;
    }
    known->channels.push_back(channel);
  }

  [[nodiscard]] static Rank at(const Member& member, const NcclGraph& graph, std::uint32_t channel, std::size_t step) {
    return member.gpus[graph.order[channel * member.gpus.size() + step]];
  }

  /// Where channels leave by another NIC than they came in by, every other machine takes them in pairs the other way
  /// round.
  [[nodiscard]] std::uint32_t swapped(std::uint32_t channel, std::size_t machine) const {
    constexpr std::uint32_t by_machine = 2028;  // Before, where any machine has such rings.
    const NcclGraph& of = made_.era.version < by_machine ? made_.ring : members_[machine].graphs.ring;
    const bool swaps = of.cross_nic == 2 && made_.ring.channels % 2 == 0 && machine % 2 == 1;
    return swaps ? channel ^ 1 : channel;
  }

  [[nodiscard]] std::vector<Rank> ring(std::uint32_t channel) const {
    std::vector<Rank> order;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const Member& member = members_[m];
      for (std::size_t i = 0; i < member.gpus.size(); ++i) {
        order.push_back(at(member, member.graphs.ring, swapped(channel, m), i));
      }
    }
    std::ranges::rotate(order, std::ranges::find(order, Rank(0)));
    return order;
  }

  [[nodiscard]] std::vector<Rank> tree(std::uint32_t channel, bool second) const {
    std::vector<Rank> parents(made_.ranks);
    for (std::size_t m = 0; m < members_.size(); ++m) {
      const Member& member = members_[m];
      for (std::size_t i = 1; i < member.gpus.size(); ++i) {
        parents[at(member, member.graphs.tree, channel, i).index()] = at(member, member.graphs.tree, channel, i - 1);
      }
      const TreePlace place = second ? place_in_second_tree(members_.size(), m) : place_in_tree(members_.size(), m);
      if (!place.parent) continue;
      const Member& above = members_[*place.parent];
      // The first child hangs at the second GPU, but where all meet at one.
      const bool at_second = !place.is_second && above.graphs.tree.pattern != GraphPattern::tree;
      const std::size_t step = at_second ? 1 : 0;
      parents[at(member, member.graphs.tree, channel, 0).index()] = at(above, above.graphs.tree, channel, step);
    }
    return parents;
  }

  void open() {
    constexpr float fast = 45;
    constexpr std::uint32_t few = 16;
    made_.channels = std::min(max_opened, static_cast<std::uint32_t>(made_.ring.channels) * 2);
    if (made_.era.capability >= 90 && made_.machines > 1 && made_.ring.inside > fast && made_.channels < few) {
      made_.channels *= 2;
    }
    constexpr std::uint32_t counts_apart = 2028;
    if (made_.nvls.channels > 0) made_.nvls_channels = nvls_channels();
    if (made_.era.version < counts_apart) made_.channels = std::max(made_.channels, made_.nvls_channels);
  }

  [[nodiscard]] std::uint32_t nvls_channels() const {
    constexpr std::uint32_t of_hopper = 16, of_blackwell = 32, of_one = 24, tuned = 2030;
    if (made_.era.capability < 100) return of_hopper;
    if (made_.machines == 1) return of_one;
    if (made_.era.version < tuned) return of_blackwell;
    constexpr float fast = 48, faster = 96;
    const float rate = made_.min_net_rate;
    if (made_.machines == 2 && rate >= fast) return of_blackwell;
    if (rate >= faster) return made_.min_local <= 8 ? of_one : of_blackwell;
    return rate >= fast ? of_one : of_blackwell;
  }

  NcclCommunicator& made_;
  const std::vector<Member>& members_;
};

/// What was found in boxes of a kind, for whoever asks again: what-ifs ask of like boxes hundreds of times.
/// Thread-safe.
class FoundGraphs {
 public:
  BoxGraphs of(NcclBox box) {
    const std::string key = fmt::format("{} {}", box.era().version, box.signature());
    {
      const std::scoped_lock lock(mutex_);
      if (const auto known = graphs_.find(key); known != graphs_.end()) return known->second;
    }
    BoxGraphs found = search_box(std::move(box));
    const std::scoped_lock lock(mutex_);
    if (graphs_.size() >= max_kept) graphs_.clear();
    return graphs_.try_emplace(key, std::move(found)).first->second;
  }

 private:
  static constexpr std::size_t max_kept = 1024;  ///< Some kB each.

  std::mutex mutex_;
  std::unordered_map<std::string, BoxGraphs> graphs_;
};

}  // namespace

std::optional<NcclCommunicator> make_communicator(const Topology& topology, const NcclEra& era) {
  const RankGroups machines = group_ranks(topology);
  NcclCommunicator made;
  made.era = era;
  made.ranks = topology.rank_count();
  made.machines = machines.groups.size();
  made.min_local = made.ranks;
  made.min_net_rate = std::numeric_limits<float>::max();
  if (made.ranks < 2) return std::nullopt;
  std::vector<std::vector<Rank>> groups = machines.groups;
  std::ranges::sort(groups, {}, [](const std::vector<Rank>& ranks) { return ranks.front().index(); });
  static FoundGraphs found_graphs;
  std::map<std::string, BoxGraphs> known;
  std::vector<Member> members;
  for (const std::vector<Rank>& ranks : groups) {
    auto box = NcclBox::make(topology, ranks, groups.size() > 1, era);
    if (!box) return std::nullopt;
    Member member;
    for (std::size_t g = 0; g < box->gpus().size(); ++g) {
      member.gpus.push_back(box->gpus()[g].rank);
      made.min_net_rate = std::min(made.min_net_rate, box->min_net_rate(g));
    }
    made.are_makers_mixed = made.are_makers_mixed || (!members.empty() && made.maker != box->maker());
    made.maker = box->maker();
    made.min_local = std::min(made.min_local, ranks.size());
    made.max_local = std::max(made.max_local, ranks.size());
    const auto [found, is_new] = known.try_emplace(box->signature());
    if (is_new) found->second = found_graphs.of(*std::move(box));
    member.graphs = found->second;
    const BoxGraphs& graphs = member.graphs;
    made.tree_pattern = std::max(made.tree_pattern, graphs.tree.pattern);
    if (members.empty()) {
      made.ring = without_order(graphs.ring);
      made.tree = without_order(graphs.tree);
      made.nvls = without_order(graphs.nvls);
    } else {
      align(made.ring, graphs.ring);
      align(made.tree, graphs.tree);
      align(made.nvls, graphs.nvls);
    }
    members.push_back(std::move(member));
  }
  made.ring.channels = made.tree.channels = std::min(made.ring.channels, made.tree.channels);
  Connector(made, members).connect();
  return made;
}

}  // namespace espalier::planners
