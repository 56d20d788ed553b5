#include "planners/packing/even_split.h"

#include <algorithm>

#include "topology/max_flow.h"

namespace espalier {
namespace {

/// The dealing as a flow from the ways in to the ways out, each pair limited to its proportional share times a factor.
class Dealing {
 public:
  Dealing(std::span<const std::int64_t> in, std::span<const std::uint32_t> in_groups, std::span<const std::int64_t> out,
          std::span<const std::uint32_t> out_groups)
      : in_(in), out_(out), flow_(in.size() + out.size() + 2) {
    const auto source = static_cast<std::uint32_t>(in.size() + out.size());
    for (std::uint32_t i = 0; i < in.size(); ++i) flow_.add_arc(source, i, in[i]);
    for (std::uint32_t j = 0; j < out.size(); ++j) {
      flow_.add_arc(static_cast<std::uint32_t>(in.size()) + j, source + 1, out[j]);
      total_ += out[j];
    }
    for (std::uint32_t i = 0; i < in.size(); ++i) {
      for (std::uint32_t j = 0; j < out.size(); ++j) {
        if (in_groups[i] == out_groups[j]) continue;
        const std::uint32_t arc = flow_.add_arc(i, static_cast<std::uint32_t>(in.size()) + j, 0);
        pairs_.push_back({arc, i, j});
      }
    }
  }

  /// Whether everything can be dealt when each pair takes at most numerator / denominator of its proportional share.
  bool is_feasible(std::int64_t numerator, std::int64_t denominator) {
    for (const Pair& pair : pairs_) {
      const __int128 share = static_cast<__int128>(in_[pair.in]) * out_[pair.out];
      const __int128 whole = static_cast<__int128>(total_) * denominator;
      const __int128 most = (share / whole) * numerator + ((share % whole) * numerator + whole - 1) / whole;
      flow_.set_capacity(pair.arc,
                         static_cast<std::int64_t>(std::min<__int128>(most, std::min(in_[pair.in], out_[pair.out]))));
    }
    const auto source = static_cast<std::uint32_t>(in_.size() + out_.size());
    return flow_.run(source, source + 1, total_) == total_;
  }

  [[nodiscard]] std::vector<std::vector<std::int64_t>> dealt() const {
    std::vector<std::vector<std::int64_t>> amounts(in_.size(), std::vector<std::int64_t>(out_.size(), 0));
    for (const Pair& pair : pairs_) amounts[pair.in][pair.out] = flow_.flow(pair.arc);
    return amounts;
  }

 private:
  struct Pair {
    std::uint32_t arc, in, out;
  };
  std::span<const std::int64_t> in_, out_;
  MaxFlow<std::int64_t> flow_;
  std::vector<Pair> pairs_;
  std::int64_t total_ = 0;
};

}  // namespace

std::vector<std::vector<std::int64_t>> even_split(std::span<const std::int64_t> in,
                                                  std::span<const std::uint32_t> in_groups,
                                                  std::span<const std::int64_t> out,
                                                  std::span<const std::uint32_t> out_groups) {
  Dealing dealing(in, in_groups, out, out_groups);
  // n equal neighbours that do not send to themselves take n / (n - 1) of the proportional share.
  const auto ways = static_cast<std::int64_t>(std::max(in.size(), out.size()));
  if (ways > 1 && dealing.is_feasible(ways, ways - 1)) return dealing.dealt();
  constexpr std::int64_t most_uneven = 1 << 10;
  for (std::int64_t factor = 2; factor <= most_uneven; factor *= 2) {
    if (dealing.is_feasible(factor, 1)) return dealing.dealt();
  }
  return {};
}

}  // namespace espalier
