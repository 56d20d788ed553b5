#include "forecast/entrants.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "planners/bounds/bound.h"
#include "planners/ring/ring_walks.h"
#include "planners/symmetric/folded_network.h"
#include "planners/symmetric/rank_part.h"
#include "sim/contention_free/walk_ring.h"

namespace espalier::forecast {

Result<CandidateSimulator> CandidateSimulator::make(const planners::Candidate& candidate, const Topology& topology,
                                                    const sim::CopyEngines& engines) {
  CandidateSimulator made(candidate, topology, engines);
  if (!candidate.walks.empty()) return made;
  if (candidate.symmetric != nullptr) {
    const Topology& network = network_of(candidate, topology);
    made.topology_ = &network;
    if (!is_alike(*candidate.symmetric, network)) {
      return fail(ErrorCode::unsupported, "one rank's part stands for all, and not all ranks have the same links", "");
    }
    made.folded_ = candidate.symmetric->folds->of(*candidate.symmetric, network);
    auto simulator =
        sim::Simulator::make_unverified(candidate.schedule, made.folded_->topology, engines, made.folded_->places);
    if (!simulator) return tl::unexpected(simulator.error());
    made.of_part_ = std::move(*simulator);
    if (candidate.repaired != nullptr) {
      const Rational before = loads_of_whole(*candidate.symmetric, network).time_per_byte;
      made.more_per_byte_ = to_double(candidate.repaired->time_per_byte(network) - before);
    }
    return made;
  }
  if (auto verified = planners::require_verified(candidate, topology); !verified) {
    return tl::unexpected(verified.error());
  }
  auto stored = sim::RepeatingSimulator::make_unverified(candidate.schedule, topology, engines, candidate.symmetry);
  if (!stored) return tl::unexpected(stored.error());
  made.stored_ = std::move(*stored);
  return made;
}

Result<CandidateSimulator> CandidateSimulator::on(const Topology& topology, const sim::CopyEngines& engines) const {
  if (!stored_) return make(*candidate_, topology, engines);
  CandidateSimulator changed(*candidate_, topology, engines);
  auto stored = stored_->on(topology, engines);
  if (!stored) return tl::unexpected(stored.error());
  changed.stored_ = std::move(*stored);
  return changed;
}

Result<sim::Report> CandidateSimulator::run(const sim::Options& options) const {
  if (!candidate_->walks.empty()) {
    return sim::simulate_rings(candidate_->walks, *topology_, options, engines_).map([](sim::RingReport walked) {
      return std::move(walked.report);
    });
  }
  if (!folded_) return stored_->run(options);
  const auto of_part = options_of_part(options);
  if (!of_part) return tl::unexpected(of_part.error());
  return of_part_->run(*of_part).map([&](sim::Report report) { return of_whole(std::move(report), options); });
}

Result<std::optional<sim::Report>> CandidateSimulator::run_until(const sim::Options& options,
                                                                 Picoseconds deadline) const {
  if (stored_) return stored_->run_until(options, deadline);
  // Walking is quick, whatever time it finds.
  if (!folded_) return run(options);
  const auto of_part = options_of_part(options);
  if (!of_part) return tl::unexpected(of_part.error());
  auto report = of_part_->run_until(*of_part, deadline);
  if (!report || !*report) return report;
  sim::Report whole = of_whole(**std::move(report), options);
  if (whole.elapsed > deadline) return std::nullopt;
  return whole;
}

void CandidateSimulator::repair(sim::Report& report, const sim::Options& options) const {
  const planners::RepairedPlan& repaired = *candidate_->repaired;
  const auto on_wire = [&](double bytes) { return bytes * 1e6 / static_cast<double>(options.payload_ppm); };
  const double seconds = more_per_byte_ * on_wire(static_cast<double>(options.size.count)) + repaired.added_latency;
  report.elapsed.count += static_cast<std::int64_t>(seconds * static_cast<double>(picoseconds_per_second));
  const double bytes_per_unit = static_cast<double>(options.size.count) /
                                static_cast<double>(repaired.plan.part.units) / repaired.plan.collective.rank_count;
  std::vector<sim::LinkUse> left;
  for (const LinkId link : repaired.left.links) {
    const double bytes = static_cast<double>(repaired.loads.link_units[link.index()]) * bytes_per_unit;
    sim::LinkUse& use = left.emplace_back();
    use.bytes = static_cast<std::int64_t>(bytes);
    use.busy = transfer_time({static_cast<std::int64_t>(on_wire(bytes))}, topology_->link(link).bandwidth());
  }
  report.links = std::move(left);
  // What passes the links of the machine before is not what happens on those that are left.
  report.critical_path.clear();
  report.path_parts.clear();
  report.shared.clear();
  report.window_waits = 0;
}

Result<sim::Options> CandidateSimulator::options_of_part(const sim::Options& options) const {
  if (!options.conditions.changes.empty() || options.conditions.jitter_ppm > 0) {
    return fail(ErrorCode::unsupported,
                "a plan of which one rank's part stands for all has no jitter and no slow links",
                "leave them out, or simulate a machine of up to " + std::to_string(planners::min_symmetric_ranks - 1) +
                    " ranks");
  }
  // The largest shard that there is.
  const std::int64_t ranks = candidate_->symmetric->collective.rank_count;
  const std::int64_t elements = options.size.count / options.element_size;
  sim::Options of_part = options;
  of_part.size.count = (elements + ranks - 1) / ranks * options.element_size;
  return of_part;
}

sim::Report CandidateSimulator::of_whole(sim::Report report, const sim::Options& options) const {
  report.size = options.size;
  report.events *= static_cast<std::uint64_t>(candidate_->symmetric->collective.rank_count);
  if (candidate_->repaired != nullptr) {
    repair(report, options);
    return report;
  }
  std::vector<sim::LinkUse> links(topology_->link_count());
  for (std::size_t i = 0; i < links.size(); ++i) {
    links[i] = report.links[folded_->places.links[i].index()];
    links[i].bytes *= folded_->together[i];
  }
  report.links = std::move(links);
  return report;
}

const Topology& network_of(const planners::Candidate& candidate, const Topology& topology) {
  if (candidate.repaired == nullptr) return topology;
  const Topology& whole = *candidate.repaired->whole;
  return topology.link_count() == whole.link_count() ? topology : whole;
}

Result<planners::Candidates> only_candidate(Schedule schedule, const Topology& topology) {
  auto bound = planners::compute_bound(topology, schedule.collective);
  if (!bound) return tl::unexpected(bound.error());
  planners::Candidates candidates;
  candidates.bound = *std::move(bound);
  const planners::ChunkModel chunks(schedule, topology);
  std::string name = schedule.algorithm.empty() ? "plan" : schedule.algorithm;
  candidates.made.push_back({std::move(name), std::move(schedule), chunks});
  return candidates;
}

bool is_walked(const planners::Candidate& candidate) { return !candidate.walks.empty(); }

const planners::RepairedPlan* repairs_of(const planners::Candidate& candidate) { return candidate.repaired.get(); }

std::shared_ptr<const Schedule> described_schedule(const planners::Candidate& candidate) {
  if (candidate.symmetric == nullptr) return {std::shared_ptr<const void>(), &candidate.schedule};
  auto part = std::make_shared<Schedule>(candidate.symmetric->part);
  part->collective = candidate.symmetric->collective;
  part->units *= part->collective.rank_count;
  return part;
}

Loads loads_of(const planners::Candidate& candidate, const Topology& topology) {
  if (candidate.symmetric == nullptr) return compute_loads(candidate.schedule, topology);
  if (candidate.repaired == nullptr) return planners::loads_of_whole(*candidate.symmetric, topology);
  const planners::RepairedPlan& repaired = *candidate.repaired;
  Loads loads;
  loads.time_per_byte = repaired.loads.time_per_byte;
  loads.node_units.resize(topology.node_count());
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const LinkId before = repaired.left.links[i];
    loads.link_units.push_back(repaired.loads.link_units[before.index()]);
    if (std::ranges::binary_search(repaired.loads.bottleneck_links, before)) loads.bottleneck_links.emplace_back(i);
  }
  return loads;
}

Rational seconds_per_byte_of(const planners::Candidate& candidate, const Topology& topology) {
  if (candidate.repaired != nullptr) return candidate.repaired->time_per_byte(network_of(candidate, topology));
  if (candidate.symmetric != nullptr) return planners::time_per_byte(*candidate.symmetric, topology);
  if (candidate.walks.empty()) return compute_loads(candidate.schedule, topology).time_per_byte;
  return compute_loads(make_outline(candidate.walks, topology), topology).time_per_byte * candidate.walks[0].steps();
}

planners::ChunkModel chunk_model_of(const planners::Candidate& candidate, const Topology& topology) {
  if (candidate.repaired != nullptr) return planners::chunk_model(*candidate.repaired, network_of(candidate, topology));
  if (candidate.symmetric != nullptr) return planners::chunk_model(*candidate.symmetric, topology);
  if (candidate.walks.empty()) return {candidate.schedule, topology};
  return planners::ChunkModel::of_rings(candidate.walks, topology);
}

std::vector<bool> used_links(const planners::Candidate& candidate, const Topology& topology) {
  std::vector<bool> is_used(topology.link_count(), false);
  if (candidate.symmetric != nullptr) {
    const Loads loads = loads_of(candidate, topology);
    for (std::size_t i = 0; i < is_used.size(); ++i) is_used[i] = loads.link_units[i] != 0;
    return is_used;
  }
  for (const RingWalk& walk : candidate.walks) {
    for (const std::vector<LinkId>& hop : walk.hops) {
      for (const LinkId link : hop) is_used[link.index()] = true;
    }
  }
  for (std::size_t i = 0; i < candidate.schedule.route_count(); ++i) {
    for (const LinkId link : candidate.schedule.route(RouteId(i)).links) is_used[link.index()] = true;
  }
  return is_used;
}

Result<std::shared_ptr<const planners::Candidate>> stored_form(const planners::Candidate& candidate,
                                                               const Topology& topology) {
  if (!is_walked(candidate) || topology.rank_count() >= planners::max_stored_ranks) {
    return std::shared_ptr<const planners::Candidate>(std::shared_ptr<const void>(), &candidate);
  }
  const auto planner = planners::find_planner(candidate.planner);
  if (!planner) return tl::unexpected(planner.error());
  const Bound bound = candidate.schedule.bound.value_or(Bound{});
  auto made = planners::make_candidates_by(*planner, topology, candidate.collective(), bound);
  if (!made) return tl::unexpected(made.error());
  return std::make_shared<const planners::Candidate>(std::move(made->back()));
}

Result<const Schedule*> whole_schedule(const planners::Candidate& candidate) {
  if (candidate.is_stored()) return &candidate.schedule;
  return fail(ErrorCode::too_large,
              "the plan of " + counted(candidate.collective().rank_count, "rank") + " is not written to a file: " +
                  counted(candidate.transfer_count(), "transfer") + " by " + candidate.planner,
              "files hold plans of up to " + std::to_string(planners::min_symmetric_ranks - 1) +
                  " ranks; simulate plans and runs it in one go, and --rank N writes the part of one rank");
}

Result<Schedule> part_of_rank(const planners::Candidate& candidate, const Topology& topology, Rank rank) {
  if (candidate.is_stored()) return planners::part_of_rank(candidate.schedule, rank);
  if (candidate.repaired != nullptr || candidate.symmetric == nullptr) {
    return fail(ErrorCode::unsupported,
                candidate.repaired != nullptr
                    ? "ranks of a plan that was repaired after a failure have no part of their own yet"
                    : "rings that are walked have no parts of ranks",
                "name packing or tree with -a, on the whole machine");
  }
  return planners::part_of_rank(*candidate.symmetric, topology, rank).map([&](Schedule part) {
    part.pacing = candidate.schedule.pacing;
    return part;
  });
}

}  // namespace espalier::forecast
