#include <bit>
#include <vector>

#include "planners/classic/classic.h"
#include "planners/classic/partners.h"

namespace espalier::planners {

namespace {

/// The halving and doubling core has 2^k members. Where ranks are left over, the first ones form pairs: the first of a
/// pair is a member and acts for both, the second one only hands over its data before and takes the result after.
class Recursion {
 public:
  Recursion(const Topology& topology, const Collective& collective, const Partners& partners)
      : kind_(collective.kind),
        order_(partners.order()),
        members_(std::bit_floor(order_.size())),
        pairs_(order_.size() - members_),
        writer_(topology, collective, partners, "recursive", members_) {}

  Result<Schedule> run() {
    const bool scatters = kind_ != CollectiveKind::all_gather;
    const bool gathers = kind_ != CollectiveKind::reduce_scatter;
    fold();
    if (kind_ == CollectiveKind::all_reduce) {
      for (std::size_t distance = 1; distance < members_; distance *= 2) halve_blocks(distance);
      for (std::size_t distance = members_ / 2; distance > 0; distance /= 2) double_blocks(distance);
    } else if (scatters) {
      for (std::size_t distance = members_ / 2; distance > 0; distance /= 2) halve_shards(distance);
    } else if (gathers) {
      for (std::size_t distance = 1; distance < members_; distance *= 2) double_shards(distance);
    }
    unfold();
    if (!sent_) return tl::unexpected(sent_.error());
    return writer_.take();
  }

 private:
  void send(Rank from, Rank to, PlaceRun places, Action action) {
    if (sent_) sent_ = writer_.send(from, to, places, action);
  }

  [[nodiscard]] std::size_t place(std::size_t member) const { return member < pairs_ ? 2 * member : member + pairs_; }
  [[nodiscard]] Rank rank(std::size_t member) const { return order_[place(member)]; }
  [[nodiscard]] PlaceRun everything() const {
    return {0, kind_ == CollectiveKind::all_reduce ? members_ : order_.size()};
  }
  /// The shards that a run of members stands for.
  [[nodiscard]] PlaceRun shards(std::size_t first, std::size_t count) const {
    const std::size_t end = first + count < members_ ? place(first + count) : order_.size();
    return {place(first), end - place(first)};
  }

  void fold() {
    for (std::size_t pair = 0; pair < pairs_; ++pair) {
      const Rank first = order_[2 * pair];
      const Rank second = order_[2 * pair + 1];
      if (kind_ == CollectiveKind::all_gather) {
        send(second, first, {2 * pair + 1, 1}, Action::copy);
      } else if (kind_ == CollectiveKind::all_reduce) {
        send(second, first, everything(), Action::reduce);
      } else {
        // Its own shard stays: the rest of that sum comes to it in the end.
        send(second, first, {2 * pair + 2, order_.size() - 1}, Action::reduce);
      }
    }
  }

  void unfold() {
    for (std::size_t pair = 0; pair < pairs_; ++pair) {
      const Rank first = order_[2 * pair];
      const Rank second = order_[2 * pair + 1];
      if (kind_ == CollectiveKind::reduce_scatter) {
        send(first, second, {2 * pair + 1, 1}, Action::reduce);
      } else if (kind_ == CollectiveKind::all_reduce) {
        send(first, second, everything(), Action::copy);
      } else {
        send(first, second, {2 * pair + 2, order_.size() - 1}, Action::copy);
      }
    }
  }

  /// Partners swap halves of what they still sum: each sends the half that the other one's group keeps.
  void halve_shards(std::size_t distance) {
    for (std::size_t member = 0; member < members_; ++member) {
      const std::size_t partner = member ^ distance;
      send(rank(member), rank(partner), shards(partner & ~(distance - 1), distance), Action::reduce);
    }
  }

  void double_shards(std::size_t distance) {
    for (std::size_t member = 0; member < members_; ++member) {
      send(rank(member), rank(member ^ distance), shards(member & ~(distance - 1), distance), Action::copy);
    }
  }

  /// all_reduce may choose who sums what, so the near partners swap the large halves.
  [[nodiscard]] PlaceRun blocks(std::size_t member, std::size_t distance) const {
    PlaceRun run{0, members_};
    for (std::size_t bit = 1; bit <= distance; bit *= 2) {
      run.count /= 2;
      if ((member & bit) != 0) run.first += run.count;
    }
    return run;
  }

  void halve_blocks(std::size_t distance) {
    for (std::size_t member = 0; member < members_; ++member) {
      const std::size_t partner = member ^ distance;
      send(rank(member), rank(partner), blocks(partner, distance), Action::reduce);
    }
  }

  void double_blocks(std::size_t distance) {
    for (std::size_t member = 0; member < members_; ++member) {
      send(rank(member), rank(member ^ distance), blocks(member, distance), Action::copy);
    }
  }

  CollectiveKind kind_;
  const std::vector<Rank>& order_;
  std::size_t members_;
  std::size_t pairs_;
  ExchangeWriter writer_;
  Result<void> sent_;
};

}  // namespace

Result<Schedule> plan_recursive(const PlanningProblem& problem, const Collective& collective) {
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather: break;
    default:
      return fail(ErrorCode::unsupported, "recursive does not plan " + std::string(to_string(collective.kind)),
                  slices_have_destination(collective.kind) ? "use pairwise" : "use binomial, flat, tree or packing");
  }
  if (auto equal = check_equal_shards(collective, "recursive"); !equal) return tl::unexpected(equal.error());
  const Topology& topology = problem.topology();
  const Partners partners(problem, "recursive");
  return Recursion(topology, collective, partners).run();
}

}  // namespace espalier::planners
