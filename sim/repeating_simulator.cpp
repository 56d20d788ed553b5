#include "sim/repeating_simulator.h"

#include <utility>

namespace espalier::sim {
namespace {

/// Whether the time is that of links alone.
bool costs_nothing(const CopyEngines& engines) { return engines.per_rank == 0 && engines.message.count == 0; }

bool repeats_on(const Schedule& schedule, const Topology& topology, const CopyEngines& engines,
                const ScheduleSymmetry* symmetry) {
  return symmetry != nullptr && costs_nothing(engines) && can_repeat(schedule, topology, *symmetry);
}

/// Whether a part of a schedule that repeats stands for all of it in this run.
bool stands_for_all(const Schedule& schedule, const ScheduleSymmetry& symmetry, const Options& options) {
  return options.model == ModelKind::link && !is_disturbed(options.conditions) && !options.record_timeline &&
         !options.record_critical_path && are_parts_alike(schedule, symmetry, options.size, options.element_size);
}

}  // namespace

RepeatingSimulator::RepeatingSimulator(const Schedule& schedule, const Topology& topology, const CopyEngines& engines,
                                       std::shared_ptr<const ScheduleSymmetry> symmetry)
    : schedule_(&schedule), topology_(&topology), engines_(engines), symmetry_(std::move(symmetry)) {}

Result<RepeatingSimulator> RepeatingSimulator::make_unverified(const Schedule& schedule, const Topology& topology,
                                                               const CopyEngines& engines,
                                                               std::shared_ptr<const ScheduleSymmetry> symmetry) {
  RepeatingSimulator made(schedule, topology, engines, std::move(symmetry));
  if (repeats_on(schedule, topology, engines, made.symmetry_.get())) {
    auto repeats = std::make_shared<const Repeats>(make_repeats(schedule, topology, *made.symmetry_));
    if (auto ready = made.make_part(std::move(repeats)); !ready) return tl::unexpected(ready.error());
  } else if (const auto& whole = made.find_whole(); !whole) {
    return tl::unexpected(whole.error());
  }
  return made;
}

Result<RepeatingSimulator> RepeatingSimulator::on(const Topology& topology, const CopyEngines& engines) const {
  if (!repeats_ || !repeats_on(*schedule_, topology, engines, symmetry_.get())) {
    const Result<Simulator>& here = find_whole();
    if (!here) return tl::unexpected(here.error());
    auto whole = here->on(topology, engines);
    if (!whole) return tl::unexpected(whole.error());
    RepeatingSimulator made(*schedule_, topology, engines, nullptr);
    std::call_once(made.whole_->once, [&] { made.whole_->made = std::move(whole); });
    return made;
  }
  RepeatingSimulator made(*schedule_, topology, engines, symmetry_);
  if (auto ready = made.make_part(repeats_); !ready) return tl::unexpected(ready.error());
  return made;
}

Result<void> RepeatingSimulator::make_part(std::shared_ptr<const Repeats> repeats) {
  auto part = Simulator::make_unverified(repeats->part, *topology_, engines_, repeats->places);
  if (!part) return tl::unexpected(part.error());
  part_ = std::move(*part);
  repeats_ = std::move(repeats);
  return {};
}

const Result<Simulator>& RepeatingSimulator::find_whole() const {
  std::call_once(whole_->once, [&] { whole_->made = Simulator::make_unverified(*schedule_, *topology_, engines_); });
  return *whole_->made;
}

std::uint32_t RepeatingSimulator::parts(const Options& options) const {
  return repeats_ && stands_for_all(*schedule_, *symmetry_, options) ? repeats_->times : 1;
}

Result<Report> RepeatingSimulator::run(const Options& options) const {
  if (parts(options) == 1) {
    const Result<Simulator>& whole = find_whole();
    return whole ? whole->run(options) : tl::unexpected(whole.error());
  }
  return part_->run(options).map([&](Report report) { return of_whole(std::move(report)); });
}

Result<std::optional<Report>> RepeatingSimulator::run_until(const Options& options, Picoseconds deadline) const {
  if (parts(options) == 1) {
    const Result<Simulator>& whole = find_whole();
    return whole ? whole->run_until(options, deadline) : tl::unexpected(whole.error());
  }
  auto report = part_->run_until(options, deadline);
  if (report && *report) return of_whole(**std::move(report));
  return report;
}

Report RepeatingSimulator::of_whole(Report report) const {
  report.events *= repeats_->times;
  std::vector<LinkUse> links(topology_->link_count());
  for (std::size_t i = 0; i < links.size(); ++i) links[i] = report.links[repeats_->places.links[i].index()];
  report.links = std::move(links);
  return report;
}

std::uint32_t simulated_parts(const Schedule& schedule, const Topology& topology, const CopyEngines& engines,
                              const ScheduleSymmetry* symmetry, const Options& options) {
  const bool repeats =
      repeats_on(schedule, topology, engines, symmetry) && stands_for_all(schedule, *symmetry, options);
  return repeats ? symmetry->times : 1;
}

}  // namespace espalier::sim
