#include "advisor/run_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/format_units.h"

namespace espalier {
namespace {

std::string class_of(const Link& link) {
  return link.link_class.empty() ? format_bandwidth(link.bandwidth()) : link.link_class;
}

/// A topology under change: starts each time from the one that was simulated.
class Experiments {
 public:
  Experiments(const Schedule& schedule, const Topology& topology, const sim::Options& options)
      : schedule_(schedule), topology_(topology), options_(options) {
    options_.record_critical_path = options_.record_sharing = false;
  }

  /// Changes every link of a class.
  template <class Change>
  void change_class(const std::string& name, const char* kind, const std::string& what, const Change& change) {
    std::vector<Link> links(topology_.links().begin(), topology_.links().end());
    std::size_t count = 0;
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (class_of(topology_.link(LinkId(i))) != name) continue;
      change(links[i]);
      ++count;
    }
    const std::string noun = count == 1 ? "link" : "links";
    run(kind, fmt::format("{} {} ({} {})", what, name, count, noun), nodes(), std::move(links));
  }

  template <class Change>
  void change_link(LinkId link, const char* kind, const std::string& what, const Change& change) {
    std::vector<Link> links(topology_.links().begin(), topology_.links().end());
    change(links[link.index()]);
    run(kind, what + " " + topology_.link_name(link) + " alone", nodes(), std::move(links));
  }

  /// Changes every node that is a rank, or every one that is none.
  template <class Change>
  void change_nodes(bool ranks, const char* kind, const std::string& what, const Change& change) {
    std::vector<Node> changed = nodes();
    for (Node& node : changed) {
      if (node.is_rank == ranks) change(node);
    }
    run(kind, what, std::move(changed), {topology_.links().begin(), topology_.links().end()});
  }

  void change_chunk(Bytes chunk, Bytes before) {
    if (chunk.count < options_.element_size || chunk == before) return;
    sim::Options changed = options_;
    changed.chunk = chunk;
    add("chunk", fmt::format("chunks of {} instead of {}", format_size(chunk), format_size(before)),
        sim::simulate(schedule_, topology_, changed));
  }

  void change_algorithm(const Candidate& candidate) {
    sim::Options changed = options_;
    changed.chunk = candidate.chunks.choose(options_.size);
    add("algorithm", fmt::format("the schedule of {}", candidate.planner),
        sim::simulate(candidate.schedule, topology_, changed));
  }

  std::vector<Improvement> take() && {
    std::ranges::stable_sort(improvements_, {}, &Improvement::elapsed);
    return std::move(improvements_);
  }

 private:
  [[nodiscard]] std::vector<Node> nodes() const { return {topology_.nodes().begin(), topology_.nodes().end()}; }

  void run(const char* kind, std::string change, std::vector<Node> nodes, std::vector<Link> links) {
    const auto changed = Topology::make(topology_.name(), std::move(nodes), std::move(links));
    if (changed) add(kind, std::move(change), sim::simulate(schedule_, *changed, options_));
  }

  void add(const char* kind, std::string change, const Result<sim::Report>& report) {
    if (report) improvements_.push_back({std::move(change), kind, report->elapsed, report->chunk});
  }

  const Schedule& schedule_;
  const Topology& topology_;
  sim::Options options_;
  std::vector<Improvement> improvements_;
};

void double_rate(Link& link) { link.nominal.bytes_per_second *= 2; }
void halve_latency(Link& link) { link.latency.count /= 2; }
void drop_overhead(Link& link) { link.overhead = {}; }

/// What more bandwidth shortens.
constexpr std::array of_bandwidth = {PathUse::moving, PathUse::queueing, PathUse::sharing};

/// The classes to change, those with the largest part of the path first, then that of the busiest link; by use.
class Suspects {
 public:
  Suspects(const RunLimits& limits, const Topology& topology) : limits_(limits) {
    const auto busiest = sim::busiest_links(limits.report, 1);
    if (!busiest.empty()) busiest_ = busiest.front().link;
    if (!busiest_.is_none()) busiest_class_ = class_of(topology.link(busiest_));
  }

  [[nodiscard]] LinkId busiest() const { return busiest_; }

  /// Where time went in one of these ways.
  [[nodiscard]] std::vector<std::string> find(std::span<const PathUse> uses, bool with_busiest = false) const {
    constexpr std::size_t most = 3;
    std::vector<std::string> names;
    for (const PathTime& share : limits_.path) {
      const bool counts = std::ranges::find(uses, share.use) != uses.end();
      if (counts && std::ranges::find(names, share.where) == names.end() && names.size() < most) {
        names.push_back(share.where);
      }
    }
    if (with_busiest && !busiest_.is_none() && std::ranges::find(names, busiest_class_) == names.end()) {
      names.push_back(busiest_class_);
    }
    return names;
  }

  /// The link on which most of the path's time was spent moving, queueing or sharing.
  [[nodiscard]] std::string slowest_link() const {
    for (const PathTime& share : limits_.path) {
      if (std::ranges::find(of_bandwidth, share.use) != of_bandwidth.end()) return share.most_at;
    }
    return {};
  }

 private:
  const RunLimits& limits_;
  LinkId busiest_;
  std::string busiest_class_;
};

void try_links(Experiments& experiments, const Suspects& suspects, const Topology& topology) {
  for (const std::string& name : suspects.find(of_bandwidth, true)) {
    experiments.change_class(name, "bandwidth", "twice the bandwidth of", double_rate);
  }
  std::set<LinkId> links;
  if (const LinkId slowest = topology.find_link(suspects.slowest_link()); !slowest.is_none()) links.insert(slowest);
  if (!suspects.busiest().is_none()) links.insert(suspects.busiest());
  for (const LinkId link : links) {
    experiments.change_link(link, "bandwidth", "twice the bandwidth of", double_rate);
  }
  for (const std::string& name : suspects.find(std::array{PathUse::latency})) {
    experiments.change_class(name, "latency", "half the latency of", halve_latency);
  }
  for (const std::string& name : suspects.find(std::array{PathUse::overhead})) {
    experiments.change_class(name, "overhead", "no per-message overhead on", drop_overhead);
  }
}

void try_nodes(Experiments& experiments, const Suspects& suspects) {
  for (const std::string& name : suspects.find(std::array{PathUse::reducing})) {
    experiments.change_nodes(name == "ranks", "reduction", "twice the reduction rate of " + name,
                             [](Node& node) { node.reduce_bandwidth.bytes_per_second *= 2; });
  }
  for (const std::string& name : suspects.find(std::array{PathUse::in_backplane})) {
    experiments.change_nodes(name == "ranks", "backplane", "twice the backplane of " + name,
                             [](Node& node) { node.bandwidth.bytes_per_second *= 2; });
  }
}

}  // namespace

Result<RunLimits> find_run_limits(const Schedule& schedule, const Topology& topology, sim::Options options,
                                  std::span<const Candidate> others) {
  options.record_timeline = false;
  options.record_critical_path = options.record_sharing = true;
  auto report = sim::simulate(schedule, topology, options);
  if (!report) return tl::unexpected(report.error());
  RunLimits limits;
  limits.report = std::move(*report);
  limits.model = options.model;
  limits.path = divide_critical_path(limits.report, schedule, topology, options.model);
  constexpr double nearly_always = 0.9;
  if (limits.report.elapsed.count == 0) return limits;
  limits.full = sim::busiest_links(limits.report, topology.link_count());
  std::erase_if(limits.full, [](const sim::LinkShare& link) { return link.share <= nearly_always; });
  const Suspects suspects(limits, topology);
  Experiments experiments(schedule, topology, options);
  try_links(experiments, suspects, topology);
  try_nodes(experiments, suspects);
  for (const std::int64_t factor : {4, 2}) {
    experiments.change_chunk({options.chunk.count / factor / options.element_size * options.element_size},
                             options.chunk);
    experiments.change_chunk({options.chunk.count * factor}, options.chunk);
  }
  for (const Candidate& other : others) {
    // What needs longer at the least cannot help.
    if (&other.schedule == &schedule || other.chunks.least_time(options.size) > limits.report.elapsed.seconds())
      continue;
    experiments.change_algorithm(other);
  }
  limits.improvements = std::move(experiments).take();
  return limits;
}

}  // namespace espalier
