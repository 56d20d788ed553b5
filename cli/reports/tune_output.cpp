#include "cli/reports/tune_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/output/table.h"
#include "cli/reports/describe_bound.h"
#include "planners/tuning/nccl_likeness.h"

namespace espalier::cli {
namespace {

std::string header_text(const Tuning& tuning) {
  std::string text = fmt::format("# {}  {}  {}  {}", tuning.topology->name(), to_string(tuning.collective.kind),
                                 counted(tuning.collective.rank_count, "rank"), tuning.type);
  if (!tuning.collective.root.is_none()) text += "  root " + tuning.topology->rank_name(tuning.collective.root);
  if (!tuning.profile.empty()) text += "  profile " + tuning.profile;
  if (const auto algbw = algbw_of(tuning.bound.time_per_byte)) {
    text += fmt::format("\n# bound: busbw {} GB/s{}",
                        gigabytes_per_second(*algbw * to_double(tuning.collective.busbw_factor())),
                        floor_mark(tuning.bound));
  }
  return text + "\n#\n";
}

std::string exact_or_rounded(Bytes size) {
  const std::string exact = format_size(size);
  return exact.ends_with(" B") ? format_rounded_size(size) : exact;
}

std::string span(const std::string& from, const std::string& to) { return from == to ? from : from + " - " + to; }

std::string microseconds(const planners::TunedSize& point) {
  return fmt::format("{:.2f}", static_cast<double>(point.run().elapsed.count) / 1e6);
}

/// The smallest and the largest margin of a region.
struct Margins {
  planners::Margin least;
  planners::Margin most;
};

Margins margins_of(const planners::Region& region) {
  Margins margins{planners::margin_of(region.sizes.front()), planners::margin_of(region.sizes.front())};
  for (const planners::TunedSize& point : region.sizes) {
    const planners::Margin margin = planners::margin_of(point);
    if (margin.factor < margins.least.factor) margins.least = margin;
    if (margin.factor > margins.most.factor) margins.most = margin;
  }
  return margins;
}

std::string margin_text(const planners::Margin& margin) {
  if (margin.second == nullptr) return "-";
  return fmt::format("{}{:.2f}", margin.at_least ? ">" : "", margin.factor);
}

/// The other planners that come second somewhere in a region, in order of size.
std::string seconds_text(const planners::Region& region) {
  std::vector<std::string> names;
  for (const planners::TunedSize& point : region.sizes) {
    const planners::Margin margin = planners::margin_of(point);
    if (margin.second == nullptr || std::ranges::find(names, margin.second->planner) != names.end()) continue;
    names.push_back(margin.second->planner);
  }
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", "));
}

/// Why each planner that is taken somewhere is like the algorithm of NCCL that the table names.
std::string likeness_text(const Tuning& tuning) {
  std::string text;
  std::vector<const planners::Candidate*> told;
  for (const planners::Region& region : tuning.regions) {
    if (std::ranges::find(told, region.taken) != told.end()) continue;
    told.push_back(region.taken);
    const planners::NcclLikeness likeness = planners::nearest_nccl(region.taken->schedule, *tuning.topology);
    if (likeness.algorithm == "-") return "# " + likeness.why + "\n";
    text += fmt::format("# {} is like NCCL's {}: {}\n", region.taken->planner, likeness.algorithm, likeness.why);
  }
  return text;
}

nlohmann::ordered_json point_json(const planners::TunedSize& point, const Tuning& tuning, const std::string& planner) {
  const RunReport& run = point.run();
  const planners::Margin margin = planners::margin_of(point);
  nlohmann::ordered_json document = {{"size", point.size.count},
                                     {"time", run.elapsed.seconds()},
                                     {"algbw", run.algbw()},
                                     {"busbw", run.busbw(tuning.collective)},
                                     {"of_bound", run.of_bound(tuning.bound.time_per_byte, tuning.collective)},
                                     {"chunk", run.chunk.count},
                                     {"ahead", run.ahead}};
  if (!tuning.errors.by_size.empty()) {
    document["range"] = range_json(tuning.errors.at(0, planner), run.elapsed.seconds());
  }
  if (margin.second != nullptr) {
    document["second"] = margin.second->planner;
    document["ahead_of_second"] = margin.factor;
    document["ahead_of_second_is_at_least"] = margin.at_least;
  }
  return document;
}

}  // namespace

Table tuning_table(const Tuning& tuning, bool has_ranges) {
  Table table;
  table.add_column("from");
  table.add_column("to");
  table.add_column("by", "", Table::Align::left);
  table.add_column("time", "(us)");
  table.add_column("busbw", "(GB/s)");
  table.add_column("chunk");
  table.add_column("ahead", "(x)");
  table.add_column("of", "", Table::Align::left);
  table.add_column("NCCL", "", Table::Align::left);
  has_ranges = has_ranges && !tuning.errors.by_size.empty();
  if (has_ranges) table.add_column("outside", "", Table::Align::left);
  for (const planners::Region& region : tuning.regions) {
    const planners::TunedSize& first = region.sizes.front();
    const planners::TunedSize& last = region.sizes.back();
    const Margins margins = margins_of(region);
    const auto busbw = [&](const planners::TunedSize& point) {
      return fmt::format("{:.2f}", point.run().busbw(tuning.collective) / 1e9);
    };
    std::vector<std::string> cells = {exact_or_rounded(first.size),
                                      exact_or_rounded(last.size),
                                      region.taken->planner,
                                      span(microseconds(first), microseconds(last)),
                                      span(busbw(first), busbw(last)),
                                      span(format_size(first.run().chunk), format_size(last.run().chunk)),
                                      span(margin_text(margins.least), margin_text(margins.most)),
                                      seconds_text(region),
                                      planners::nearest_nccl(region.taken->schedule, *tuning.topology).algorithm};
    if (has_ranges) cells.push_back(tuning.errors.at(0, region.taken->planner).outside);
    table.add_row(std::move(cells));
  }
  return table;
}

std::string tuning_text(const Tuning& tuning) {
  std::string text = header_text(tuning) + tuning_table(tuning, false).text() + "#\n" + likeness_text(tuning);
  std::vector<std::string> taken;
  for (const planners::Region& region : tuning.regions) {
    if (std::ranges::find(taken, region.taken->planner) == taken.end()) taken.push_back(region.taken->planner);
  }
  text += errors_text(tuning.errors, taken);
  for (const planners::Refusal& refusal : tuning.refused) {
    text += fmt::format("# no {}: {}\n", refusal.planner, refusal.error.message);
  }
  return text;
}

nlohmann::ordered_json tuning_json(const Tuning& tuning) {
  nlohmann::ordered_json document = {{"schema", "espalier/tune/1"},
                                     {"topology", tuning.topology->name()},
                                     {"collective", to_string(tuning.collective.kind)},
                                     {"ranks", tuning.collective.rank_count}};
  if (!tuning.collective.root.is_none()) document["root"] = tuning.topology->rank_name(tuning.collective.root);
  if (!tuning.profile.empty()) document["profile"] = tuning.profile;
  document["bound"] = bound_json(tuning.bound, tuning.collective, *tuning.topology);
  document["regions"] = nlohmann::ordered_json::array();
  for (const planners::Region& region : tuning.regions) {
    const Margins margins = margins_of(region);
    const planners::NcclLikeness likeness = planners::nearest_nccl(region.taken->schedule, *tuning.topology);
    document["regions"].push_back({{"algorithm", region.taken->planner},
                                   {"from", point_json(region.sizes.front(), tuning, region.taken->planner)},
                                   {"to", point_json(region.sizes.back(), tuning, region.taken->planner)},
                                   {"sizes_tried", region.sizes.size()},
                                   {"ahead_least", margins.least.factor},
                                   {"ahead_most", margins.most.factor},
                                   {"nccl", {{"algorithm", likeness.algorithm}, {"why", likeness.why}}}});
  }
  document["refused"] = nlohmann::ordered_json::array();
  for (const planners::Refusal& refusal : tuning.refused) {
    document["refused"].push_back({{"algorithm", refusal.planner}, {"reason", refusal.error.message}});
  }
  return document;
}

}  // namespace espalier::cli
