#include "planners/packing/split/even_split.h"

#include <algorithm>

#include "topology/analysis/max_flow.h"

namespace espalier::planners {
namespace {

bool are_partners(const SwitchSide& in, std::size_t i, const SwitchSide& out, std::size_t j) {
  return in.neighbours[i] != out.neighbours[j];
}

/// How much capacity there is on the other side that each edge may be dealt to.
struct Partners {
  Partners(const SwitchSide& in, const SwitchSide& out)
      : sum_of_in(in.amounts.size(), 0), sum_of_out(out.amounts.size(), 0) {
    for (std::size_t i = 0; i < in.amounts.size(); ++i) {
      for (std::size_t j = 0; j < out.amounts.size(); ++j) {
        if (!are_partners(in, i, out, j)) continue;
        sum_of_in[i] += out.amounts[j];
        sum_of_out[j] += in.amounts[i];
      }
    }
  }
  std::vector<std::int64_t> sum_of_in, sum_of_out;
};

/// a * b / c, rounded up. Requires: c >= a or c >= b.
std::int64_t part_of(std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<std::int64_t>((static_cast<__int128>(a) * b + c - 1) / c);
}

/// The dealing as a flow from the edges in to the edges out.
class EvenFlow {
 public:
  EvenFlow(const SwitchSide& in, const SwitchSide& out)
      : in_(in), out_(out), partners_(in, out), flow_(in.amounts.size() + out.amounts.size() + 2) {
    const auto first_out = static_cast<std::uint32_t>(in.amounts.size());
    const auto source = static_cast<std::uint32_t>(in.amounts.size() + out.amounts.size());
    for (std::uint32_t i = 0; i < first_out; ++i) flow_.add_arc(source, i, in.amounts[i]);
    for (std::uint32_t j = 0; first_out + j < source; ++j) {
      flow_.add_arc(first_out + j, source + 1, out.amounts[j]);
      total_ += out.amounts[j];
    }
    for (std::uint32_t i = 0; i < first_out; ++i) {
      for (std::uint32_t j = 0; first_out + j < source; ++j) {
        if (are_partners(in, i, out, j)) pairs_.push_back({flow_.add_arc(i, first_out + j, 0), i, j});
      }
    }
  }

  /// Whether everything can be dealt when each pair takes at most `factor` times its share, in proportion to capacity.
  bool is_feasible(std::int64_t factor) {
    for (const Pair& pair : pairs_) {
      const std::int64_t from = in_.amounts[pair.in];
      const std::int64_t to = out_.amounts[pair.out];
      const std::int64_t whole = std::min(from, to);
      const std::int64_t share =
          part_of(from, to, std::min(partners_.sum_of_in[pair.in], partners_.sum_of_out[pair.out]));
      flow_.set_capacity(pair.arc, share > whole / factor ? whole : share * factor);
    }
    const auto source = static_cast<std::uint32_t>(in_.amounts.size() + out_.amounts.size());
    return flow_.run(source, source + 1, total_) == total_;
  }

  [[nodiscard]] std::vector<std::vector<std::int64_t>> dealt() const {
    std::vector<std::vector<std::int64_t>> amounts(in_.amounts.size(),
                                                   std::vector<std::int64_t>(out_.amounts.size(), 0));
    for (const Pair& pair : pairs_) amounts[pair.in][pair.out] = flow_.flow(pair.arc);
    return amounts;
  }

 private:
  struct Pair {
    std::uint32_t arc, in, out;
  };
  const SwitchSide& in_;
  const SwitchSide& out_;
  Partners partners_;
  MaxFlow<std::int64_t> flow_;
  std::vector<Pair> pairs_;
  std::int64_t total_ = 0;
};

}  // namespace

std::vector<std::vector<std::int64_t>> even_split(const SwitchSide& in, const SwitchSide& out) {
  EvenFlow dealing(in, out);
  constexpr std::int64_t max_uneven = 1 << 10;
  for (std::int64_t factor = 1; factor <= max_uneven; factor *= 2) {
    if (dealing.is_feasible(factor)) return dealing.dealt();
  }
  return {};
}

}  // namespace espalier::planners
