#include "sweep/merge.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/timeline/decimal_time.h"

namespace espalier::sweep {
namespace {

std::string outcome_text(const Row& row) {
  return row.figures ? format_microseconds(row.figures->elapsed) + " us" : "failed: " + row.reason;
}

}  // namespace

Result<Merged> merge_rows(std::vector<NamedRows> files) {
  struct Place {
    std::size_t file;
    std::size_t row;
  };
  std::vector<Place> places;
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (std::size_t row = 0; row < files[file].rows.size(); ++row) places.push_back({file, row});
  }
  const auto row_at = [&](const Place& place) -> Row& { return files[place.file].rows[place.row]; };
  std::ranges::stable_sort(places, {}, [&](const Place& place) -> const Key& { return row_at(place).key; });
  Merged merged;
  const Place* before = nullptr;
  for (const Place& place : places) {
    Row& row = row_at(place);
    if (before != nullptr && merged.rows.back().key == row.key) {
      const Row& known = merged.rows.back();
      if (!known.agrees_with(row)) {
        return espalier::fail(
            ErrorCode::invalid_input,
            fmt::format("{} and {} disagree about {}: {} and {}", files[before->file].name, files[place.file].name,
                        describe(row.key), outcome_text(known), outcome_text(row)),
            "they come from different versions or were changed; run one of them again");
      }
      ++merged.repeated;
      continue;
    }
    merged.rows.push_back(std::move(row));
    before = &place;
  }
  return merged;
}

}  // namespace espalier::sweep
