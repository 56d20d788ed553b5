#include "cli/measured/diagnosis_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "base/parallel.h"
#include "cli/output/progress.h"
#include "diagnose/setting.h"
#include "topology/cables.h"
#include "topology/names/group.h"

namespace espalier::cli {
namespace {

/// Faults of machines of more ranks are estimated by what runs put on links.
constexpr std::size_t max_simulated_ranks = 48;

/// A table by the ranks that each row is of.
std::map<std::vector<std::uint32_t>, compare::Measurements> by_members(const compare::Measurements& table) {
  std::map<std::vector<std::uint32_t>, compare::Measurements> parts;
  for (const compare::Measurement& row : table.rows) {
    compare::Measurements& part = parts[row.members];
    part.file = table.file;
    part.origin = table.origin;
    part.shares = table.shares;
    part.rows.push_back(row);
  }
  return parts;
}

/// The names of these ranks, as --ranks takes them. Errors: usage where the machine has fewer.
OrStop<std::string> names_of(const Topology& machine, const std::vector<std::uint32_t>& members,
                             const std::string& file) {
  std::string names;
  for (const std::uint32_t member : members) {
    if (member >= machine.rank_count()) {
      return stop(
          {ErrorCode::invalid_input,
           fmt::format("{} has GPU {}, and {} has {} ranks", file, member, machine.name(), machine.rank_count()),
           "name the machine that was measured"});
    }
    names += (names.empty() ? "" : ",") + machine.rank_name(Rank(member));
  }
  return names;
}

/// Adds the series of rows that are all of the same ranks.
OrStop<void> add_series(DiagnosisTables& tables, const compare::Measurements& table, const Topology& tested,
                        const std::string& ranks, const std::string& usual_algorithm) {
  auto evidence = evidence_of(table, tested, ranks, usual_algorithm);
  if (!evidence) return tl::unexpected(evidence.error());
  for (diagnose::Evidence& each : *evidence) {
    tables.evidence.push_back(std::move(each));
    tables.tested.push_back(tested);
  }
  return {};
}

/// The row that is furthest below what any schedule takes.
std::optional<TooFast> find_too_fast(const DiagnosisTables& tables, DiagnosisRuns& runs) {
  std::optional<TooFast> worst;
  constexpr double rounding = 0.995;  // nccl-tests prints four digits, and sizes are whole elements.
  for (const diagnose::Evidence& each : tables.evidence) {
    const auto bound = runs.bound_per_byte(each.question);
    for (const diagnose::Point& point : each.points) {
      const double least = bound * static_cast<double>(point.size.count);
      if (point.seconds >= rounding * least) continue;
      if (worst && worst->point.seconds / worst->bound_seconds <= point.seconds / least) continue;
      worst = TooFast{&each, point, least};
    }
  }
  return worst;
}

/// The software and its other ways to start a call, the given one first.
std::vector<std::shared_ptr<const forecast::Software>> launches_of(
    const std::shared_ptr<const forecast::Software>& given) {
  std::vector<std::shared_ptr<const forecast::Software>> all = {given};
  const bool names_its_launch = given == nullptr || given->shown.find(':') != std::string::npos;
  if (names_its_launch) return all;
  for (const auto& [name, launch] : std::span(given->profile.launches).subspan(1)) {
    auto other = *given;
    other.launch = launch;
    other.shown += ":" + name;
    all.push_back(std::make_shared<const forecast::Software>(std::move(other)));
  }
  return all;
}

/// The sum of squared logarithms of measured over predicted on the machine as it should be, where every call takes so
/// much longer. A row that takes longer than predicted may show a fault, and says no more the longer it takes; none
/// makes a row shorter.
double gap_with(const DiagnosisTables& tables, std::span<const double> predicted, double delay) {
  constexpr double max_longer = 0.4;
  double gap = 0;
  auto time = predicted.begin();
  for (const diagnose::Evidence& each : tables.evidence) {
    for (const diagnose::Point& point : each.points) {
      const double parted = std::min(max_longer, std::log(point.seconds / (*time++ + delay)));
      gap += parted * parted;
    }
  }
  return gap;
}

using Launches = std::vector<std::unique_ptr<DiagnosisRuns>>;

/// A row as it is to be predicted for one of several launches.
struct Asked {
  std::size_t launch = 0, row = 0;
  const diagnose::Question* question = nullptr;
  Bytes size;
};

/// Large sizes first, which take longest.
std::vector<Asked> asked_of(const DiagnosisTables& tables, std::size_t launches, bool by_smallest) {
  std::vector<Asked> asked;
  for (std::size_t launch = 0; launch < launches; ++launch) {
    std::size_t row = 0;
    for (const diagnose::Evidence& each : tables.evidence) {
      const std::size_t used = by_smallest && launch > 0 ? 1 : each.points.size();
      for (std::size_t i = 0; i < used; ++i) asked.push_back({launch, row + i, &each.question, each.points[i].size});
      row += each.points.size();
    }
  }
  std::ranges::stable_sort(asked, std::ranges::greater(), &Asked::size);
  return asked;
}

/// The times of all rows, as by each of these launches, on all cores. `by_smallest`: other launches than the first are
/// run at the smallest size of each series alone and move the others by as much. Errors: those of the predictions.
Result<std::vector<std::vector<double>>> predict_healthy(const DiagnosisTables& tables, const Launches& launches,
                                                         bool by_smallest) {
  std::vector<std::vector<double>> times(launches.size(), std::vector<double>(tables.rows()));
  const std::vector<Asked> asked = asked_of(tables, launches.size(), by_smallest);
  std::mutex mutex;
  std::optional<Error> error;
  run_parallel(asked.size(), usable_threads(), [&](std::size_t i) {
    const Asked& of = asked[i];
    const auto time = launches[of.launch]->predict(*of.question, {}, std::span(&of.size, 1));
    const std::scoped_lock lock(mutex);
    if (time) times[of.launch][of.row] = time->front();
    if (!time && !error) error = time.error();
  });
  if (error) return tl::unexpected(*error);
  for (std::size_t launch = 1; by_smallest && launch < launches.size(); ++launch) {
    std::size_t first = 0;
    for (const diagnose::Evidence& each : tables.evidence) {
      const double longer = times[launch][first] - times[0][first];
      for (std::size_t i = 1; i < each.points.size(); ++i) times[launch][first + i] = times[0][first + i] + longer;
      first += each.points.size();
    }
  }
  return times;
}

/// How calls may have been started, where the command line does not say: as fits best what was measured on a machine
/// without faults, and first as given where a rank that comes late to that fits about as well. A launch is no fault;
/// but it is no explanation either where a late rank fits far better.
Result<Launches> runs_that_fit(const Topology& machine, const DiagnosisTables& tables,
                               const std::shared_ptr<const forecast::Software>& given) {
  Launches launches;
  for (const auto& software : launches_of(given)) {
    launches.push_back(launches.empty() ? std::make_unique<DiagnosisRuns>(machine, software)
                                        : launches.front()->with_launch(software));
    for (const diagnose::Evidence& each : tables.evidence) launches.front()->bound_per_byte(each.question);  // Plans.
  }
  const bool is_large = machine.rank_count() > max_simulated_ranks;
  const auto times = predict_healthy(tables, launches, is_large);
  if (!times) return tl::unexpected(times.error());
  double min_late = std::numeric_limits<double>::infinity();
  constexpr double first = 1e-6, last = 0.1, ratio = 1.1;
  for (double delay = first; delay < last; delay *= ratio) {
    min_late = std::min(min_late, gap_with(tables, times->front(), delay));
  }
  std::size_t best = 0;
  double min_gap = gap_with(tables, times->front(), 0);
  for (std::size_t i = 1; i < launches.size(); ++i) {
    const double gap = gap_with(tables, (*times)[i], 0);
    if (gap >= min_gap) continue;
    min_gap = gap;
    best = i;
  }
  // Diagnosing twice takes twice as long: on many ranks the sums of squares decide alone.
  constexpr double far_better = 4;
  const double surely = is_large ? far_better : far_better * far_better;
  Launches fitting;
  const bool may_be_given = best == 0 || min_gap > (is_large ? far_better * min_late : min_late / far_better);
  if (may_be_given) fitting.push_back(std::move(launches.front()));
  if (best != 0 && min_gap <= surely * min_late && (!is_large || !may_be_given)) {
    fitting.push_back(std::move(launches[best]));
  }
  if (fitting.back()->software() != given) {
    if (const auto all = predict_healthy(tables, fitting, false); !all) return tl::unexpected(all.error());
  }
  return fitting;
}

/// The cables of a node and their classes, the nodes of a cable, the switches of a class of links.
std::vector<std::string> neighbours_of(const Topology& machine, const std::string& part) {
  std::vector<std::string> found;
  const NodeId node = machine.find_node(part);
  std::set<std::string> of_classes;
  for (const Link& link : machine.links()) {
    if (link.tail == node && !link.link_class.empty()) of_classes.insert(link.link_class);
    const bool is_of_switch = machine.node(link.tail).kind == NodeKind::switch_node;
    if (link.link_class == part && is_of_switch) of_classes.insert(machine.node(link.tail).id);
  }
  found.assign(of_classes.begin(), of_classes.end());
  for (const Cable& cable : find_cables(machine)) {
    const Link& link = machine.link(cable.there);
    std::string name = cable_name(machine, cable);
    if (name == part) return {machine.node(link.tail).id, machine.node(link.head).id};
    if (!node.is_none() && (link.tail == node || link.head == node)) found.push_back(std::move(name));
  }
  return found;
}

/// What tells the first suspect from the parts that measure the same.
std::optional<diagnose::NextTest> next_test_for(const Topology& machine, const diagnose::Diagnosis& diagnosis,
                                                const diagnose::Predict& predict, bool is_large) {
  if (diagnosis.suspects.empty()) return std::nullopt;
  const diagnose::Suspect& first = diagnosis.suspects.front();
  if (first.fault.kind == diagnose::Fault::Kind::setting) return std::nullopt;  // Its advice is how to tell.
  std::vector<std::string> parts = first.alike;
  parts.insert(parts.end(), first.same_predictions.begin(), first.same_predictions.end());
  if (parts.size() < 2) return std::nullopt;
  diagnose::Fault fault = first.fault;
  diagnose::Question like = diagnosis.worst->question;
  const Bytes size = diagnosis.worst->points[diagnosis.worst_point].size;
  constexpr std::size_t max_of_large = 2, max_of_small = 12;  // To plan on half of many ranks takes long.
  return diagnose::find_next_test(machine, parts, fault, like, size, predict, is_large ? max_of_large : max_of_small);
}

/// Parts that may be at fault, and under a profile NCCL's settings.
std::vector<diagnose::FaultClass> classes_for(const DiagnosisTables& tables,
                                              const std::shared_ptr<const forecast::Software>& software) {
  std::vector<diagnose::FaultClass> classes = diagnose::find_fault_classes(tables.tested);
  set_apart(classes, tables.counted);
  constexpr std::size_t max_ranks = 512;  // Each setting is planned for as the healthy machine is.
  if (software == nullptr || tables.tested.front().rank_count() > max_ranks) return classes;
  for (const diagnose::Setting& setting : diagnose::nccl_settings()) {
    classes.push_back({{std::string(setting.name)}, "setting", false, true});
  }
  return classes;
}

/// With the calls started in one way.
Result<Diagnosed> diagnose_as_started(DiagnosisRuns& runs, const Topology& machine, const DiagnosisTables& tables,
                                      Progress& progress) {
  const diagnose::Predict predict = [&](const diagnose::Question& question, std::span<const diagnose::Fault> faults,
                                        std::span<const Bytes> sizes) { return runs.predict(question, faults, sizes); };
  diagnose::DiagnoseOptions options;
  options.threads = usable_threads();
  // What a prediction takes grows with the square of the ranks: past one box there are fewer.
  constexpr std::size_t ranks_of_box = 8;
  const std::size_t boxes = std::max<std::size_t>(1, machine.rank_count() / ranks_of_box);
  options.max_pairs = std::max<std::size_t>(8, options.max_pairs / boxes);
  options.max_responses = options.max_responses / boxes;
  options.max_dense = std::max<std::size_t>(4, options.max_dense / boxes);
  const diagnose::Predict estimate = [&](const diagnose::Question& question, std::span<const diagnose::Fault> faults,
                                         std::span<const Bytes> sizes) {
    return runs.estimate(question, faults, sizes);
  };
  const bool is_large = machine.rank_count() > max_simulated_ranks;
  if (is_large) {
    options.estimate = estimate;
    constexpr std::size_t known_times_ranks = 512;  // Eight classes of 64 ranks in some seconds, none of 1,024.
    options.max_known = known_times_ranks / machine.rank_count();
  }
  options.classes_with = [&](const diagnose::Fault& fault) {
    std::vector<Topology> faulty;
    for (const Topology& tested : tables.tested) {
      auto with = diagnose::with_faults(tested, std::span(&fault, 1));
      if (!with) return std::vector<diagnose::FaultClass>();
      faulty.push_back(*std::move(with));
    }
    return diagnose::find_fault_classes(faulty);
  };
  options.max_places = std::max<std::size_t>(12, options.max_places / boxes);
  options.neighbours = [&](const std::string& part) { return neighbours_of(machine, part); };
  options.on_step = [&](const std::string& what) { progress.step(what); };
  auto diagnosis = diagnose::diagnose(tables.evidence, classes_for(tables, runs.software()), predict, options);
  if (!diagnosis) return tl::unexpected(diagnosis.error());
  return Diagnosed{runs.software(), *std::move(diagnosis), {}, {}};
}

/// What tells the first suspect of a diagnosis from others.
std::optional<diagnose::NextTest> next_test_of(const diagnose::Diagnosis& diagnosis, const Topology& machine,
                                               DiagnosisRuns& runs) {
  const bool is_large = machine.rank_count() > max_simulated_ranks;
  const diagnose::Predict predict = [&](const diagnose::Question& question, std::span<const diagnose::Fault> faults,
                                        std::span<const Bytes> sizes) {
    return is_large ? runs.estimate(question, faults, sizes) : runs.predict(question, faults, sizes);
  };
  return next_test_for(machine, diagnosis, predict, is_large);
}

}  // namespace

std::size_t DiagnosisTables::rows() const {
  std::size_t count = 0;
  for (const diagnose::Evidence& each : evidence) count += each.points.size();
  return count;
}

OrStop<Topology> machine_with_ranks(const Topology& machine, const std::string& ranks, const std::string& file) {
  if (ranks.empty()) return machine;
  const auto nodes = find_rank_nodes(machine, ranks);
  if (!nodes) return usage({nodes.error().code, file + "@: " + nodes.error().message, nodes.error().help});
  auto tested = with_ranks(machine, *nodes);
  if (!tested) return usage(tested.error());
  return *std::move(tested);
}

OrStop<void> DiagnosisTables::add(const Topology& machine, const compare::Measurements& table, const std::string& ranks,
                                  const std::string& usual_algorithm) {
  const auto tested_there = machine_with_ranks(machine, ranks, table.file);
  if (!tested_there) return tl::unexpected(tested_there.error());
  for (const auto& [members, part] : by_members(table)) {
    std::string of_part = ranks;
    if (!members.empty()) {
      const auto names = names_of(*tested_there, members, table.file);
      if (!names) return tl::unexpected(names.error());
      of_part = *names;
    }
    const auto of_members = machine_with_ranks(machine, of_part, table.file);
    if (!of_members) return tl::unexpected(of_members.error());
    if (auto added = add_series(*this, part, *of_members, of_part, usual_algorithm); !added) {
      return tl::unexpected(added.error());
    }
  }
  return {};
}

Result<Diagnosed> diagnose_tables(const Console& console, const Topology& machine, const DiagnosisTables& tables,
                                  const std::shared_ptr<const forecast::Software>& software) {
  auto fitting = runs_that_fit(machine, tables, software);
  if (!fitting) return tl::unexpected(fitting.error());
  Progress progress(console, "suspecting", 0);
  std::optional<Diagnosed> best;
  DiagnosisRuns* of_best = nullptr;
  for (const auto& runs : *fitting) {
    auto diagnosed = diagnose_as_started(*runs, machine, tables, progress);
    if (!diagnosed) return tl::unexpected(diagnosed.error());
    // The launch of the profile is that of most runs.
    constexpr double prior_of_other = 0.2;
    if (runs->software() != software) diagnosed->diagnosis.log_evidence += std::log(prior_of_other);
    if (best && best->diagnosis.log_evidence >= diagnosed->diagnosis.log_evidence) continue;
    best = *std::move(diagnosed);
    of_best = runs.get();
  }
  if (best->software != software) {
    console.note(
        fmt::format("calls start as of {}, which fits better than {}", best->software->shown, software->shown));
  }
  best->too_fast = find_too_fast(tables, *of_best);
  best->next_test = next_test_of(best->diagnosis, machine, *of_best);
  return *std::move(best);
}

}  // namespace espalier::cli
