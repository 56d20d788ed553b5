#include "cli/pages/sweep_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "base/counted.h"
#include "base/format_units.h"
#include "base/rational.h"
#include "schedule/collective.h"
#include "sweep/row_text.h"

namespace espalier::cli {
namespace {

/// "dgx1v without gpu0-gpu1, nccl-volta": what rows are of beside collective, algorithm and size.
std::string circumstances_of(const sweep::Key& key) {
  std::string text = key.topology;
  const auto add = [&](std::string_view before, const std::string& what) {
    if (!what.empty()) text += std::string(before) + what;
  };
  add(" ", key.parameters);
  add(" without ", key.failure);
  add(", ", key.profile);
  add(", matrix ", key.matrix);
  add(", root ", key.root);
  add(", chunks of ", key.chunk ? format_size(*key.chunk) : "");
  add(", model ", key.model == "link" ? "" : key.model);
  add(", ", key.protocol == "none" ? "" : key.protocol);
  add(", copy engines ", key.copy_engines == 0 ? "" : std::to_string(key.copy_engines));
  add(", jitter ", key.jitter_ppm == 0 ? "" : fmt::format("{} %, seed {}", key.jitter_ppm / 1e4, key.seed));
  return text;
}

/// Of "p/q" or "p"; 0 of anything else.
double number_of(std::string_view text) {
  double over = 0, under = 1;
  const char* const end = text.data() + text.size();
  const auto [bar, status] = std::from_chars(text.data(), end, over);
  if (status != std::errc()) return 0;
  if (bar != end && std::from_chars(bar + 1, end, under).ec != std::errc()) return 0;
  return under > 0 ? over / under : 0;
}

/// The bound of a row as bus bandwidth; 0 without one. The factor from algbw is the row's own: a matrix has another.
double bound_of(const sweep::Row& row) {
  const double time_per_byte = number_of(row.figures->bound);
  if (time_per_byte <= 0 || row.figures->algbw <= 0) return 0;
  return row.figures->busbw / row.figures->algbw / time_per_byte;
}

compare::Measurement measurement_of(const sweep::Row& row) {
  compare::Measurement measurement;
  measurement.collective = row.key.collective;
  measurement.ranks = static_cast<std::uint32_t>(row.figures->ranks);
  measurement.root = row.key.root;
  measurement.size = row.key.size;
  measurement.type = row.key.type;
  measurement.algorithm = row.key.algorithm;
  measurement.planner = row.figures->planner;
  measurement.chunk = row.figures->chunk;
  measurement.seconds = row.figures->elapsed.seconds();
  return measurement;
}

/// The rows in the document of `sweep --json`, a line each, as JSON lines.
std::string lines_of_document(std::string_view text) {
  std::string lines;
  for (std::size_t begin = text.find('\n'); begin != std::string_view::npos && begin + 1 < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin + 1), text.size());
    std::string_view line = text.substr(begin + 1, end - begin - 1);
    begin = end;
    if (!line.starts_with('{')) continue;
    if (line.ends_with(',')) line.remove_suffix(1);
    lines += std::string(line) + "\n";
  }
  return lines;
}

bool is_sweep_document(std::string_view text) {
  return text.starts_with(fmt::format("{{\n\"schema\": \"{}\",\n\"rows\": [", sweep::schema));
}

}  // namespace

bool is_of_sweep(std::string_view text) { return sweep::begins_as_rows(text) || is_sweep_document(text); }

Result<std::vector<ResultFile>> read_sweep_results(std::string_view text, const std::string& name) {
  const std::string lines = is_sweep_document(text) ? lines_of_document(text) : std::string(text);
  const auto format = lines.starts_with('{') ? sweep::RowFormat::json_lines : sweep::RowFormat::csv;
  const auto read = sweep::read_rows(lines, format, name);
  if (!read) return tl::unexpected(read.error());
  std::vector<ResultFile> files;
  std::map<std::tuple<std::string, std::string, std::string, std::uint64_t>, std::size_t> places;
  std::size_t failed = 0;
  std::string why;
  for (const sweep::Row& row : read->rows) {
    if (!row.figures) {
      if (row.is_unplanned()) continue;
      if (++failed == 1) why = sweep::describe(row.key) + ": " + row.reason;
      continue;
    }
    const std::string circumstances = circumstances_of(row.key);
    const auto [place, is_new] =
        places.emplace(std::tuple(row.key.collective, circumstances, row.key.type, row.figures->ranks), files.size());
    if (is_new) {
      compare::Measurements rows;
      rows.file = name;
      rows.origin = "simulation";
      rows.topology = circumstances;
      files.push_back(
          {.name = name, .run = std::move(rows), .bound = bound_of(row), .kind = std::string(sweep::schema)});
    }
    std::get<compare::Measurements>(*files[place->second].run).rows.push_back(measurement_of(row));
  }
  if (files.empty()) files.push_back({.name = name, .kind = std::string(sweep::schema)});
  if (failed > 0) {
    files.front().note = fmt::format("{} of {} gave nothing; the first: {}.", counted(failed, "row"), name, why);
  }
  return files;
}

}  // namespace espalier::cli
