#include "schedule/traffic/traffic_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "base/parse_units.h"
#include "base/random.h"
#include "schedule/collective.h"
#include "schedule/traffic/traffic_readers.h"

namespace espalier {
namespace {

constexpr std::string_view zipf_prefix = "zipf:";
constexpr std::string_view routing_prefix = "routing:";
constexpr std::string_view pairs_prefix = "pairs:";
constexpr std::string_view spread_prefix = "spread:";
constexpr std::int64_t max_pair_weight = std::int64_t{1} << 24U;
constexpr double max_exponent = 10;
constexpr std::uint32_t max_experts_of_rank = 1024;

/// Far more than any matrix that is planned has: bytes of a file.
constexpr std::size_t max_file_bytes = std::size_t{512} << 20U;

Result<std::string> read_whole_file(const std::string& path) {
  constexpr std::string_view forms =
      "give a matrix's file (CSV, JSON, .npy), zipf:0.7,seed=3, spread:1, pairs:0-1,2-3 or routing:FILE";
  std::error_code status;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, status)) {
    return fail(ErrorCode::unavailable, fmt::format("{} cannot be read", path), std::string(forms));
  }
  std::string text;
  std::string block(std::size_t{1} << 20U, '\0');
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(file.gcount()));
    if (text.size() > max_file_bytes) {
      return fail(ErrorCode::too_large, fmt::format("{} has more than 512 MiB", path), std::string(forms));
    }
  }
  if (file.bad()) return fail(ErrorCode::unavailable, fmt::format("{} cannot be read to its end", path));
  return text;
}

/// "3,experts=8" as what comes before the first comma, and pairs of key and value.
struct Described {
  std::string first;
  std::vector<std::pair<std::string, std::string>> values;
};

Described split_description(std::string_view text) {
  Described described;
  described.first = std::string(text.substr(0, text.find(',')));
  for (std::size_t begin = described.first.size() + 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    const std::size_t equals = std::min(item.find('='), item.size());
    described.values.emplace_back(item.substr(0, equals), item.substr(std::min(equals + 1, item.size())));
    begin = end + 1;
  }
  return described;
}

template <class Number>
std::optional<Number> read_value(const std::string& text) {
  Number number{};
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

tl::unexpected<Error> fail_value(const std::string& key, const std::string& value, const char* wanted) {
  return fail(ErrorCode::invalid_input, fmt::format("{}={}: it is not {}", key, value, wanted),
              fmt::format("write {} as {}", key, wanted));
}

Result<TrafficMatrix> load_zipf(std::string_view text, std::size_t ranks) {
  const Described described = split_description(text);
  ZipfTraffic law;
  const auto exponent = read_value<double>(described.first);
  if (!exponent || !(*exponent >= 0 && *exponent <= max_exponent)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("zipf:{}: the exponent is no number from 0 to 10", described.first),
                "write such as zipf:0.7,seed=3");
  }
  law.exponent = *exponent;
  for (const auto& [key, value] : described.values) {
    if (key == "seed") {
      const auto seed = read_value<std::uint64_t>(value);
      if (!seed) return fail_value(key, value, "a whole number");
      law.seed = *seed;
    } else if (key == "experts") {
      const auto experts = read_value<std::uint32_t>(value);
      if (!experts || *experts < 1 || *experts > max_experts_of_rank)
        return fail_value(key, value, "a number from 1 to 1024");
      law.experts = *experts;
    } else {
      return fail(ErrorCode::invalid_input, fmt::format("zipf has no '{}'", key),
                  "it has seed=N and experts=N (of a rank)");
    }
  }
  return zipf_traffic(ranks, law);
}

Result<TrafficMatrix> load_spread(std::string_view text, std::size_t ranks) {
  const auto spread = read_value<double>(std::string(text));
  if (!spread || !(*spread >= 0 && *spread <= 1)) {
    return fail(ErrorCode::invalid_input, fmt::format("spread:{}: it is no number from 0 to 1", text.substr(0, 60)),
                "write such as spread:1");
  }
  return spread_traffic(ranks, *spread);
}

Result<TrafficMatrix> load_routing(std::string_view text, std::size_t ranks) {
  const Described described = split_description(text);
  RoutedTraffic how;
  for (const auto& [key, value] : described.values) {
    if (key == "experts") {
      const auto experts = read_value<std::uint32_t>(value);
      if (!experts || *experts == 0) return fail_value(key, value, "a whole number above zero");
      how.experts = *experts;
    } else if (key == "bytes") {
      const auto bytes = parse_size(value);
      if (!bytes || bytes->count == 0) return fail_value(key, value, "a size above zero");
      how.bytes_per_token = bytes->count;
    } else if (key == "dedup" && value.empty()) {
      how.deduplicated = true;
    } else {
      return fail(ErrorCode::invalid_input, fmt::format("routing has no '{}'", key),
                  "it has experts=N (of all ranks), bytes=SIZE (of a token's copy) and dedup");
    }
  }
  const auto file = read_whole_file(described.first);
  if (!file) return tl::unexpected(file.error());
  return parse_routing(*file, described.first, ranks, how);
}

/// "0-4,1-5=2": rank 0 sends to 4, and rank 1 twice as much to 5.
Result<TrafficMatrix> load_pairs(std::string_view text, std::size_t ranks) {
  TrafficMatrix matrix{ranks, std::vector<std::int64_t>(ranks * ranks, 0), false};
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string item(text.substr(begin, end - begin));
    const auto refuse = [&](std::string_view why) {
      return fail(ErrorCode::invalid_input, fmt::format("pairs: '{}' {}", item.substr(0, 60), why),
                  "write FROM-TO or FROM-TO=WEIGHT, such as pairs:0-4,1-5=2");
    };
    const std::size_t dash = item.find('-');
    const std::size_t equals = std::min(item.find('='), item.size());
    if (dash == std::string::npos || dash > equals) return refuse("is no pair of ranks");
    const auto from = read_value<std::size_t>(item.substr(0, dash));
    const auto to = read_value<std::size_t>(item.substr(dash + 1, equals - dash - 1));
    const auto weight =
        equals == item.size() ? std::optional<std::int64_t>(1) : read_value<std::int64_t>(item.substr(equals + 1));
    if (!from || !to) return refuse("is no pair of ranks");
    if (!weight || *weight < 1 || *weight > max_pair_weight) return refuse("has no weight from 1 to 16777216");
    if (*from >= ranks || *to >= ranks) return refuse(fmt::format("names a rank that is none of {}", ranks));
    if (*from == *to) return refuse("is a rank and itself");
    std::int64_t& block = matrix.blocks[*from * ranks + *to];
    if (block != 0) return refuse("is named twice");
    block = *weight;
    begin = end + 1;
  }
  return matrix;
}

}  // namespace

std::int64_t TrafficMatrix::largest_line() const {
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    std::int64_t sent = 0;
    std::int64_t received = 0;
    for (std::size_t j = 0; j < ranks; ++j) {
      sent += blocks[i * ranks + j];
      received += blocks[j * ranks + i];
    }
    largest = std::max({largest, sent, received});
  }
  return largest;
}

Result<TrafficMatrix> parse_traffic(std::string_view text, std::string_view name) {
  constexpr std::string_view npy_magic = "\x93NUMPY";
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(npy_magic)) return parse_traffic_npy(text, name);
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && (text[first] == '[' || text[first] == '{');
  return is_json ? parse_traffic_json(text, name) : parse_traffic_csv(text, name);
}

TrafficMatrix zipf_traffic(std::size_t ranks, const ZipfTraffic& law) {
  ESPALIER_CHECK(ranks > 0 && ranks <= max_matrix_ranks && law.experts > 0, "a law for some ranks");
  std::vector<std::size_t> order(ranks * law.experts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(law.seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<double> popularity(ranks, 0);
  double all = 0;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const double part = std::pow(static_cast<double>(place + 1), -law.exponent);
    popularity[order[place] / law.experts] += part;
    all += part;
  }
  constexpr double row_sum = 1e9;
  TrafficMatrix matrix{ranks, std::vector<std::int64_t>(ranks * ranks), false};
  for (std::size_t to = 0; to < ranks; ++to) {
    const std::int64_t block = std::max<std::int64_t>(1, std::llround(row_sum * popularity[to] / all));
    for (std::size_t from = 0; from < ranks; ++from) matrix.blocks[from * ranks + to] = block;
  }
  return matrix;
}

TrafficMatrix spread_traffic(std::size_t ranks, double spread) {
  ESPALIER_CHECK(ranks > 0 && ranks <= max_matrix_ranks && spread >= 0 && spread <= 1, "a part, for some ranks");
  TrafficMatrix matrix{ranks, std::vector<std::int64_t>(ranks * ranks, 1), false};
  if (ranks == 1 || spread == 0) return matrix;
  const double equal = (1 - spread) * static_cast<double>(ranks - 1);     // Of distances the mean is half of it.
  const double scale = spread == 1 ? 0.5 : static_cast<double>(1 << 16);  // All sum to less than 2^52.
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      const double distant = 2 * spread * static_cast<double>((to + ranks - from) % ranks);
      matrix.blocks[from * ranks + to] = std::llround(scale * (equal + distant));
    }
  }
  return matrix;
}

Result<TrafficMatrix> load_traffic(const std::string& described, std::size_t ranks) {
  if (ranks > max_matrix_ranks) {
    return fail(ErrorCode::too_large,
                fmt::format("a traffic matrix of {} ranks is past the limit of {}", ranks, max_matrix_ranks),
                "name a part of the machine with --ranks");
  }
  if (described.starts_with(zipf_prefix))
    return load_zipf(std::string_view(described).substr(zipf_prefix.size()), ranks);
  if (described.starts_with(pairs_prefix)) {
    return load_pairs(std::string_view(described).substr(pairs_prefix.size()), ranks);
  }
  if (described.starts_with(spread_prefix)) {
    return load_spread(std::string_view(described).substr(spread_prefix.size()), ranks);
  }
  if (described.starts_with(routing_prefix)) {
    return load_routing(std::string_view(described).substr(routing_prefix.size()), ranks);
  }
  const auto text = read_whole_file(described);
  if (!text) return tl::unexpected(text.error());
  auto matrix = parse_traffic(*text, described);
  if (!matrix || matrix->ranks == ranks) return matrix;
  return fail(ErrorCode::invalid_input,
              fmt::format("{} is a matrix of {} ranks, and there are {}", described, matrix->ranks, ranks),
              "name as many ranks with --ranks, or give a matrix of all");
}

}  // namespace espalier
