// Matrices of rates between GPUs: nvbandwidth's text and JSON, and CUDA's sample p2pBandwidthLatencyTest.

#include <fmt/format.h>

#include <optional>

#include "compare/read/json_values.h"
#include "compare/read/others/line_reader.h"
#include "compare/read/others/readers.h"
#include "compare/read/others/rows.h"

namespace espalier::compare {
namespace {

constexpr double mebibyte_of_pairs = 1 << 20;
constexpr double gigabyte_of_pairs = 1e9;
constexpr double bytes_of_nvbandwidth = 512 * mebibyte_of_pairs;
constexpr double bytes_of_p2p_test = 160e6;  // 40,000,000 ints; its text does not say.
constexpr double max_gpu_number = 1e6;

bool is_gpu_number(const std::optional<double>& number) { return number && *number >= 0 && *number <= max_gpu_number; }

/// A matrix of rates in GB/s, whose rows or columns send.
class PairMatrix {
 public:
  PairMatrix(Measurements& table, double bytes) : table_(table), bytes_(bytes) {}

  [[nodiscard]] bool has_columns() const { return !columns_.empty(); }
  void begin(bool columns_send) {
    columns_.clear();
    columns_send_ = columns_send;
  }
  void end() { columns_.clear(); }
  void set_bytes(double bytes) { bytes_ = bytes; }

  Result<void> read_columns(const std::vector<std::string_view>& words, std::size_t line) {
    for (const std::string_view word : words) {
      const auto number = nccl_tests::parse_decimal(word);
      if (!is_gpu_number(number)) return refuse(line, fmt::format("'{}' is not the number of a GPU", word));
      columns_.push_back(static_cast<std::uint32_t>(*number));
    }
    return {};
  }

  /// The number of a GPU and its rates; nothing where a word is no number (N/A).
  Result<void> read_row(const std::vector<std::string_view>& words, std::size_t line) {
    if (words.size() != columns_.size() + 1) {
      return refuse(line,
                    fmt::format("the row has {} rates, its matrix {} columns", words.size() - 1, columns_.size()));
    }
    const auto row = static_cast<std::uint32_t>(*nccl_tests::parse_decimal(words.front()));
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (const auto rate = nccl_tests::parse_decimal(words[i + 1])) add(row, columns_[i], *rate, line);
    }
    return {};
  }

  void add(std::uint32_t row, std::uint32_t column, double rate, std::size_t line) {
    const double seconds = rate > 0 ? bytes_ / (rate * gigabyte_of_pairs) : 0;
    if (row == column || !is_measured(bytes_, seconds)) return;
    Measurement added = row_of_pair("broadcast", bytes_, seconds, line);
    added.members = columns_send_ ? std::vector{column, row} : std::vector{row, column};
    table_.rows.push_back(std::move(added));
  }

 private:
  [[nodiscard]] tl::unexpected<Error> refuse(std::size_t line, const std::string& what) const {
    return fail(ErrorCode::invalid_input, fmt::format("{}:{}:1: {}", table_.file, line, what));
  }

  Measurements& table_;
  double bytes_;
  std::vector<std::uint32_t> columns_;
  bool columns_send_ = false;
};

/// --bufferSize or -b of a command line, in MiB.
std::optional<double> buffer_size_in(const std::vector<std::string_view>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "--bufferSize" && words[i] != "-b") continue;
    if (const auto size = nccl_tests::parse_decimal(words[i + 1]); size && *size >= 1 && *size <= 1 << 20) {
      return *size * mebibyte_of_pairs;
    }
  }
  return std::nullopt;
}

/// Whether a title of nvbandwidth is that of copies between GPUs by copy engines.
bool is_of_pairs(std::string_view title) {
  return title.find("memcpy CE GPU(row)") != std::string_view::npos &&
         title.find("GPU(column)") != std::string_view::npos;
}

constexpr std::string_view no_pairs = "nvbandwidth printed no matrix of GPU pairs by copy engines";
constexpr std::string_view run_pairs = "run nvbandwidth -t device_to_device_memcpy_read_ce";

/// "nvbandwidth": {"testcases": [{"name", "bandwidth_description", "bandwidth_matrix": [["N/A", "276.1"], ...]}]}.
class NvbandwidthJson {
 public:
  NvbandwidthJson(std::string_view text, std::string_view name) : text_(text), json_(text), lines_(text) {
    table_.file = name;
    table_.origin = "nvbandwidth";
  }

  Result<Measurements> read() {
    const bool is_read = read_object([this](std::string_view key) {
      if (key != "nvbandwidth") return pass();
      return read_object([this](std::string_view inner) {
        return inner == "testcases" ? read_array(json_, [this] { return read_test(); }) : pass();
      });
    });
    if (!is_read || !json_.at_end()) {
      const TextPosition position = position_of(text_, json_.failure().offset);
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}:{}:{}: {}", table_.file, position.line, position.column, json_.failure().message),
                  json_.failure().help);
    }
    return with_rows(std::move(table_), no_pairs, std::string(run_pairs));
  }

 private:
  template <class Read>
  bool read_object(const Read& read) {
    if (!json_.begin_object()) return false;
    std::string_view key;
    while (json_.next_key(key)) {
      if (!read(std::string_view(key))) return false;
    }
    return !json_.failed();
  }

  bool pass() {
    std::string_view raw;
    return json_.read_raw(raw);
  }

  /// The title stands behind or before its matrix.
  bool read_test() {
    std::string title, name;
    std::size_t matrix = 0;
    const bool is_read = read_object([&](std::string_view key) {
      std::string_view value;
      if (key == "bandwidth_matrix") matrix = json_.next_offset();
      if (key != "name" && key != "bandwidth_description") return pass();
      if (!json_.read_string(value)) return false;
      (key == "name" ? name : title) = value;
      return true;
    });
    const bool is_both = name.find("bidirectional") != std::string::npos;
    if (!is_read || matrix == 0 || is_both || !is_of_pairs(title)) return is_read;
    return read_matrix(matrix, title.find("<-") != std::string::npos);
  }

  bool read_matrix(std::size_t offset, bool columns_send) {
    JsonCursor cursor(text_);
    cursor.seek(offset);
    PairMatrix matrix(table_, bytes_of_nvbandwidth);
    matrix.begin(columns_send);
    std::uint32_t row = 0;
    const bool is_read = read_array(cursor, [&] {
      const std::size_t line = lines_.line_of(cursor.next_offset());
      std::uint32_t column = 0;
      const bool is_row = read_array(cursor, [&] {
        std::string_view raw;
        if (!cursor.read_raw(raw)) return false;
        if (const auto rate = number_in(raw)) matrix.add(row, column, *rate, line);
        ++column;
        return true;
      });
      ++row;
      return is_row;
    });
    return is_read || json_.fail(cursor.failure().offset, cursor.failure().message, cursor.failure().help);
  }

  std::string_view text_;
  JsonCursor json_;
  LineCounter lines_;
  Measurements table_;
};

}  // namespace

Result<Measurements> read_nvbandwidth(std::string_view text, std::string_view name) {
  Measurements table;
  table.file = name;
  table.origin = "nvbandwidth";
  PairMatrix matrix(table, bytes_of_nvbandwidth);
  bool is_pairs = false, is_both = false;
  LineReader lines(text);
  while (lines.next()) {
    const auto words = lines.words();
    if (const auto size = buffer_size_in(words)) matrix.set_bytes(*size);
    if (words.empty()) matrix.end();
    if (lines.has("Running ")) is_both = lines.has("bidirectional");
    if (lines.has("bandwidth (GB/s)") || lines.has("latency")) {
      is_pairs = is_of_pairs(lines.line());
      matrix.begin(lines.has("<-"));
      continue;
    }
    if (!is_pairs || is_both || words.empty() || !is_gpu_number(nccl_tests::parse_decimal(words.front()))) continue;
    const auto read =
        matrix.has_columns() ? matrix.read_row(words, lines.number()) : matrix.read_columns(words, lines.number());
    if (!read) return tl::unexpected(read.error());
  }
  return with_rows(std::move(table), no_pairs, std::string(run_pairs));
}

Result<Measurements> read_nvbandwidth_json(std::string_view text, std::string_view name) {
  return NvbandwidthJson(text, name).read();
}

Result<Measurements> read_p2p_test(std::string_view text, std::string_view name) {
  Measurements table;
  table.file = name;
  table.origin = "p2pBandwidthLatencyTest";
  PairMatrix matrix(table, bytes_of_p2p_test);
  bool is_pairs = false;
  LineReader lines(text);
  while (lines.next()) {
    const auto words = lines.words();
    if (lines.has("P2P=")) {
      is_pairs = lines.has("Unidirectional P2P=Enabled Bandwidth");
      matrix.begin(lines.has("P2P Reads"));
      continue;
    }
    if (!is_pairs || words.empty()) continue;
    if (words.front() == "D\\D") {
      matrix.end();
      if (auto read = matrix.read_columns({words.begin() + 1, words.end()}, lines.number()); !read) {
        return tl::unexpected(read.error());
      }
    } else if (matrix.has_columns() && is_gpu_number(nccl_tests::parse_decimal(words.front()))) {
      if (auto read = matrix.read_row(words, lines.number()); !read) return tl::unexpected(read.error());
    } else {
      is_pairs = false;
    }
  }
  return with_rows(std::move(table), "p2pBandwidthLatencyTest printed no rates of GPU pairs with peer access",
                   "its matrix 'Unidirectional P2P=Enabled Bandwidth' is read");
}

}  // namespace espalier::compare
