#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"
#include "schedule/relays.h"
#include "tests/support/networks/machine.h"

namespace espalier::test {

/// Makes small machines with odd and even rates, and schedules on them that keep no promise but are well formed: any
/// transfers, runs, actions and channels in any order. Times are small so that ties are frequent.
class RandomMachine {
 public:
  explicit RandomMachine(std::uint64_t seed) : random_(seed) {}

  Machine make() {
    const std::size_t ranks = 2 + random_.below(4);
    Machine machine(ranks);
    const std::size_t switches = random_.below(4);
    for (std::size_t i = 0; i < switches; ++i) machine.add_switch();
    if (random_.below(3) == 0) machine.make_relays();
    for (Node& node : machine.nodes) {
      if (random_.below(4) == 0) node.bandwidth = pick_rate();
      if ((node.is_rank || node.reduction) && random_.below(3) == 0) node.reduce_bandwidth = pick_rate();
    }
    const std::size_t nodes = machine.nodes.size();
    for (std::size_t i = 0; i < nodes; ++i) add_cable(machine, i, (i + 1) % nodes);
    for (std::uint64_t extra = random_.below(2 * nodes); extra > 0; --extra) {
      add_cable(machine, random_.below(nodes), random_.below(nodes));
    }
    const std::size_t slices = 1 + random_.below(5);
    for (std::size_t i = 0; i < slices; ++i)
      machine.slice_units.push_back(1 + static_cast<std::int64_t>(random_.below(4)));
    for (std::uint64_t transfers = random_.below(14); transfers > 0; --transfers) add_transfer(machine);
    return machine;
  }

  Random& random() { return random_; }

 private:
  Bandwidth pick_rate() {
    constexpr std::int64_t per_picosecond = picoseconds_per_second;
    constexpr std::int64_t rates[] = {per_picosecond,     per_picosecond,     per_picosecond / 2,
                                      per_picosecond / 7, 2 * per_picosecond, 3 * per_picosecond};
    return {rates[random_.below(std::size(rates))]};
  }

  void add_cable(Machine& machine, std::size_t a, std::size_t b) {
    if (a == b) return;
    for (const auto& [tail, head] : {std::pair(a, b), std::pair(b, a)}) {
      const LinkId link = machine.add_link(tail, head, static_cast<std::int64_t>(random_.below(4)) * 3, pick_rate());
      if (random_.below(5) == 0) machine.links[link.index()].overhead = {random_.between(1, 9)};
    }
  }

  /// A random walk from a rank or relay over nodes not seen yet, as far as a random later one; those on the way only
  /// forward.
  void add_transfer(Machine& machine) {
    const Schedule schedule = machine.schedule();
    const std::size_t ends = end_count(schedule);
    const std::size_t start = random_.below(ends);
    std::vector<bool> seen(machine.nodes.size(), false);
    std::vector<LinkId> route;
    std::vector<LinkId> longest;  // the route as far as the last place where it may end
    std::size_t at = start;
    while (true) {
      seen[at] = true;
      std::vector<LinkId> onward;
      for (std::size_t i = 0; i < machine.links.size(); ++i) {
        if (machine.links[i].tail.index() == at && !seen[machine.links[i].head.index()]) onward.emplace_back(i);
      }
      if (onward.empty()) break;
      route.push_back(onward[random_.below(onward.size())]);
      at = machine.links[route.back().index()].head.index();
      if (at < ends) {
        longest = route;
        if (random_.below(2) == 0) break;
      }
    }
    if (longest.empty()) return;
    const std::size_t slices = machine.slice_units.size();
    const std::size_t first = random_.below(slices);
    const auto count = static_cast<std::uint32_t>(1 + random_.below(slices - first));
    machine.send(longest, first, count, random_.below(2) == 0 ? Action::copy : Action::reduce, random_.below(3));
  }

  Random random_;
};

}  // namespace espalier::test
