#include "scenario/run/background_traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace espalier::scenario {
namespace {

constexpr std::uint64_t background_salt = 0x6261636B67726F75U;  // so that other draws from the seed are others

Bandwidth slowest_link(const Plan& plan, const Topology& topology) {
  Bandwidth slowest{std::numeric_limits<std::int64_t>::max()};
  for (const LinkId link : plan.links) slowest = std::min(slowest, topology.link(link).bandwidth());
  return slowest;
}

}  // namespace

BackgroundTraffic::BackgroundTraffic(const Topology& topology, const Disturbances& disturbances, Plans& plans,
                                     sim::Model& model, std::int32_t payload_ppm)
    : topology_(topology),
      disturbances_(disturbances),
      plans_(plans),
      model_(model),
      payload_ppm_(payload_ppm),
      random_(disturbances.seed ^ background_salt) {}

Result<void> BackgroundTraffic::start(Timers& timers) {
  for (const Background& background : disturbances_.background) {
    std::vector<Rank> ranks = background.ranks;
    for (std::size_t i = 0; background.ranks.empty() && i < topology_.rank_count(); ++i) ranks.emplace_back(i);
    if (ranks.size() < 2) return fail(ErrorCode::invalid_input, "background traffic needs two ranks");
    for (std::uint32_t i = 0; i < background.pairs; ++i) {
      const std::uint64_t src = random_.below(ranks.size());
      const std::uint64_t dst = (src + 1 + random_.below(ranks.size() - 1)) % ranks.size();
      const auto plan = plans_.find_pair(ranks[src], ranks[dst]);
      if (!plan) return tl::unexpected(plan.error());
      const double rate = static_cast<double>(slowest_link(**plan, topology_).bytes_per_second) *
                          static_cast<double>(background.load_ppm) * 1e-6;
      const double wire = static_cast<double>(background.size.count) * 1e6 / static_cast<double>(payload_ppm_);
      pairs_.push_back({ranks[src], ranks[dst], background.size, wire / rate * 1e12});
      set_timer(static_cast<std::uint32_t>(pairs_.size() - 1), 0, timers);
    }
  }
  return {};
}

void BackgroundTraffic::set_timer(std::uint32_t pair, std::int64_t time, Timers& timers) {
  // A number in (0, 1], of 53 bits, so that its logarithm is finite.
  const double part = static_cast<double>((random_.next() >> 11U) + 1) * 0x1p-53;
  const double gap = std::min(-std::log(part) * pairs_[pair].mean_gap, 1e18);
  timers.push({time + static_cast<std::int64_t>(std::llround(gap)), TimerKind::flow, pair});
}

Result<sim::RunId> BackgroundTraffic::send(std::uint32_t pair, std::int64_t time, Timers& timers) {
  if (flows_ > max_under_way + ends_ / 2) {
    return fail(ErrorCode::too_large, fmt::format("background traffic piles up: {} flows are under way", max_under_way),
                "lower its load or the number of pairs; all together ask for more than the links carry");
  }
  const Pair& flow = pairs_[pair];
  const auto plan = plans_.find_pair(flow.src, flow.dst);
  if (!plan) return tl::unexpected(plan.error());
  const sim::RunOptions options{.size = flow.size,
                                .chunk = std::max((*plan)->planned->chunks.choose(flow.size), Bytes{1}),
                                .element_size = 1,
                                .payload_ppm = payload_ppm_};
  const auto run = model_.add(*(*plan)->compiled, options);
  if (!run) return run;
  model_.enter(*run, Rank(0), time);
  model_.enter(*run, Rank(1), time);
  ++flows_;
  set_timer(pair, time, timers);
  return run;
}

}  // namespace espalier::scenario
