#include "cli/pages/results_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/flags/inputs.h"
#include "cli/pages/comparison_tables.h"
#include "cli/pages/sweep_results.h"
#include "compare/critical_chain.h"
#include "compare/overlay_svg.h"
#include "report/document_tables.h"
#include "report/html_text.h"
#include "schedule/collective.h"
#include "sweep/row_text.h"

namespace espalier::cli {
namespace {

using report::ReportTable;

constexpr std::string_view timeline_mark = "\"espalier_timeline\"", document_mark = "\"espalier/";

/// Whether a JSON text is a document of --json rather than a timeline: the first mark decides.
bool is_document(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' && text.find(document_mark) < text.find(timeline_mark);
}

const compare::Measurements* rows_of(const ResultFile& file) {
  return file.run ? std::get_if<compare::Measurements>(&*file.run) : nullptr;
}
const Timeline* timeline_of(const ResultFile& file) { return file.run ? std::get_if<Timeline>(&*file.run) : nullptr; }

bool is_prediction(std::string_view origin) { return origin.starts_with("simulation"); }

void begin_at_zero(Timeline& timeline) {
  if (timeline.spans.empty()) return;
  const Picoseconds begin = compare::extent_of(timeline).begin;
  for (Span& span : timeline.spans) {
    span.begin = span.begin - begin;
    span.end = span.end - begin;
  }
}

/// The rows of one collective on so many ranks, of all files.
struct RowGroup {
  std::string collective;
  std::uint32_t ranks = 0;
  std::string topology;  ///< Where all that say it agree.
  report::BandwidthCurves curves;
  ReportTable times;
};

/// The bound of a file, as bus bandwidth; 0 where it says none.
double bound_in(const ResultFile& file) {
  if (!file.document) return file.bound;
  const auto bound = file.document->find("bound");
  if (bound == file.document->end() || !bound->is_object()) return 0;
  const auto rate = bound->find("busbw");
  return rate != bound->end() && rate->is_number() ? rate->get<double>() : 0;
}

/// A text of an object; empty where it has none of that name.
std::string text_in(const nlohmann::ordered_json& object, const char* key) {
  const auto place = object.find(key);
  return place != object.end() && place->is_string() ? place->get<std::string>() : std::string();
}

void add_crossovers(std::vector<report::CrossoverAt>& crossovers, const ResultFile& file) {
  if (!file.document || !file.document->contains("crossovers")) return;
  for (const auto& crossover : (*file.document)["crossovers"]) {
    if (!crossover.is_object() || !crossover.contains("size") || !crossover["size"].is_number_integer()) continue;
    crossovers.push_back(
        {text_in(crossover, "from"), text_in(crossover, "to"), {crossover["size"].get<std::int64_t>()}});
  }
}

std::string group_title(const RowGroup& group) {
  std::string title = group.collective.empty() ? "a collective that no file names" : group.collective;
  if (!group.topology.empty()) title += " on " + group.topology;
  if (group.ranks > 0) title += ", " + counted(group.ranks, "rank");
  return title;
}

using Members = std::vector<std::pair<const ResultFile*, compare::Measurements>>;

/// Which of the members a curve is of: its machine, or its file where several are of one machine, or none is named.
std::string source_of(const compare::Measurements& rows, const Members& members) {
  const auto is_on = [&](const auto& member) { return member.second.topology == rows.topology; };
  const auto alike = std::ranges::count_if(members, is_on);
  const bool are_all = alike == static_cast<std::ptrdiff_t>(members.size());
  if (rows.topology.empty() || (alike > 1 && are_all)) return "in " + rows.file;
  return "on " + rows.topology + (alike > 1 ? " in " + rows.file : "");
}

/// The bound of each member, as bus bandwidth; 0 where none is known. What was measured has that of the prediction for
/// its machine, or the only one there is.
std::vector<double> bounds_of(const Members& members) {
  std::vector<double> bounds;
  std::set<double> unlike;
  std::map<std::string, double> by_topology;
  for (const auto& [file, rows] : members) {
    bounds.push_back(bound_in(*file));
    if (bounds.back() <= 0) continue;
    unlike.insert(bounds.back());
    by_topology.emplace(rows.topology, bounds.back());
  }
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (bounds[i] > 0) continue;
    const auto same = by_topology.find(members[i].second.topology);
    if (same != by_topology.end()) {
      bounds[i] = same->second;
    } else if (unlike.size() == 1) {
      bounds[i] = *unlike.begin();
    }
  }
  return bounds;
}

/// The curves and times of one member.
void add_member(RowGroup& group, const ResultFile& file, const compare::Measurements& rows, const std::string& source,
                double bound) {
  const bool predicts = is_prediction(rows.origin);
  auto& curves = predicts ? group.curves.predicted : group.curves.measured;
  const std::size_t first = curves.size();
  add_curves(curves, rows, source);
  report::Curve bounded;
  bounded.bound = bound;
  for (std::size_t i = first; i < curves.size(); ++i) {
    curves[i].bound = bound;
    curves[i].bound_of = rows.topology.empty() ? rows.file : rows.topology;
  }
  if (predicts && group.curves.crossovers.empty()) add_crossovers(group.curves.crossovers, file);
  for (const compare::Measurement& row : rows.rows) {
    const report::CurvePoint point{row.size, row.seconds, {}};
    const double rate = group.curves.rate(point);
    group.times.rows.push_back(
        {std::to_string(row.size.count), rows.file, row.algorithm, row.planner == row.algorithm ? "" : row.planner,
         fmt::format("{:.2f}", row.seconds * 1e6), fmt::format("{:.2f}", rate / 1e9),
         bound > 0 ? fmt::format("{:.1f}", 100 * group.curves.part_of_bound(bounded, point)) : "-"});
  }
}

/// The factor between the bus and algorithm bandwidths that a file prints, by its largest row, whose figures have most
/// digits; nothing where no file prints them.
std::optional<double> printed_factor(const Members& members) {
  const compare::Measurement* largest = nullptr;
  for (const auto& [file, rows] : members) {
    for (const compare::Measurement& row : rows.rows) {
      if (row.busbw && row.size.count > 0 && (largest == nullptr || row.size > largest->size)) largest = &row;
    }
  }
  if (largest == nullptr) return std::nullopt;
  const double factor = *largest->busbw * largest->seconds / static_cast<double>(largest->size.count);
  constexpr double most = 2.005;  // 2 (n - 1) / n, and what rounding adds.
  return factor <= most ? std::optional(factor) : std::nullopt;
}

/// The files' rows by collective and ranks, in the order in which they come.
std::vector<RowGroup> groups_of(const std::vector<ResultFile>& files) {
  std::vector<RowGroup> groups;
  std::map<std::size_t, Members> members;
  for (const ResultFile& file : files) {
    const compare::Measurements* const rows = rows_of(file);
    if (rows == nullptr) continue;
    for (const compare::Measurement& row : rows->rows) {
      auto group = std::ranges::find_if(groups, [&](const RowGroup& known) {
        return known.collective == row.collective && known.ranks == row.ranks;
      });
      if (group == groups.end()) group = groups.insert(group, {row.collective, row.ranks, rows->topology, {}, {}});
      if (group->topology != rows->topology) group->topology.clear();
      auto& of_group = members[static_cast<std::size_t>(group - groups.begin())];
      if (of_group.empty() || of_group.back().first != &file) {
        of_group.emplace_back(&file, *rows);
        of_group.back().second.rows.clear();
      }
      of_group.back().second.rows.push_back(row);
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    RowGroup& group = groups[i];
    const auto kind = parse_collective(group.collective);
    const auto collective = kind && group.ranks > 0 ? make_collective(*kind, group.ranks, std::nullopt)
                                                    : Result<Collective>(tl::unexpected(Error{}));
    group.curves.title = group_title(group);
    std::vector<double> bounds(members[i].size());
    if (collective) {
      group.curves.factor = to_double(collective->busbw_factor());
      group.curves.collective = *collective;
      bounds = bounds_of(members[i]);
    } else if (const auto factor = printed_factor(members[i])) {
      group.curves.factor = *factor;
    } else {
      group.curves.measure = "algorithm bandwidth";
    }
    group.times = {i == 0 ? "times" : fmt::format("times-{}", i + 1),
                   "Times and rates, " + group.curves.title,
                   {{"size (B)", true},
                    {"file"},
                    {"algorithm"},
                    {"by"},
                    {"time (us)", true},
                    {group.curves.measure == "bus bandwidth" ? "busbw (GB/s)" : "algbw (GB/s)", true},
                    {"of bound (%)", true}},
                   {}};
    for (std::size_t m = 0; m < members[i].size(); ++m) {
      const auto& [file, rows] = members[i][m];
      add_member(group, *file, rows, source_of(rows, members[i]), bounds[m]);
    }
  }
  return groups;
}

/// The best point of the curves that have this bound: "ring on dgx1v at 1 GiB", its rate, and which part it is.
std::string best_text(const RowGroup& group, const std::optional<double>& of_bound) {
  const report::Curve* best_curve = nullptr;
  const report::CurvePoint* best = nullptr;
  for (const auto* curves : {&group.curves.predicted, &group.curves.measured}) {
    for (const report::Curve& curve : *curves) {
      if (of_bound && curve.bound != *of_bound) continue;
      for (const report::CurvePoint& point : curve.points) {
        if (best != nullptr && group.curves.rate(point) <= group.curves.rate(*best)) continue;
        best = &point;
        best_curve = &curve;
      }
    }
  }
  const double rate = group.curves.rate(*best);
  const std::string text = fmt::format("{:.2f} GB/s {} at most, {} at {}", rate / 1e9, group.curves.measure,
                                       best_curve->name, report::size_text(best->size));
  if (best_curve->bound == 0) return text + ".";
  return text + fmt::format(", {:.1f} % of the {:.2f} GB/s that no schedule can exceed{}.",
                            100 * group.curves.part_of_bound(*best_curve, *best), best_curve->bound / 1e9,
                            of_bound ? " there" : "");
}

/// "all_reduce on dgx1v, 8 ranks: 137.95 GB/s bus bandwidth at most, ring at 1 GiB, 95.8 % of ..."; of machines with
/// bounds of their own a sentence each.
std::vector<std::string> best_sentences(const RowGroup& group) {
  const auto bounds = report::bound_lines(group.curves);
  if (bounds.size() < 2) return {group.curves.title + ": " + best_text(group, std::nullopt)};
  std::vector<std::string> sentences;
  for (const report::BoundLine& bound : bounds) {
    sentences.push_back(group.curves.title + ": " + best_text(group, bound.rate));
  }
  return sentences;
}

/// Each measurement against the first prediction that has rows of its kind.
void compare_rows(report::ResultsPage& page, const std::vector<ResultFile>& files) {
  for (const ResultFile& measured : files) {
    const compare::Measurements* const b = rows_of(measured);
    if (b == nullptr || is_prediction(b->origin)) continue;
    for (const ResultFile& predicted : files) {
      const compare::Measurements* const a = rows_of(predicted);
      if (a == nullptr || !is_prediction(a->origin)) continue;
      const auto comparison = compare::compare_results(*a, *b);
      if (!comparison) continue;
      page.verdict.push_back(errors_sentence(*comparison, measured.name));
      page.compared.push_back(sizes_table(
          *comparison, {fmt::format("{} against {}", predicted.name, measured.name), "predicted", "measured"}));
      break;
    }
  }
}

/// The timelines of simulations first.
std::vector<const ResultFile*> timelines_in(const std::vector<ResultFile>& files) {
  std::vector<const ResultFile*> found;
  for (const ResultFile& file : files) {
    if (timeline_of(file) != nullptr) found.push_back(&file);
  }
  std::ranges::stable_partition(found,
                                [](const ResultFile* file) { return is_prediction(timeline_of(*file)->origin); });
  return found;
}

report::DrawnTimeline draw_timeline(const Timeline& timeline, const std::string& file) {
  report::DrawnTimeline drawn{fmt::format("{} ({}, {})", timeline.title, timeline.origin, file), &timeline, {}};
  for (const compare::ChainStep& step : compare::find_critical_chain(timeline)) {
    const Span& span = timeline.spans[step.span];
    drawn.path.push_back({step.begin, step.until, span.phase == Phase::wire, span.lane, span.transfer, span.chunk});
  }
  return drawn;
}

Result<void> add_timelines(report::ResultsPage& page, const std::vector<ResultFile>& files) {
  const std::vector<const ResultFile*> found = timelines_in(files);
  for (const ResultFile* file : found) {
    const Timeline& timeline = *timeline_of(*file);
    page.verdict.push_back(fmt::format("{}: {} took {} ({}).", file->name, timeline.title,
                                       format_duration(compare::extent_of(timeline).length()), timeline.origin));
  }
  if (found.empty()) return {};
  page.timeline = draw_timeline(*timeline_of(*found[0]), found[0]->name);
  if (found.size() < 2) return {};
  const Timeline &a = *timeline_of(*found[0]), &b = *timeline_of(*found[1]);
  const std::string against = fmt::format("{} against {}", found[0]->name, found[1]->name);
  std::ostringstream drawing;
  const auto drawn = compare::write_overlay_svg(drawing, a, b, {found[0]->name, found[1]->name});
  if (!drawn) return drawn;
  page.overlay = drawing.str();
  const compare::TimelineComparison comparison = compare::compare_timelines(a, b);
  page.verdict.push_back(
      fmt::format("{}: the time of the whole is off by {:+.1f} %, half of the transfers by at most {:.1f} %.", against,
                  100 * comparison.total.error(), 100 * comparison.transfers.errors.median));
  page.compared.push_back(busy_links_table(comparison, {"Busy times of links, " + against, "first", "second"}));
  page.compared.push_back(ranks_table(
      comparison, {"When ranks were done, and for how long they were busy, " + against, "first", "second"}));
  for (std::size_t i = 2; i < found.size(); ++i) {
    page.missing.push_back(found[i]->name + " is not drawn: a page shows two timelines over each other.");
  }
  return {};
}

/// What `compare --json` found, as a sentence.
std::string comparison_sentence(const nlohmann::ordered_json& document, const std::string& name) {
  const auto number = [&](const char* object, const char* key) -> std::optional<double> {
    const auto place = document.find(object);
    if (place == document.end() || !place->is_object() || !place->contains(key) || !(*place)[key].is_number())
      return {};
    return (*place)[key].get<double>();
  };
  const auto file_of = [&](const char* side) {
    return document.contains(side) && document[side].is_object() ? text_in(document[side], "file") : std::string(side);
  };
  const auto error = number("errors", "median") ? number("errors", "median") : number("total", "error");
  if (!error) return {};
  return fmt::format("{}: {} against {}, {} {:.1f} %.", name, file_of("a"), file_of("b"),
                     number("errors", "median") ? "median error" : "error of the whole", 100 * *error);
}

void add_documents(report::ResultsPage& page, const std::vector<ResultFile>& files) {
  for (const ResultFile& file : files) {
    if (!file.document) continue;
    if (text_in(*file.document, "schema") == "espalier/compare/1") {
      if (std::string sentence = comparison_sentence(*file.document, file.name); !sentence.empty()) {
        page.verdict.push_back(std::move(sentence));
      }
    }
    for (ReportTable& table : report::tables_of(*file.document, file.name)) {
      if (file.run && table.name == "results") continue;  // They are among the times.
      page.documents.push_back(std::move(table));
    }
  }
}

std::string kind_of(const ResultFile& file) {
  if (!file.kind.empty()) return file.kind;
  if (timeline_of(file) != nullptr) return "timeline";
  return file.document ? text_in(*file.document, "schema") : "table";
}

ReportTable files_table(const std::vector<ResultFile>& files) {
  ReportTable table{"files", "What the page was made of", {{"file"}, {"kind"}, {"from"}, {"of"}}, {}};
  for (const ResultFile& file : files) {
    const Timeline* const timeline = timeline_of(file);
    const compare::Measurements* const rows = rows_of(file);
    table.rows.push_back({file.name, kind_of(file),
                          timeline != nullptr ? timeline->origin
                          : rows != nullptr   ? rows->origin
                                              : "",
                          timeline != nullptr ? timeline->title
                          : rows != nullptr   ? rows->topology
                                              : ""});
  }
  return table;
}

/// Whether the collective that a file was read with is in none of its own words.
bool needs_collective(const std::string& text, const std::string& path, const compare::RunFile& as_told) {
  const auto* const told = std::get_if<compare::Measurements>(&as_told);
  const auto alone = compare::read_run(text, path, compare::NcclTestsHints{});
  const auto* const own = alone ? std::get_if<compare::Measurements>(&*alone) : nullptr;
  return told != nullptr && own != nullptr && told->rows != own->rows;
}

}  // namespace

bool holds_results(std::string_view text) {
  if (text.starts_with("ESPTIME") || sweep::begins_as_rows(text)) return true;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  constexpr std::string_view plan_mark = "\"espalier_schedule\"";
  if (text[first] == '{') {
    const std::size_t mark = std::min(text.find(document_mark), text.find(timeline_mark));
    return mark != std::string_view::npos ? mark < text.find(plan_mark)
                                          : text.find("\"nccl_version\"") != std::string_view::npos ||
                                                text.find("\"out_of_place\"") != std::string_view::npos;
  }
  return !text.substr(first).starts_with("espalier:") && text.find("\nespalier:") == std::string_view::npos &&
         text.find("busbw") != std::string_view::npos && text.find("algbw") != std::string_view::npos;
}

OrStop<std::vector<ResultFile>> load_results(const Console& console, const std::vector<std::string>& paths,
                                             const std::string& collective) {
  if (const auto known = parse_collective(collective); !collective.empty() && !known) {
    return usage({known.error().code, "--collective: " + known.error().message, known.error().help});
  }
  bool is_needed = collective.empty();
  std::vector<ResultFile> files;
  for (const std::string& path : paths) {
    const auto text = read_whole(console, path);
    if (!text) return stop(text.error());
    const std::string name = path == "-" ? "standard input" : std::filesystem::path(path).filename().string();
    if (is_of_sweep(*text)) {
      auto parts = read_sweep_results(*text, name);
      if (!parts) return stop(parts.error());
      std::ranges::move(*parts, std::back_inserter(files));
      continue;
    }
    ResultFile file{.name = name};
    if (is_document(*text)) {
      auto document = report::read_document(*text, path);
      if (!document) return stop(document.error());
      file.document = std::move(*document);
    }
    if (!file.document || text_in(*file.document, "schema").starts_with("espalier/results/")) {
      auto run = compare::read_run(*text, path, compare::NcclTestsHints{collective});
      if (!run) return stop(run.error());
      is_needed = is_needed || needs_collective(*text, path, *run);
      if (auto* const timeline = std::get_if<Timeline>(&*run)) begin_at_zero(*timeline);
      if (auto* const rows = std::get_if<compare::Measurements>(&*run)) {
        rows->file = file.name;
        for (const std::string& warning : rows->warnings) console.warn(warning);
      }
      file.run = std::move(*run);
    }
    files.push_back(std::move(file));
  }
  if (is_needed) return files;
  return usage({ErrorCode::invalid_input, "--collective: every file says itself what it is of", "leave it out"});
}

Result<report::ResultsPage> make_results_page(const std::vector<ResultFile>& files) {
  report::ResultsPage page;
  std::vector<RowGroup> groups = groups_of(files);
  for (const RowGroup& group : groups) {
    std::ranges::move(best_sentences(group), std::back_inserter(page.verdict));
  }
  compare_rows(page, files);
  if (auto added = add_timelines(page, files); !added) return tl::unexpected(added.error());
  add_documents(page, files);
  page.title = groups.size() == 1 ? groups.front().curves.title
               : page.timeline    ? page.timeline->timeline->title
                                  : counted(files.size(), "file") + " with results";
  for (RowGroup& group : groups) {
    page.bandwidths.push_back(std::move(group.curves));
    page.times.push_back(std::move(group.times));
  }
  if (page.verdict.empty()) page.verdict.push_back("The files hold no times; what they say is below.");
  page.missing.insert(page.missing.begin(),
                      "Without the machine the network, its loads and the cut of the bound are not drawn, and where "
                      "rates came from is not "
                      "known: espalier report TOPOLOGY COLLECTIVE --measured FILE has them.");
  if (page.timeline && page.timeline->timeline->link_names.empty()) {
    page.missing.push_back("The timeline is of a run, which does not see links.");
  }
  for (const ResultFile& file : files) {
    if (!file.note.empty()) page.missing.push_back(file.note);
  }
  page.files.push_back(files_table(files));
  page.maker = "Made by espalier " ESPALIER_VERSION ", in one file that needs no network.";
  return page;
}

nlohmann::ordered_json results_page_json(const report::ResultsPage& page, const std::vector<ResultFile>& files) {
  nlohmann::ordered_json document{{"schema", "espalier/report/1"}, {"title", page.title}};
  document["verdict"] = page.verdict;
  document["missing"] = page.missing;
  document["files"] = nlohmann::ordered_json::array();
  for (const ResultFile& file : files) document["files"].push_back({{"file", file.name}, {"kind", kind_of(file)}});
  return document;
}

}  // namespace espalier::cli
