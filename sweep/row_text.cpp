#include "sweep/row_text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <ostream>

#include "schedule/timeline/decimal_time.h"

namespace espalier::sweep {
namespace {

/// In the order in which `cells_of` gives and `row_of` takes them.
constexpr std::array columns = {Column{"schema", CellKind::text},         Column{"topology", CellKind::text},
                                Column{"digest", CellKind::text},         Column{"parameters", CellKind::text},
                                Column{"profile", CellKind::text},        Column{"failure", CellKind::text},
                                Column{"alike", CellKind::number},        Column{"collective", CellKind::text},
                                Column{"matrix", CellKind::text},         Column{"root", CellKind::text},
                                Column{"type", CellKind::text},           Column{"algorithm", CellKind::text},
                                Column{"size", CellKind::number},         Column{"chunk", CellKind::number},
                                Column{"model", CellKind::text},          Column{"protocol", CellKind::text},
                                Column{"copy_engines", CellKind::number}, Column{"jitter_ppm", CellKind::number},
                                Column{"seed", CellKind::number},         Column{"status", CellKind::text},
                                Column{"ranks", CellKind::number},        Column{"planner", CellKind::text},
                                Column{"used_chunk", CellKind::number},   Column{"time_us", CellKind::number},
                                Column{"algbw", CellKind::number},        Column{"busbw", CellKind::number},
                                Column{"of_bound", CellKind::number},     Column{"bound", CellKind::text},
                                Column{"busiest", CellKind::text},        Column{"busiest_share", CellKind::number},
                                Column{"low_us", CellKind::number},       Column{"high_us", CellKind::number},
                                Column{"outside", CellKind::text},        Column{"reason", CellKind::text},
                                Column{"planning_s", CellKind::number},   Column{"simulating_s", CellKind::number}};
constexpr std::size_t timing_columns = 2;
constexpr std::size_t figure_columns = 13;

constexpr RowForm form = {schema, columns, timing_columns};

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

  std::optional<Picoseconds> take_optional_time() {
    if (!next_is_empty()) return take_time();
    take();
    return std::nullopt;
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
  key.matrix = reader.take();
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
  figures.low = reader.take_optional_time();
  figures.high = reader.take_optional_time();
  figures.outside = reader.take();
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

}  // namespace

const RowForm& row_form() { return form; }

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
                 key.matrix,
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
                           fmt::format("{}", of.busiest_share),
                           of.low ? format_microseconds(*of.low) : "",
                           of.high ? format_microseconds(*of.high) : "",
                           of.outside};
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

bool begins_as_rows(std::string_view text) { return begins_as(form, text); }

std::string header_text(const RowStyle& style) { return header_text(form, style); }

std::string row_text(const Row& row, const RowStyle& style) {
  return line_text(form, cells_of(row, style.timings), style.format);
}

std::string document_text(std::span<const Row> rows, bool timings) {
  std::vector<Cells> cells;
  for (const Row& row : rows) cells.push_back(cells_of(row, timings));
  return document_text(form, cells);
}

Result<void> write_rows(std::ostream& out, std::span<const Row> rows, const RowStyle& style) {
  out << header_text(style);
  for (const Row& row : rows) out << row_text(row, style);
  out.flush();
  if (!out) return espalier::fail(ErrorCode::unavailable, "the rows could not be written in full");
  return {};
}

TakeCells take_into(std::vector<Row>& rows) {
  return [&rows](const Cells& cells, bool timings) {
    auto row = row_of(cells, timings);
    if (!row) return row.error();
    rows.push_back(*std::move(row));
    return std::string();
  };
}

Result<RowsRead> read_rows(std::string_view text, RowFormat format, std::string_view name) {
  RowsRead read;
  const auto cells = read_cells(text, form, format, name, take_into(read.rows));
  if (!cells) return tl::unexpected(cells.error());
  read.timings = cells->timings;
  read.whole_bytes = cells->whole_bytes;
  return read;
}

}  // namespace espalier::sweep
