#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

namespace espalier {

/// A dense index into one kind of thing. Ids of different kinds do not convert into each other or into numbers.
/// A default-constructed id is `none` and belongs to nothing.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : value_(static_cast<std::uint32_t>(index)) {}

  [[nodiscard]] constexpr std::uint32_t value() const { return value_; }
  [[nodiscard]] constexpr std::size_t index() const { return value_; }
  [[nodiscard]] constexpr bool is_none() const { return value_ == none_value; }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  static constexpr std::uint32_t none_value = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t value_ = none_value;
};

using Rank = Id<struct RankTag>;            ///< A participant of a collective, in topology order.
using NodeId = Id<struct NodeTag>;          ///< A vertex of a topology.
using LinkId = Id<struct LinkTag>;          ///< A directed edge of a topology.
using SliceId = Id<struct SliceTag>;        ///< A slice of a schedule's buffer.
using RouteId = Id<struct RouteTag>;        ///< A route of a schedule.
using ChannelId = Id<struct ChannelTag>;    ///< A channel of a schedule.
using TransferId = Id<struct TransferTag>;  ///< A transfer of a schedule, in program order.

}  // namespace espalier

template <class Tag>
struct std::hash<espalier::Id<Tag>> {
  std::size_t operator()(espalier::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>{}(id.value()); }
};
