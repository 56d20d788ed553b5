#include <fmt/format.h>

#include "schedule/relays.h"
#include "schedule/slice_moves.h"
#include "schedule/verify/breach_list.h"

namespace espalier {
namespace {

void check_switches(const Schedule& schedule, const Topology& topology, BreachList& breaches) {
  for (const NodeId relay : schedule.relays) {
    const Node& node = topology.node(relay);
    if (node.multicast || node.reduction) continue;
    breaches.add(Rule::S8, TransferId(), [&] {
      return fmt::format("{} is a relay, and can neither copy (multicast) nor add (reduction)", node.id);
    });
  }
}

void check_reductions(const Schedule& schedule, const Topology& topology, BreachList& breaches) {
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const Rank dst = schedule.dst(transfer);
    if (transfer.reduces == 0 || !is_relay(schedule, dst)) continue;
    const Node& node = topology.node(node_of_end(schedule, topology, dst));
    if (node.reduction) continue;
    breaches.add(Rule::S8, TransferId(i), [&] { return fmt::format("{} cannot add: it has no reduction", node.id); });
  }
}

/// A relay that cannot copy sends what it has of a slice once, until more of it arrives.
class SendCheck {
 public:
  SendCheck(const Schedule& schedule, const Topology& topology, BreachList& breaches)
      : schedule_(schedule),
        topology_(topology),
        breaches_(breaches),
        spent_(schedule.relays.size()),
        reported_(schedule.transfers.size()) {}

  void check(std::size_t slice, std::span<const TransferId> moves) {
    for (const TransferId id : moves) {
      const Transfer& transfer = schedule_.transfers[id.index()];
      if (const Rank src = schedule_.src(transfer); is_relay(schedule_, src)) send(slice, id, src);
      if (const Rank dst = schedule_.dst(transfer); is_relay(schedule_, dst)) spent(dst) = false;
    }
    spent_.assign(spent_.size(), false);
  }

 private:
  std::vector<bool>::reference spent(Rank relay) { return spent_[relay.index() - schedule_.collective.rank_count]; }

  void send(std::size_t slice, TransferId id, Rank relay) {
    const Node& node = topology_.node(node_of_end(schedule_, topology_, relay));
    if (spent(relay) && !node.multicast && !reported_[id.index()]) {
      reported_[id.index()] = true;
      breaches_.add(Rule::S8, id, [&] {
        return fmt::format("{} sends slice {} a second time and cannot copy: it has no multicast", node.id, slice);
      });
    }
    spent(relay) = true;
  }

  const Schedule& schedule_;
  const Topology& topology_;
  BreachList& breaches_;
  std::vector<bool> spent_;     ///< By relay: whether it has sent what it has of the slice.
  std::vector<bool> reported_;  ///< By transfer: a run of slices gives one breach.
};

}  // namespace

void verify_relays(const Schedule& schedule, const Topology& topology, BreachList& breaches) {
  if (schedule.relays.empty()) return;
  check_switches(schedule, topology, breaches);
  check_reductions(schedule, topology, breaches);
  const SliceMoves moves(schedule);
  SendCheck sends(schedule, topology, breaches);
  for (std::size_t s = 0; s < schedule.slices.size(); ++s) sends.check(s, moves.of(s));
}

}  // namespace espalier
