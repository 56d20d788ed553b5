#include "sweep/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>

#include "schedule/json/json_cursor.h"
#include "schedule/json/json_output.h"

namespace espalier::sweep {
namespace {

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

std::string json_line(const RowForm& form, const Cells& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += i == 0 ? "{\"" : ",\"";
    line += form.columns[i].name;
    line += "\":";
    if (form.columns[i].kind == CellKind::text) {
      line += in_quotes(cells[i]);
    } else {
      line += cells[i].empty() ? "null" : cells[i];
    }
  }
  return line + "}\n";
}

std::optional<Cells> split_json(const RowForm& form, std::string_view line) {
  JsonCursor cursor(line);
  if (!cursor.begin_object()) return std::nullopt;
  Cells cells;
  std::string_view key;
  while (cursor.next_key(key)) {
    if (cells.size() == form.columns.size() || key != form.columns[cells.size()].name) return std::nullopt;
    const CellKind kind = form.columns[cells.size()].kind;
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

tl::unexpected<Error> bad_line(const RowForm& form, std::string_view name, std::size_t number, const std::string& why) {
  return espalier::fail(ErrorCode::invalid_input, fmt::format("{}:{}: {}", name, number, why),
                        fmt::format("rows of {} are written by espalier sweep -o; repair the line or choose another "
                                    "file (nothing was changed)",
                                    form.schema));
}

/// What every row begins with; a text that begins so is ours.
std::string opening_of_row(const RowForm& form, RowFormat format) {
  return format == RowFormat::csv ? fmt::format("{},", form.schema) : fmt::format("{{\"schema\":\"{}\",", form.schema);
}

/// Why the text behind the last whole line is not a row that was cut short; empty when it is one. A row with a line
/// break in quotes that is cut behind the break cannot be told from a stray quote, and is not taken for torn.
std::string why_not_torn(const RowForm& form, std::string_view rest, RowFormat format, const CellsRead& read) {
  if (rest.find('\n') != std::string_view::npos) return "a quote is opened and never closed";
  if (format == RowFormat::csv && read.whole_bytes == 0) {
    return fmt::format("the columns are not those of {}", form.schema);
  }
  const std::string opening = opening_of_row(form, format);
  const bool is_cut_early = read.whole_bytes > 0 && std::string_view(opening).starts_with(rest);
  if (!rest.starts_with(opening) && !is_cut_early) return fmt::format("the line is no row of {}", form.schema);
  if (format == RowFormat::csv) {
    const auto cells = split_csv(rest);
    if (cells && cells->size() > form.column_count(read.timings))
      return "the line has more cells than there are columns";
  }
  return {};
}

}  // namespace

Result<RowFormat> format_of(std::string_view path) {
  if (path.ends_with(".csv")) return RowFormat::csv;
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson")) return RowFormat::json_lines;
  return espalier::fail(ErrorCode::invalid_input, fmt::format("{} ends neither in .csv nor in .jsonl", path),
                        "the ending decides how rows are written");
}

std::string header_text(const RowForm& form, const RowStyle& style) {
  if (style.format == RowFormat::json_lines) return {};
  Cells names;
  for (std::size_t i = 0; i < form.column_count(style.timings); ++i) names.emplace_back(form.columns[i].name);
  return csv_line(names);
}

std::string line_text(const RowForm& form, const Cells& cells, RowFormat format) {
  return format == RowFormat::csv ? csv_line(cells) : json_line(form, cells);
}

Result<void> write_cells(std::ostream& out, const RowForm& form, std::span<const Cells> rows, const RowStyle& style) {
  out << header_text(form, style);
  for (const Cells& row : rows) out << line_text(form, row, style.format);
  out.flush();
  if (!out) return espalier::fail(ErrorCode::unavailable, "the rows could not be written in full");
  return {};
}

std::string document_text(const RowForm& form, std::span<const Cells> rows) {
  std::string text = fmt::format("{{\n\"schema\": \"{}\",\n\"rows\": [\n", form.schema);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string line = json_line(form, rows[i]);
    text += line.substr(0, line.size() - 1) + (i + 1 < rows.size() ? ",\n" : "\n");
  }
  return text + "]\n}\n";
}

bool begins_as(const RowForm& form, std::string_view text) {
  return text.starts_with(header_text(form, {RowFormat::csv, false})) ||
         text.starts_with(header_text(form, {RowFormat::csv, true})) ||
         text.starts_with(opening_of_row(form, RowFormat::json_lines));
}

Result<CellsRead> read_cells(std::string_view all, const RowForm& form, RowFormat format, std::string_view name,
                             const TakeCells& take) {
  CellsRead read;
  std::size_t number = 1;  // of the line
  bool knows_columns = false;
  for (std::optional<std::size_t> end; (end = end_of_line(all, read.whole_bytes, format)); read.whole_bytes = *end) {
    const std::string_view line = all.substr(read.whole_bytes, *end - read.whole_bytes - 1);
    const std::size_t at = number;
    number += static_cast<std::size_t>(std::count(line.begin(), line.end(), '\n')) + 1;
    if (format == RowFormat::csv && !knows_columns) {
      read.timings = form.timing_columns > 0 && std::string(line) + "\n" == header_text(form, {format, true});
      if (!read.timings && std::string(line) + "\n" != header_text(form, {format, false})) {
        return bad_line(form, name, at, fmt::format("the columns are not those of {}", form.schema));
      }
      knows_columns = true;
      continue;
    }
    const auto cells = format == RowFormat::csv ? split_csv(line) : split_json(form, line);
    if (cells && !knows_columns) {
      read.timings = form.timing_columns > 0 && cells->size() == form.column_count(true);
      knows_columns = true;
    }
    if (!cells || cells->size() != form.column_count(read.timings)) {
      return bad_line(form, name, at, fmt::format("the line is no row of {}", form.schema));
    }
    if (const std::string wrong = take(*cells, read.timings); !wrong.empty()) return bad_line(form, name, at, wrong);
    ++read.rows;
  }
  if (const std::string_view rest = all.substr(read.whole_bytes); !rest.empty()) {
    const std::string why = why_not_torn(form, rest, format, read);
    if (!why.empty()) return bad_line(form, name, number, why);
  }
  return read;
}

}  // namespace espalier::sweep
