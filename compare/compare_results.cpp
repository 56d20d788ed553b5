#include "compare/compare_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/format_units.h"
#include "base/parse_units.h"
#include "schedule/by_algorithm.h"
#include "schedule/collective.h"
#include "schedule/timeline/thin_timeline.h"

namespace espalier::compare {
namespace {

struct Key {
  std::string collective;
  std::string algorithm;
  std::int64_t size = 0;
  friend auto operator<=>(const Key&, const Key&) = default;
};

using Times = std::map<Key, std::vector<double>>;

/// The names of a file's algorithms.
std::set<std::string> algorithms_of(const Measurements& file) {
  std::set<std::string> names;
  for (const Measurement& row : file.rows) names.insert(row.algorithm);
  return names;
}

/// The name under which a row pairs: its own where the other file has it; what "auto" chose where the other file has
/// that; the other's only one where the row has none.
std::string paired_name(const Measurement& row, const std::set<std::string>& own, const std::set<std::string>& other) {
  if (other.contains(row.algorithm)) return row.algorithm;
  if (row.algorithm == "auto" && other.contains(row.planner) && !own.contains(row.planner)) return row.planner;
  if (row.algorithm.empty() && other.size() == 1) return *other.begin();
  return row.algorithm;
}

Times times_of(const Measurements& file, const Measurements& other) {
  const std::set<std::string> own_names = algorithms_of(file);
  const std::set<std::string> other_names = algorithms_of(other);
  const bool other_is_nameless = other_names.size() == 1 && other_names.contains("");
  Times times;
  for (const Measurement& row : file.rows) {
    const bool is_only = own_names.size() == 1 && other_is_nameless;
    const std::string name = is_only ? row.algorithm : paired_name(row, own_names, other_names);
    times[{row.collective, name, row.size.count}].push_back(row.seconds);
  }
  return times;
}

/// A row's algorithm; what "auto" chose where the file says that.
const std::string& name_of(const Measurement& row) {
  return row.algorithm == "auto" && !row.planner.empty() ? row.planner : row.algorithm;
}

/// Leaves the rows of one algorithm, where the file names any.
Result<void> keep_only(Measurements& file, const std::string& algorithm) {
  std::set<std::string> names;
  for (const Measurement& row : file.rows) names.insert({row.algorithm, name_of(row)});
  if (names.size() == 1 && names.contains("")) return {};
  if (!names.contains(algorithm)) {
    return fail(ErrorCode::invalid_input, fmt::format("{} has no algorithm '{}'", file.file, algorithm),
                fmt::format("it has {}; {} takes the fastest of each size", fmt::join(names, ", "), fastest_of_each));
  }
  const bool has_own = std::ranges::any_of(file.rows, [&](const auto& row) { return row.algorithm == algorithm; });
  std::erase_if(file.rows, [&](const auto& row) { return (has_own ? row.algorithm : name_of(row)) != algorithm; });
  for (Measurement& row : file.rows) row.algorithm = algorithm;
  return {};
}

using Winners = std::map<std::pair<std::string, std::int64_t>, std::string>;

/// Leaves of each collective and size the rows of the fastest algorithm, without its name, and says which it is.
Winners keep_fastest(Measurements& file) {
  Times times;
  for (const Measurement& row : file.rows) {
    times[{row.collective, name_of(row), row.size.count}].push_back(row.seconds);
  }
  Winners winners;
  std::map<std::pair<std::string, std::int64_t>, double> best;
  for (const auto& [key, values] : times) {
    const std::pair at(key.collective, key.size);
    const double seconds = median(values);
    const auto [known, is_new] = best.emplace(at, seconds);
    if (!is_new && known->second <= seconds) continue;
    known->second = seconds;
    winners[at] = key.algorithm;
  }
  std::erase_if(file.rows, [&](const auto& row) {
    return winners.at({row.collective, row.size.count}) != name_of(row);
  });
  for (Measurement& row : file.rows) row.algorithm.clear();
  return winners;
}

/// The fastest of both: the name where it is one, "ring vs tree" where they differ.
std::string names_of(const Winners& a, const Winners& b, const ComparedSize& row) {
  const auto name = [&](const Winners& winners) {
    const auto found = winners.find({row.collective, row.size.count});
    return found == winners.end() ? std::string() : found->second;
  };
  const std::string of_a = name(a), of_b = name(b);
  if (of_a.empty() || of_b.empty() || of_a == of_b) return of_a.empty() ? of_b : of_a;
  return of_a + " vs " + of_b;
}

/// A file without collectives takes the only one of the other.
void fill_collective(Measurements& file, const Measurements& other, std::vector<std::string>& notes) {
  std::set<std::string> named;
  for (const Measurement& row : other.rows) named.insert(row.collective);
  if (named.size() != 1 || named.contains("")) return;
  bool filled = false;
  for (Measurement& row : file.rows) {
    if (!row.collective.empty()) continue;
    row.collective = *named.begin();
    filled = true;
  }
  if (filled) notes.push_back(fmt::format("{} does not name its collective; taken as {}", file.file, *named.begin()));
}

std::string describe(const Measurements& file) {
  std::set<std::string> whats;
  Bytes least = file.rows.empty() ? Bytes{} : file.rows.front().size;
  Bytes most = least;
  for (const Measurement& row : file.rows) {
    whats.insert(row.collective + by_algorithm(row.algorithm));
    least = std::min(least, row.size);
    most = std::max(most, row.size);
  }
  const std::string sizes = least == most ? format_size(least) : format_size(least) + " to " + format_size(most);
  return fmt::format("{} has {} of {}", file.file, fmt::join(whats, ", "), sizes);
}

/// Leaves the rows that are compared: those of an algorithm, or the fastest of each size, whose names are returned, of
/// `a` and of `b`.
Result<std::pair<Winners, Winners>> choose_rows(Measurements& a, Measurements& b, const std::string& algorithm,
                                                std::vector<std::string>& notes) {
  std::pair<Winners, Winners> winners;
  if (algorithm == fastest_of_each) return std::pair(keep_fastest(a), keep_fastest(b));
  if (!algorithm.empty()) {
    if (auto kept = keep_only(a, algorithm); !kept) return tl::unexpected(kept.error());
    if (auto kept = keep_only(b, algorithm); !kept) return tl::unexpected(kept.error());
    return winners;
  }
  const auto is_nameless = [](const std::set<std::string>& names) { return names.size() == 1 && names.contains(""); };
  const std::set<std::string> names_a = algorithms_of(a), names_b = algorithms_of(b);
  const auto note = [&](const Measurements& file, const std::set<std::string>& names, const Measurements& nameless) {
    notes.push_back(
        fmt::format("{} names no algorithm: compared with the fastest of {} at each size ({}); -a NAME chooses one",
                    nameless.file, file.file, fmt::join(names, ", ")));
  };
  if (names_a.size() > 1 && is_nameless(names_b)) {
    note(a, names_a, b);
    winners.first = keep_fastest(a);
  } else if (names_b.size() > 1 && is_nameless(names_a)) {
    note(b, names_b, a);
    winners.second = keep_fastest(b);
  }
  return winners;
}

/// Where both files measured pairs or groups of ranks, each group's rows are its own: "broadcast 0>1".
void name_members(Measurements& a, Measurements& b) {
  const auto has_members = [](const Measurements& file) {
    return std::ranges::any_of(file.rows, [](const Measurement& row) { return !row.members.empty(); });
  };
  if (!has_members(a) || !has_members(b)) return;
  for (Measurements* const file : {&a, &b}) {
    for (Measurement& row : file->rows) {
      if (!row.members.empty()) row.collective += fmt::format(" {}", fmt::join(row.members, ">"));
    }
  }
}

/// Whether there is a size of one collective in both.
bool shares_sizes(const Measurements& a, const Measurements& b) {
  return std::ranges::any_of(a.rows, [&](const Measurement& row) {
    return std::ranges::any_of(
        b.rows, [&](const Measurement& other) { return row.collective == other.collective && row.size == other.size; });
  });
}

struct Fastest {
  std::string a;
  std::string b;
  double best_a = 0;
  double best_b = 0;
  double b_of_a = 0;  ///< b's time of a's winner.
  std::size_t count = 0;
};

void find_winners(ResultsComparison& result) {
  std::map<std::pair<std::string, std::int64_t>, Fastest> by_size;
  for (const ComparedSize& row : result.sizes) {
    if (row.algorithm == "auto") continue;
    Fastest& fastest = by_size[{row.collective, row.size.count}];
    if (fastest.count == 0 || row.a < fastest.best_a) {
      fastest.a = row.algorithm;
      fastest.best_a = row.a;
      fastest.b_of_a = row.b;
    }
    if (fastest.count == 0 || row.b < fastest.best_b) {
      fastest.b = row.algorithm;
      fastest.best_b = row.b;
    }
    ++fastest.count;
  }
  for (const auto& [key, fastest] : by_size) {
    if (fastest.count < 2) continue;
    ++result.compared_winners;
    // Of equally fast ones either may be called the winner.
    if (fastest.a == fastest.b || fastest.b_of_a == fastest.best_b) continue;
    result.different.push_back(
        {key.first, Bytes{key.second}, fastest.a, fastest.b, relative_error(fastest.b_of_a, fastest.best_b)});
  }
}

void summarize(ResultsComparison& result) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> by_algorithm;
  std::vector<double> all;
  for (std::size_t i = 0; i < result.sizes.size(); ++i) {
    const ComparedSize& row = result.sizes[i];
    all.push_back(row.error);
    by_algorithm[{row.collective, row.algorithm}].push_back(row.error);
    if (std::abs(row.error) > std::abs(result.sizes[result.worst].error)) result.worst = i;
  }
  result.errors = summarize_errors(all);
  for (const auto& [key, errors] : by_algorithm) {
    result.algorithms.push_back({key.first, key.second, summarize_errors(errors)});
  }
}

void note_wrong_data(const Measurements& file, std::vector<std::string>& notes) {
  for (const std::string& warning : file.warnings) notes.push_back(warning);
  std::size_t wrong = 0;
  for (const Measurement& row : file.rows) wrong += row.wrong.value_or(0) != 0 ? 1U : 0U;
  if (wrong > 0)
    notes.push_back(fmt::format("{}: {} {} wrong data", file.file, wrong, wrong == 1 ? "row has" : "rows have"));
}

/// The numbers of ranks that a collective was measured on; those that the file does not say are left out.
std::set<std::uint32_t> rank_counts(const Measurements& file, const std::string& collective) {
  std::set<std::uint32_t> counts;
  for (const Measurement& row : file.rows) {
    if (row.ranks > 0 && row.collective == collective) counts.insert(row.ranks);
  }
  return counts;
}

/// Where a file has a collective on several numbers of ranks, as MPI's benchmarks print it, and the other on one of
/// them, its rows on that number are left; where both have several, each number is its own: "all_reduce on 8 ranks".
void match_ranks(Measurements& a, Measurements& b, std::vector<std::string>& notes) {
  std::set<std::string> collectives, split;
  for (const Measurement& row : a.rows) collectives.insert(row.collective);
  for (const std::string& collective : collectives) {
    const auto of_a = rank_counts(a, collective), of_b = rank_counts(b, collective);
    if (of_a.size() > 1 && of_b.size() > 1) split.insert(collective);
    for (const auto& [file, counts, others] : {std::tuple(&a, of_a, of_b), std::tuple(&b, of_b, of_a)}) {
      if (counts.size() < 2 || others.size() != 1 || !counts.contains(*others.begin())) continue;
      std::erase_if(file->rows, [&, ranks = *others.begin()](const Measurement& row) {
        return row.collective == collective && row.ranks != ranks;
      });
      notes.push_back(fmt::format("{} has {} on {} ranks: its rows on {} are compared", file->file, collective,
                                  fmt::join(counts, ", "), *others.begin()));
    }
  }
  for (Measurements* const file : {&a, &b}) {
    for (Measurement& row : file->rows) {
      if (split.contains(row.collective) && row.ranks > 0) row.collective += fmt::format(" on {} ranks", row.ranks);
    }
  }
}

/// A prediction for another number of ranks than was measured is of another machine; of two measurements that is noted.
/// The first collective that both have tells.
Result<void> check_ranks(const Measurements& a, const Measurements& b, std::vector<std::string>& notes) {
  if (a.rows.empty() || b.rows.empty()) return {};
  auto row_a = a.rows.begin(), row_b = b.rows.begin();
  const auto shared = std::ranges::find_if(a.rows, [&](const Measurement& row) {
    return std::ranges::count(b.rows, row.collective, &Measurement::collective) > 0;
  });
  if (shared != a.rows.end()) {
    row_a = shared;
    row_b = std::ranges::find(b.rows, shared->collective, &Measurement::collective);
  }
  const bool is_alike =
      (row_a->ranks == 0 || may_be_of(*row_b, row_a->ranks)) && (row_b->ranks == 0 || may_be_of(*row_a, row_b->ranks));
  if (is_alike) return {};
  const std::string what =
      fmt::format("{} has {} ranks, {} has {}", a.file, describe_ranks(*row_a), b.file, describe_ranks(*row_b));
  if ((a.origin == "simulation") == (b.origin == "simulation")) {
    notes.push_back(what);
    return {};
  }
  return fail(ErrorCode::invalid_input, what, "simulate the machine that was measured, or its part with --ranks");
}

/// Unequal parts are those of the collective. A file of another tool does not say its own.
Result<void> check_shares(const Measurements& a, const Measurements& b, std::vector<std::string>& notes) {
  if (a.shares == b.shares) return {};
  const Measurements& silent = a.shares.empty() ? a : b;
  const Measurements& other = a.shares.empty() ? b : a;
  if (silent.shares.empty() && silent.origin != "simulation" && silent.origin != "run") {
    notes.push_back(
        fmt::format("{} does not say how unequal its parts were: taken as those of {}", silent.file, other.file));
    return {};
  }
  return fail(ErrorCode::invalid_input, fmt::format("{} and {} are of other blocks or shards", a.file, b.file),
              "compare runs of one --matrix or --shares");
}

}  // namespace

Result<ResultsComparison> compare_results(const Measurements& a, const Measurements& b, const std::string& algorithm) {
  ResultsComparison result;
  Measurements left = a;
  Measurements right = b;
  fill_collective(left, b, result.notes);
  fill_collective(right, a, result.notes);
  name_members(left, right);
  match_ranks(left, right, result.notes);
  auto fastest = choose_rows(left, right, algorithm, result.notes);
  if (!fastest) return tl::unexpected(std::move(fastest.error()));
  note_wrong_data(a, result.notes);
  note_wrong_data(b, result.notes);
  if (auto checked = check_ranks(left, right, result.notes); !checked) return tl::unexpected(checked.error());
  if (auto checked = check_shares(a, b, result.notes); !checked) return tl::unexpected(checked.error());
  const Times times_a = times_of(left, right);
  Times times_b = times_of(right, left);
  for (const auto& [key, values] : times_a) {
    const auto other = times_b.find(key);
    if (other == times_b.end()) {
      ++result.only_in_a;
      continue;
    }
    const double value_a = median(values);
    const double value_b = median(other->second);
    result.sizes.push_back(
        {key.collective, Bytes{key.size}, key.algorithm, value_a, value_b, relative_error(value_a, value_b)});
    if (key.algorithm.empty())
      result.sizes.back().algorithm = names_of(fastest->first, fastest->second, result.sizes.back());
    times_b.erase(other);
  }
  result.only_in_b = times_b.size();
  if (result.sizes.empty()) {
    return fail(
        ErrorCode::invalid_input, "the two files have no size of one collective and algorithm in common",
        describe(a) + "; " + describe(b) + (shares_sizes(left, right) ? "; -a best compares the fastest of each" : ""));
  }
  summarize(result);
  find_winners(result);
  return result;
}

Result<Measurements> measurements_of(const Timeline& timeline, const std::string& file) {
  const auto refuse = [&] {
    return fail(ErrorCode::invalid_input, file + ": the timeline's title '" + timeline.title + "' names no size",
                "titles are such as 'all_gather, ring, 1 KiB on box'; compare it with another timeline");
  };
  if (thinning_of(timeline) > 1) {
    return fail(ErrorCode::invalid_input, file + ": the timeline is thinned, so that how long it took is not known",
                "write it whole, without --trace-every; two timelines can be compared thinned");
  }
  const std::string& title = timeline.title;
  const std::size_t first = title.find(", ");
  const std::size_t second = first == std::string::npos ? first : title.find(", ", first + 2);
  if (second == std::string::npos) return refuse();
  const std::size_t on = title.find(" on ", second);
  const auto size = parse_size(title.substr(second + 2, on == std::string::npos ? on : on - second - 2));
  const auto collective = parse_collective(title.substr(0, first));
  if (!size || !collective) return refuse();
  Measurements result;
  result.file = file;
  result.origin = timeline.origin;
  if (on != std::string::npos) result.topology = title.substr(on + 4);
  Measurement row;
  row.collective = to_string(*collective);
  row.algorithm = title.substr(first + 2, second - first - 2);
  row.size = *size;
  row.ranks = static_cast<std::uint32_t>(timeline.rank_names.size());
  if (!timeline.spans.empty()) {
    Picoseconds begin = timeline.spans.front().begin;
    Picoseconds end = timeline.spans.front().end;
    for (const Span& span : timeline.spans) {
      begin = std::min(begin, span.begin);
      end = std::max(end, span.end);
    }
    row.seconds = (end - begin).seconds();
  }
  result.rows.push_back(std::move(row));
  return result;
}

}  // namespace espalier::compare
