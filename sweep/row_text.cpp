#include "sweep/row_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <ostream>

#include "schedule/json/json_cursor.h"
#include "schedule/json/json_output.h"
#include "schedule/timeline/decimal_time.h"

namespace espalier::sweep {
namespace {

enum class CellKind : std::uint8_t { text, number };

struct Column {
  std::string_view name;
  CellKind kind;
};

/// In the order in which `cells_of` gives and `row_of` takes them.
constexpr std::array columns = {Column{"schema", CellKind::text},
                                Column{"topology", CellKind::text},
                                Column{"digest", CellKind::text},
                                Column{"parameters", CellKind::text},
                                Column{"profile", CellKind::text},
                                Column{"failure", CellKind::text},
                                Column{"alike", CellKind::number},
                                Column{"collective", CellKind::text},
                                Column{"root", CellKind::text},
                                Column{"type", CellKind::text},
                                Column{"algorithm", CellKind::text},
                                Column{"size", CellKind::number},
                                Column{"chunk", CellKind::number},
                                Column{"model", CellKind::text},
                                Column{"protocol", CellKind::text},
                                Column{"copy_engines", CellKind::number},
                                Column{"jitter_ppm", CellKind::number},
                                Column{"seed", CellKind::number},
                                Column{"status", CellKind::text},
                                Column{"ranks", CellKind::number},
                                Column{"planner", CellKind::text},
                                Column{"used_chunk", CellKind::number},
                                Column{"time_us", CellKind::number},
                                Column{"algbw", CellKind::number},
                                Column{"busbw", CellKind::number},
                                Column{"of_bound", CellKind::number},
                                Column{"bound", CellKind::text},
                                Column{"busiest", CellKind::text},
                                Column{"busiest_share", CellKind::number},
                                Column{"reason", CellKind::text},
                                Column{"planning_s", CellKind::number},
                                Column{"simulating_s", CellKind::number}};
constexpr std::size_t timing_columns = 2;
constexpr std::size_t figure_columns = 10;

using Cells = std::vector<std::string>;

std::size_t column_count(bool timings) { return columns.size() - (timings ? 0 : timing_columns); }

Cells cells_of(const Row& row, bool timings) {
  const Key& key = row.key;
  Cells cells = {std::string(schema),
                 key.topology,
                 key.digest,
                 key.parameters,
                 key.profile,
                 key.failure,
                 std::to_string(row.alike),
                 key.collective,
                 key.root,
                 key.type,
                 key.algorithm,
                 std::to_string(key.size.count),
                 key.chunk ? std::to_string(key.chunk->count) : "",
                 key.model,
                 key.protocol,
                 std::to_string(key.copy_engines),
                 std::to_string(key.jitter_ppm),
                 std::to_string(key.seed),
                 row.figures ? "ok" : "failed"};
  if (row.figures) {
    const Figures& of = *row.figures;
    const Cells figures = {std::to_string(of.ranks),
                           of.planner,
                           std::to_string(of.chunk.count),
                           format_microseconds(of.elapsed),
                           fmt::format("{}", of.algbw),
                           fmt::format("{}", of.busbw),
                           fmt::format("{}", of.of_bound),
                           of.bound,
                           of.busiest,
                           fmt::format("{}", of.busiest_share)};
    cells.insert(cells.end(), figures.begin(), figures.end());
  } else {
    cells.resize(cells.size() + figure_columns);
  }
  cells.push_back(row.reason);
  if (timings) {
    cells.push_back(row.timing ? fmt::format("{:.6f}", row.timing->planning) : "");
    cells.push_back(row.timing ? fmt::format("{:.6f}", row.timing->simulating) : "");
  }
  return cells;
}

/// Takes the cells of a line one after the other; remembers the first that does not say what it should.
class CellReader {
 public:
  explicit CellReader(const Cells& cells) : cells_(cells) {}

  [[nodiscard]] const std::string& wrong() const { return wrong_; }
  const std::string& take() { return cells_[next_++]; }

  template <class Whole>
  Whole take_whole(Whole least) {
    Whole value{};
    const std::string& cell = take();
    const auto [end, status] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (status != std::errc() || end != cell.data() + cell.size() || value < least) blame();
    return value;
  }

  double take_part() {
    double value = 0;
    const std::string& cell = take();
    const auto [end, status] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (status != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value) || value < 0) blame();
    return value;
  }

  Picoseconds take_time() {
    const auto time = parse_microseconds(take());
    if (!time || time->count < 0) blame();
    return time.value_or(Picoseconds{});
  }

  [[nodiscard]] bool next_is_empty() const { return cells_[next_].empty(); }
  void blame() {
    if (wrong_.empty()) wrong_ = fmt::format("'{}' is no {}", cells_[next_ - 1], columns[next_ - 1].name);
  }

 private:
  const Cells& cells_;
  std::size_t next_ = 0;
  std::string wrong_;
};

Key take_key(CellReader& reader, std::uint64_t& alike) {
  Key key;
  key.topology = reader.take();
  key.digest = reader.take();
  key.parameters = reader.take();
  key.profile = reader.take();
  key.failure = reader.take();
  alike = reader.take_whole<std::uint64_t>(1);
  key.collective = reader.take();
  key.root = reader.take();
  key.type = reader.take();
  key.algorithm = reader.take();
  key.size = {reader.take_whole<std::int64_t>(0)};
  if (reader.next_is_empty()) {
    reader.take();
  } else {
    key.chunk = Bytes{reader.take_whole<std::int64_t>(1)};
  }
  key.model = reader.take();
  key.protocol = reader.take();
  key.copy_engines = reader.take_whole<std::uint32_t>(0);
  key.jitter_ppm = reader.take_whole<std::int32_t>(0);
  key.seed = reader.take_whole<std::uint64_t>(0);
  return key;
}

Figures take_figures(CellReader& reader) {
  Figures figures;
  figures.ranks = reader.take_whole<std::uint64_t>(1);
  figures.planner = reader.take();
  figures.chunk = {reader.take_whole<std::int64_t>(0)};
  figures.elapsed = reader.take_time();
  figures.algbw = reader.take_part();
  figures.busbw = reader.take_part();
  figures.of_bound = reader.take_part();
  figures.bound = reader.take();
  figures.busiest = reader.take();
  figures.busiest_share = reader.take_part();
  return figures;
}

/// The inverse of cells_of; the text says what is wrong.
tl::expected<Row, std::string> row_of(const Cells& cells, bool timings) {
  CellReader reader(cells);
  if (reader.take() != schema) return tl::unexpected(fmt::format("the row is not of schema {}", schema));
  Row row;
  row.key = take_key(reader, row.alike);
  const std::string& status = reader.take();
  if (status == "ok") {
    row.figures = take_figures(reader);
  } else {
    if (status != "failed") reader.blame();
    for (std::size_t i = 0; i < figure_columns; ++i) {
      if (!reader.take().empty()) reader.blame();
    }
  }
  row.reason = reader.take();
  if (row.figures.has_value() != row.reason.empty()) reader.blame();
  if (timings) {
    const bool absent = reader.next_is_empty();
    Timing timing;
    for (double* seconds : {&timing.planning, &timing.simulating}) {
      if (absent) {
        if (!reader.take().empty()) reader.blame();
      } else {
        *seconds = reader.take_part();
      }
    }
    if (!absent) row.timing = timing;
  }
  if (!reader.wrong().empty()) return tl::unexpected(reader.wrong());
  return row;
}

// --- CSV (RFC 4180, lines end with LF)

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_line(const Cells& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_cell(cells[i]);
  return line + "\n";
}

/// The end of the line that begins at `begin`, behind its line break; nothing when it is cut off. A line break in
/// quotes does not end it.
std::optional<std::size_t> end_of_line(std::string_view all, std::size_t begin, RowFormat format) {
  bool quoted = false;
  for (std::size_t i = begin; i < all.size(); ++i) {
    if (all[i] == '"' && format == RowFormat::csv) quoted = !quoted;
    if (all[i] == '\n' && !quoted) return i + 1;
  }
  return std::nullopt;
}

/// The cells of a whole line, without its line break; nothing when quotes are not where they may be.
std::optional<Cells> split_csv(std::string_view line) {
  Cells cells;
  for (std::size_t at = 0;; ++at) {
    std::string cell;
    if (at < line.size() && line[at] == '"') {
      for (++at;; ++at) {
        if (at == line.size()) return std::nullopt;
        if (line[at] == '"') {
          if (at + 1 == line.size() || line[at + 1] != '"') break;
          ++at;
        }
        cell += line[at];
      }
      ++at;
    } else {
      const std::size_t end = std::min(line.find(',', at), line.size());
      cell = line.substr(at, end - at);
      if (cell.find('"') != std::string::npos) return std::nullopt;
      at = end;
    }
    cells.push_back(std::move(cell));
    if (at == line.size()) return cells;
    if (line[at] != ',') return std::nullopt;
  }
}

// --- JSON lines

std::string json_line(const Cells& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += i == 0 ? "{\"" : ",\"";
    line += columns[i].name;
    line += "\":";
    if (columns[i].kind == CellKind::text) {
      line += in_quotes(cells[i]);
    } else {
      line += cells[i].empty() ? "null" : cells[i];
    }
  }
  return line + "}\n";
}

std::optional<Cells> split_json(std::string_view line) {
  JsonCursor cursor(line);
  if (!cursor.begin_object()) return std::nullopt;
  Cells cells;
  std::string_view key;
  while (cursor.next_key(key)) {
    if (cells.size() == columns.size() || key != columns[cells.size()].name) return std::nullopt;
    const CellKind kind = columns[cells.size()].kind;
    std::string_view value;
    double ignored = 0;
    if (kind == CellKind::text) {
      if (!cursor.read_string(value)) return std::nullopt;
    } else if (!cursor.take_null()) {
      const std::size_t begin = cursor.next_offset();
      if (!cursor.read_raw(value)) return std::nullopt;
      JsonCursor again(line);
      again.seek(begin);
      if (!again.read_number(ignored)) return std::nullopt;
    }
    cells.emplace_back(value);
  }
  if (cursor.failed() || !cursor.at_end()) return std::nullopt;
  return cells;
}

tl::unexpected<Error> bad_line(std::string_view name, std::size_t number, const std::string& why) {
  return espalier::fail(ErrorCode::invalid_input, fmt::format("{}:{}: {}", name, number, why),
                        fmt::format("rows of {} are written by espalier sweep -o; repair the line or choose another "
                                    "file (nothing was changed)",
                                    schema));
}

/// What every row begins with; a text that begins so is ours.
std::string opening_of_row(RowFormat format) {
  return format == RowFormat::csv ? fmt::format("{},", schema) : fmt::format("{{\"schema\":\"{}\",", schema);
}

/// Why the text behind the last whole line is not a row that was cut short; empty when it is one. A row with a line
/// break in quotes that is cut behind the break cannot be told from a stray quote, and is not taken for torn.
std::string why_not_torn(std::string_view rest, RowFormat format, const RowsRead& read) {
  if (rest.find('\n') != std::string_view::npos) return "a quote is opened and never closed";
  if (format == RowFormat::csv && read.whole_bytes == 0) {
    return fmt::format("the columns are not those of {}", schema);
  }
  const std::string opening = opening_of_row(format);
  const bool is_cut_early = read.whole_bytes > 0 && std::string_view(opening).starts_with(rest);
  if (!rest.starts_with(opening) && !is_cut_early) return fmt::format("the line is no row of {}", schema);
  if (format == RowFormat::csv) {
    const auto cells = split_csv(rest);
    if (cells && cells->size() > column_count(read.timings)) return "the line has more cells than there are columns";
  }
  return {};
}

}  // namespace

bool begins_as_rows(std::string_view text) {
  return text.starts_with(header_text({RowFormat::csv, false})) ||
         text.starts_with(header_text({RowFormat::csv, true})) ||
         text.starts_with(opening_of_row(RowFormat::json_lines));
}

Result<RowFormat> format_of(std::string_view path) {
  if (path.ends_with(".csv")) return RowFormat::csv;
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson")) return RowFormat::json_lines;
  return espalier::fail(ErrorCode::invalid_input, fmt::format("{} ends neither in .csv nor in .jsonl", path),
                        "the ending decides how rows are written");
}

std::string header_text(const RowStyle& style) {
  if (style.format == RowFormat::json_lines) return {};
  Cells names;
  for (std::size_t i = 0; i < column_count(style.timings); ++i) names.emplace_back(columns[i].name);
  return csv_line(names);
}

std::string row_text(const Row& row, const RowStyle& style) {
  const Cells cells = cells_of(row, style.timings);
  return style.format == RowFormat::csv ? csv_line(cells) : json_line(cells);
}

std::string document_text(std::span<const Row> rows, bool timings) {
  std::string text = fmt::format("{{\n\"schema\": \"{}\",\n\"rows\": [\n", schema);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string line = row_text(rows[i], {RowFormat::json_lines, timings});
    text += line.substr(0, line.size() - 1) + (i + 1 < rows.size() ? ",\n" : "\n");
  }
  return text + "]\n}\n";
}

Result<void> write_rows(std::ostream& out, std::span<const Row> rows, const RowStyle& style) {
  out << header_text(style);
  for (const Row& row : rows) out << row_text(row, style);
  out.flush();
  if (!out) return espalier::fail(ErrorCode::unavailable, "the rows could not be written in full");
  return {};
}

Result<RowsRead> read_rows(std::string_view all, RowFormat format, std::string_view name) {
  RowsRead read;
  std::size_t number = 1;  // of the line
  bool knows_columns = false;
  for (std::optional<std::size_t> end; (end = end_of_line(all, read.whole_bytes, format)); read.whole_bytes = *end) {
    const std::string_view line = all.substr(read.whole_bytes, *end - read.whole_bytes - 1);
    const std::size_t at = number;
    number += static_cast<std::size_t>(std::count(line.begin(), line.end(), '\n')) + 1;
    if (format == RowFormat::csv && !knows_columns) {
      read.timings = std::string(line) + "\n" == header_text({format, true});
      if (!read.timings && std::string(line) + "\n" != header_text({format, false})) {
        return bad_line(name, at, fmt::format("the columns are not those of {}", schema));
      }
      knows_columns = true;
      continue;
    }
    const auto cells = format == RowFormat::csv ? split_csv(line) : split_json(line);
    if (cells && !knows_columns) {
      read.timings = cells->size() == column_count(true);
      knows_columns = true;
    }
    if (!cells || cells->size() != column_count(read.timings)) {
      return bad_line(name, at, fmt::format("the line is no row of {}", schema));
    }
    auto row = row_of(*cells, read.timings);
    if (!row) return bad_line(name, at, row.error());
    read.rows.push_back(std::move(*row));
  }
  if (const std::string_view rest = all.substr(read.whole_bytes); !rest.empty()) {
    const std::string why = why_not_torn(rest, format, read);
    if (!why.empty()) return bad_line(name, number, why);
  }
  return read;
}

}  // namespace espalier::sweep
