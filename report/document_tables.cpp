#include "report/document_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "schedule/json/json_cursor.h"

namespace espalier::report {
namespace {

using nlohmann::ordered_json;

constexpr int deepest = 32;
constexpr std::size_t max_listed = 12;  ///< Of a list of single values in one cell.

std::string cell_of(const ordered_json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

bool is_list_of_objects(const ordered_json& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, &ordered_json::is_object);
}

/// A list in one cell: its values where they are single ones, else how many they are.
std::string list_cell(const ordered_json& list) {
  if (std::ranges::any_of(list, &ordered_json::is_structured)) return fmt::format("{} entries", list.size());
  std::string text;
  for (std::size_t i = 0; i < std::min(list.size(), max_listed); ++i) {
    text += (i == 0 ? "" : ", ") + cell_of(list[i]);
  }
  return list.size() > max_listed ? fmt::format("{} and {} more", text, list.size() - max_listed) : text;
}

/// Calls `use(key, value)` for each single value and each list of an object, those of inner objects by dotted keys.
template <class Use>
void for_each_value(const ordered_json& object, const std::string& before, const Use& use) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() && !value.empty()) {
      for_each_value(value, before + key + ".", use);
    } else {
      use(before + key, value);
    }
  }
}

ReportTable table_of_objects(const std::string& key, const ordered_json& list, std::string_view name) {
  ReportTable table{key, fmt::format("{}: {}", name, key), {}, {}};
  if (list.size() > max_document_rows) {
    table.caption += fmt::format(", the first {} of {}", max_document_rows, list.size());
  }
  std::map<std::string, std::size_t> columns;
  for (std::size_t i = 0; i < std::min(list.size(), max_document_rows); ++i) {
    std::vector<std::string> row(table.columns.size());
    for_each_value(list[i], "", [&](const std::string& column, const ordered_json& value) {
      const auto [place, is_new] = columns.try_emplace(column, table.columns.size());
      if (is_new) {
        table.columns.push_back({column, value.is_number()});
        row.emplace_back();
      }
      row[place->second] = value.is_array() ? list_cell(value) : cell_of(value);
    });
    table.rows.push_back(std::move(row));
  }
  for (std::vector<std::string>& row : table.rows) row.resize(table.columns.size());
  return table;
}

bool is_too_deep(const ordered_json& value, int depth) {
  if (!value.is_structured()) return false;
  return depth == deepest ||
         std::ranges::any_of(value, [&](const ordered_json& inner) { return is_too_deep(inner, depth + 1); });
}

}  // namespace

Result<ordered_json> read_document(std::string_view text, std::string_view name) {
  ordered_json document;
  try {
    document = ordered_json::parse(text);
  } catch (const ordered_json::parse_error& wrong) {
    const TextPosition at = position_of(text, wrong.byte == 0 ? 0 : std::min(wrong.byte - 1, text.size()));
    return fail(ErrorCode::invalid_input, fmt::format("{}:{}:{}: this is no JSON", name, at.line, at.column),
                "give what --json of a verb printed");
  } catch (const ordered_json::exception&) {  // A number that no double holds.
    return fail(ErrorCode::invalid_input, fmt::format("{}:1:1: a number is out of range", name));
  }
  const auto schema = document.is_object() ? document.find("schema") : document.end();
  if (schema == document.end() || !schema->is_string() ||
      !schema->get_ref<const std::string&>().starts_with("espalier/")) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}:1:1: the document does not say \"schema\": \"espalier/...\"", name),
                "give what --json of a verb printed");
  }
  if (is_too_deep(document, 0)) {
    return fail(ErrorCode::too_large, fmt::format("{}:1:1: more than {} values inside each other", name, deepest));
  }
  return document;
}

std::vector<ReportTable> tables_of(const ordered_json& document, std::string_view name) {
  ReportTable single{"values", fmt::format("{}: {}", name, cell_of(document["schema"])), {{"what"}, {"value"}}, {}};
  std::vector<ReportTable> lists;
  for_each_value(document, "", [&](const std::string& key, const ordered_json& value) {
    if (key == "schema") return;
    if (is_list_of_objects(value)) {
      lists.push_back(table_of_objects(key, value, name));
    } else if (!value.is_array()) {
      single.rows.push_back({key, cell_of(value)});
    } else if (!value.empty()) {
      single.rows.push_back({key, list_cell(value)});
    }
  });
  std::vector<ReportTable> tables;
  if (!single.rows.empty()) tables.push_back(std::move(single));
  tables.insert(tables.end(), std::make_move_iterator(lists.begin()), std::make_move_iterator(lists.end()));
  return tables;
}

}  // namespace espalier::report
