#include "forecast/candidate_simulator.h"

#include <utility>

#include "planners/symmetric/repaired_plan.h"
#include "sim/contention_free/walk_ring.h"

namespace espalier::forecast {
Result<CandidateSimulator> CandidateSimulator::make(const planners::Candidate& candidate, const Topology& topology,
                                                    const sim::CopyEngines& engines) {
  CandidateSimulator made(candidate, topology, engines);
  if (!candidate.walks.empty() || candidate.repaired != nullptr) return made;
  if (candidate.symmetric != nullptr) {
    if (!is_alike(*candidate.symmetric, topology)) {
      return fail(ErrorCode::unsupported, "one rank's part stands for all, and not all ranks have the same links", "");
    }
    made.folded_ = std::make_unique<const planners::FoldedNetwork>(fold(*candidate.symmetric, topology));
    auto simulator =
        sim::Simulator::make_unverified(candidate.schedule, made.folded_->topology, engines, made.folded_->places);
    if (!simulator) return tl::unexpected(simulator.error());
    made.of_part_ = std::move(*simulator);
    return made;
  }
  auto stored = sim::RepeatingSimulator::make_unverified(candidate.schedule, topology, engines, candidate.symmetry);
  if (!stored) return tl::unexpected(stored.error());
  made.stored_ = std::move(*stored);
  return made;
}

Result<sim::Report> CandidateSimulator::run(const sim::Options& options) const {
  if (!candidate_->walks.empty()) {
    return sim::simulate_rings(candidate_->walks, *topology_, options, engines_).map([](sim::RingReport walked) {
      return std::move(walked.report);
    });
  }
  if (candidate_->repaired != nullptr) return add_up(options);
  if (!folded_) return stored_->run(options);
  const auto of_part = options_of_part(options);
  if (!of_part) return tl::unexpected(of_part.error());
  return of_part_->run(*of_part).map([&](sim::Report report) { return of_whole(std::move(report), options.size); });
}

Result<std::optional<sim::Report>> CandidateSimulator::run_until(const sim::Options& options,
                                                                 Picoseconds deadline) const {
  if (stored_) return stored_->run_until(options, deadline);
  // Walking and adding up are quick, whatever time they find.
  if (!folded_) return run(options);
  const auto of_part = options_of_part(options);
  if (!of_part) return tl::unexpected(of_part.error());
  auto report = of_part_->run_until(*of_part, deadline);
  if (report && *report) return of_whole(**std::move(report), options.size);
  return report;
}

Result<sim::Report> CandidateSimulator::add_up(const sim::Options& options) const {
  const sim::Conditions& conditions = options.conditions;
  if (!conditions.changes.empty() || conditions.jitter_ppm > 0 || options.model != sim::ModelKind::link ||
      options.payload_ppm != 1'000'000 || engines_.per_rank > 0) {
    return fail(ErrorCode::unsupported,
                "a plan that was repaired after a failure is not simulated, only its loads and latencies are added up",
                "leave jitter, slow links, protocols, copy engines and --model fair out");
  }
  const planners::RepairedPlan& repaired = *candidate_->repaired;
  sim::Report report;
  report.size = options.size;
  report.chunk = options.chunk;
  report.ahead = options.ahead;
  const double seconds = candidate_->chunks.filled_time(options.size, options.chunk) + options.launch.seconds();
  report.elapsed.count = static_cast<std::int64_t>(seconds * static_cast<double>(picoseconds_per_second));
  const double bytes_per_unit = static_cast<double>(options.size.count) /
                                static_cast<double>(repaired.plan.part.units) / repaired.plan.collective.rank_count;
  for (std::size_t i = 0; i < topology_->link_count(); ++i) {
    const UnitSum units = repaired.loads.link_units[repaired.left.links[i].index()];
    sim::LinkUse& use = report.links.emplace_back();
    use.bytes = static_cast<std::int64_t>(static_cast<double>(units) * bytes_per_unit);
    use.busy = transfer_time({use.bytes}, topology_->link(LinkId(i)).bandwidth());
  }
  return report;
}

Result<sim::Options> CandidateSimulator::options_of_part(const sim::Options& options) const {
  if (!options.conditions.changes.empty() || options.conditions.jitter_ppm > 0) {
    return fail(ErrorCode::unsupported,
                "a plan of which one rank's part stands for all has no jitter and no slow links",
                "leave them out, or simulate a machine of up to " +
                    std::to_string(planners::least_symmetric_ranks - 1) + " ranks");
  }
  // The largest shard that there is.
  const std::int64_t ranks = candidate_->symmetric->collective.rank_count;
  const std::int64_t elements = options.size.count / options.element_size;
  sim::Options of_part = options;
  of_part.size.count = (elements + ranks - 1) / ranks * options.element_size;
  return of_part;
}

sim::Report CandidateSimulator::of_whole(sim::Report report, Bytes size) const {
  report.size = size;
  report.events *= static_cast<std::uint64_t>(candidate_->symmetric->collective.rank_count);
  std::vector<sim::LinkUse> links(topology_->link_count());
  for (std::size_t i = 0; i < links.size(); ++i) {
    links[i] = report.links[folded_->places.links[i].index()];
    links[i].bytes *= folded_->together[i];
  }
  report.links = std::move(links);
  return report;
}

}  // namespace espalier::forecast
