#pragma once

// Tested by: tests/differential/machines/repeats_test.cpp

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/slice_moves.h"
#include "schedule/symmetry/symmetry.h"

namespace espalier {

/// A map that takes a schedule to itself, as ScheduleSymmetry says.
struct ScheduleMap {
  std::vector<Rank> ranks;
  std::vector<SliceId> slices;
  std::vector<LinkId> links;  ///< None for those that no transfer passes.
};

/// Looks for such maps that leave no rank where it is. Requires: transfers of one slice each.
class MapFinder {
 public:
  MapFinder(const Schedule& schedule, const Topology& topology, MoveOrder order);

  /// The map that takes the first slice's transfers to this slice's, one after the other.
  std::optional<ScheduleMap> take_first_to(SliceId slice);
  /// A map that takes ranks to these. Requires: one to one.
  std::optional<ScheduleMap> take_ranks_to(const std::vector<Rank>& ranks);
  /// The map that takes each rank to the one so many on, and slices with them.
  std::optional<ScheduleMap> move_on(std::uint32_t ranks, std::size_t slices);

  /// By place in the first slice's list, which transfers of `image` are images of those of `slice`; empty where they
  /// are not.
  std::span<const TransferId> match(std::size_t slice, std::size_t image, const std::vector<Rank>& ranks);
  [[nodiscard]] std::span<const TransferId> moves_of(std::size_t slice) const { return moves_.of(slice); }
  /// How many transfers were looked at so far.
  [[nodiscard]] std::uint64_t work() const { return work_; }

 private:
  /// What slices have in common that may be images of each other, as a number: the length, whose it is, and between
  /// which ranks its transfers are. Few others have the same.
  using Kind = std::uint64_t;
  struct OfKind {
    Kind kind = 0;
    SliceId slice;
    friend auto operator<=>(const OfKind&, const OfKind&) = default;
  };

  /// What a transfer does with its slice, side by side for those of one slice.
  struct Step {
    RouteId route;
    Action action = Action::copy;
  };
  /// What was worked out of a route. There are far fewer routes than transfers.
  struct OfRoute {
    std::array<Kind, 3> kinds = {};  ///< By action: what a transfer adds to its slice's kind, under a map of ranks.
    std::uint32_t kinds_of = 0;      ///< Of which map.
    std::uint32_t image_of = 0;      ///< By which map its links go to those of `image`.
    RouteId image;
  };

  /// `ranks`: where these go; empty if nowhere.
  [[nodiscard]] Kind kind_of(std::size_t slice, const std::vector<Rank>& ranks);
  [[nodiscard]] const OfRoute& with_kinds(RouteId route, const std::vector<Rank>& ranks);
  [[nodiscard]] std::span<const Step> steps_of(std::size_t slice) const {
    return std::span(steps_).subspan(moves_.begin(slice), moves_.of(slice).size());
  }
  [[nodiscard]] Step step_of(TransferId id) const {
    const Transfer& transfer = schedule_.transfers[id.index()];
    return {transfer.route, transfer.action()};
  }
  void sort_by_kind();
  [[nodiscard]] std::span<const OfKind> slices_of(Kind kind) const;
  void begin();
  bool map_ranks(std::size_t slice);
  std::optional<ScheduleMap> take_slices(SliceId image_of_first);
  bool take(std::size_t slice, std::size_t image);
  /// Whether steps are between the images of their ranks, in the same order.
  [[nodiscard]] bool go_to(std::span<const Step> ones, std::span<const Step> others,
                           const std::vector<Rank>& ranks) const;
  bool is_image(const Step& one, const Step& other);
  bool note(LinkId link, LinkId image);
  void take_back(std::size_t links, std::size_t routes);

  const Schedule& schedule_;
  const Topology& topology_;
  MoveOrder order_;
  SliceMoves moves_;
  std::vector<Step> steps_;                   // of all slices, as moves_ has them
  std::vector<OfRoute> of_route_;             // by route
  std::uint32_t map_number_ = 0;              // of the map at hand
  std::vector<OfKind> by_kind_;               // sorted; filled when first needed
  std::vector<std::uint32_t> kind_begins_;    // by the kind's first bits: where in it
  std::vector<std::uint32_t> place_in_kind_;  // by slice: among those of its kind
  unsigned kind_shift_ = 0;
  ScheduleMap map_;
  std::vector<LinkId> source_;        // by link: the one that is taken to it
  std::vector<LinkId> noted_;         // in the order in which their images were noted
  std::vector<RouteId> routes_;       // whose images were noted, in that order
  std::vector<TransferId> by_place_;  // of the slice at hand
  std::vector<TransferId> matched_;
  std::uint64_t work_ = 0;
};

}  // namespace espalier
