#include "compare/read/read_tables.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "compare/read/nccl_tests_line.h"
#include "compare/read/others/line_labels.h"
#include "compare/read/others/readers.h"

namespace espalier::compare {
namespace {

using Reader = Result<Measurements> (*)(std::string_view text, std::string_view name);
constexpr Reader no_reader = nullptr;  // Of nccl-tests, which takes hints as well.

struct Mark {
  std::string_view text;
  Reader read;
};

/// What tells that a text has a table of the reader.
constexpr std::array<Mark, 7> signs = {{{"# OSU ", read_osu},
                                        {"Unidirectional P2P=", read_p2p_test},
                                        {"#bytes #repetitions", read_imb},
                                        {"BW average[", read_perftest},
                                        {"t_typical[usec]", read_perftest},
                                        {"GPU(column) bandwidth (GB/s)", read_nvbandwidth},
                                        {"nccl_bus_bandwidth_gbs{", read_nccl_inspector_metrics}}};

/// Lines from which on rows of numbers are the reader's.
constexpr std::array<Mark, 10> titles = {{{"# OSU ", read_osu},
                                          {"Connectivity Matrix", read_p2p_test},
                                          {"Matrix (GB/s)", read_p2p_test},
                                          {"Matrix (us)", read_p2p_test},
                                          {"#repetitions", read_imb},
                                          {"#iterations", read_perftest},
                                          {"(column) bandwidth (GB/s)", read_nvbandwidth},
                                          {"(column) (ns)", read_nvbandwidth},
                                          {"minBytes", no_reader},
                                          {"busbw", no_reader}}};

std::vector<Reader> readers_of(std::string_view text) {
  std::vector<Reader> readers;
  for (const Mark& sign : signs) {
    const bool is_new = std::ranges::find(readers, sign.read) == readers.end();
    if (is_new && text.find(sign.text) != std::string_view::npos) readers.push_back(sign.read);
  }
  return readers;
}

/// The text with empty lines in place of the rows that stand below titles of others: to a reader, numbers of another
/// table may look like its own.
std::string without_rows_of_others(std::string_view text, Reader own) {
  std::string rest;
  Reader now = own;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const auto title =
        std::ranges::find_if(titles, [&](const Mark& each) { return line.find(each.text) != std::string_view::npos; });
    if (title != titles.end()) now = title->read;
    const std::string clean = now == own ? std::string() : nccl_tests::clean_line(line).text;
    const auto words = nccl_tests::split_words(clean);
    const bool is_row_of_other = !words.empty() && nccl_tests::parse_decimal(words.front());
    if (!is_row_of_other) rest += line;
    if (end < text.size()) rest += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rest;
}

/// Rows of both, in their order in the file.
void append(Measurements& all, Measurements table) {
  std::uint32_t runs = 0;
  for (const Measurement& row : all.rows) runs = std::max(runs, row.run + 1);
  for (Measurement& row : table.rows) row.run += runs;
  all.origin += (all.origin.empty() ? "" : " and ") + table.origin;
  std::ranges::move(table.rows, std::back_inserter(all.rows));
  std::ranges::move(table.warnings, std::back_inserter(all.warnings));
}

}  // namespace

bool has_other_table(std::string_view text) { return !readers_of(text).empty(); }

Result<Measurements> read_tables(std::string_view text, std::string_view name, const NcclTestsHints& hints) {
  const std::vector<Reader> readers = readers_of(text);
  auto own = read_nccl_tests_text(text, name, hints);
  if (readers.empty()) return own;
  const std::string plain = without_labels(text);
  const bool has_own = own.has_value() || text.find("busbw") != std::string_view::npos;
  if (readers.size() == 1 && !has_own) return readers.front()(plain, name);
  if (own && !own->shares.empty()) {
    own->warnings.push_back(std::string(name) + ": tables beside alltoallv_perf's are left out: give them a file");
    return own;
  }
  Measurements all;
  all.file = name;
  std::vector<Error> failures;
  const auto take = [&](Result<Measurements> table) {
    if (table) return append(all, *std::move(table));
    failures.push_back(std::move(table.error()));
  };
  if (has_own) take(std::move(own));
  for (const Reader read : readers) take(read(without_rows_of_others(plain, read), name));
  if (all.rows.empty()) return tl::unexpected(failures.front());
  for (const Error& failure : failures) all.warnings.push_back(failure.message);
  std::ranges::stable_sort(all.rows, {}, &Measurement::line);
  return all;
}

}  // namespace espalier::compare
