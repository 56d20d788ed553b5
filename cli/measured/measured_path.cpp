#include "cli/measured/measured_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/counted.h"
#include "compare/critical_chain.h"
#include "topology/routes.h"

namespace espalier::cli {
namespace {

/// Of several links the slowest, the first one of equals.
LinkId slowest_of(const Topology& topology, std::span<const LinkId> links) {
  const auto slowest = std::ranges::min_element(
      links, {}, [&](LinkId link) { return topology.link(link).bandwidth().bytes_per_second; });
  return slowest == links.end() ? LinkId() : *slowest;
}

/// Which link a transfer is said to have moved over.
class MeasuredWays {
 public:
  MeasuredWays(const Timeline& timeline, const Topology& topology, const Schedule* schedule)
      : topology_(topology), schedule_(schedule) {
    for (const Span& span : timeline.spans) {
      if (span.phase == Phase::wire) continue;
      Ends& ends = ends_[span.transfer];
      (span.phase == Phase::send ? ends.source : ends.destination) = span.lane;
    }
  }

  LinkId link_of(TransferId transfer) {
    if (schedule_ != nullptr && transfer.index() < schedule_->transfers.size()) {
      return slowest_of(topology_, schedule_->route(schedule_->transfers[transfer.index()].route).links);
    }
    const Ends& ends = ends_[transfer];
    const auto is_rank = [&](const std::optional<std::uint32_t>& lane) {
      return lane && *lane < topology_.rank_count();
    };
    if (!is_rank(ends.source) || !is_rank(ends.destination) || *ends.source == *ends.destination) return {};
    const auto [known, is_new] = routes_.try_emplace({*ends.source, *ends.destination});
    if (is_new) {
      const auto route = find_route(topology_, Rank(*ends.source), Rank(*ends.destination));
      if (route) known->second = slowest_of(topology_, route->links);
    }
    return known->second;
  }

 private:
  struct Ends {
    std::optional<std::uint32_t> source, destination;
  };
  const Topology& topology_;
  const Schedule* schedule_;
  std::map<TransferId, Ends> ends_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, LinkId> routes_;
};

Result<void> check_ranks(const Timeline& timeline, const std::string& file, const Topology& topology) {
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    if (i < timeline.rank_names.size() && timeline.rank_names[i] == topology.rank_name(Rank(i))) continue;
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: a timeline of {}, and {} has {}, {} among them", file,
                            counted(timeline.rank_names.size(), "rank"), topology.name(),
                            counted(topology.rank_count(), "rank"), topology.rank_name(Rank(i))),
                "name the topology or plan that ran");
  }
  return {};
}

}  // namespace

Result<MeasuredPath> find_measured_path(const Timeline& timeline, const std::string& file, const Topology& topology,
                                        const Schedule* schedule) {
  if (const auto fits = check_ranks(timeline, file, topology); !fits) return tl::unexpected(fits.error());
  std::optional<Dependencies> dependencies;
  if (schedule != nullptr) dependencies.emplace(*schedule);
  const std::vector<compare::ChainStep> chain =
      compare::find_critical_chain(timeline, {schedule, dependencies ? &*dependencies : nullptr});
  if (chain.empty()) return MeasuredPath{};
  const bool has_own_links = timeline.link_names.size() == topology.link_count();
  MeasuredWays ways(timeline, topology, schedule);
  const auto node_of = [&](const Span& span) {
    if (span.phase == Phase::wire) return has_own_links ? topology.link(LinkId(span.lane)).tail : NodeId();
    return span.lane < topology.rank_count() ? topology.node_of(Rank(span.lane)) : NodeId();
  };
  const auto part_of = [&](sim::PathUse use, const Span& span, Picoseconds time) {
    sim::PathPart part{use, {}, {}, time};
    if (use != sim::PathUse::reducing && use != sim::PathUse::launch) {
      part.link = span.phase == Phase::wire && has_own_links ? LinkId(span.lane) : ways.link_of(span.transfer);
    }
    if (part.link.is_none()) part.node = node_of(span);
    if (part.node.is_none() && part.link.is_none()) part.node = topology.node_of(Rank(0));
    return part;
  };
  sim::PathTimes times(topology);
  const auto add = [&](sim::PathUse use, const Span& span, Picoseconds time) {
    if (time.count > 0) times.add(part_of(use, span, time));
  };
  const auto first = std::ranges::min_element(timeline.spans, {}, &Span::begin);
  add(sim::PathUse::launch, timeline.spans[chain.front().span], chain.front().begin - first->begin);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const Span& span = timeline.spans[chain[i].span];
    add(span.phase == Phase::reduce ? sim::PathUse::reducing : sim::PathUse::moving, span,
        chain[i].until - chain[i].begin);
    if (i + 1 < chain.size()) add(sim::PathUse::overhead, timeline.spans[chain[i + 1].span], chain[i].waited);
  }
  return MeasuredPath{times.shares(), chain.size()};
}

}  // namespace espalier::cli
