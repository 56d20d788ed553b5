#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/counted.h"
#include "compare/read/json_values.h"
#include "compare/read/nccl_tests.h"

namespace espalier::compare {
namespace {

constexpr double microsecond = 1e-6;

class JsonReader {
 public:
  JsonReader(std::string_view text, std::string_view name) : text_(text), name_(name), json_(text), lines_(text) {}

  Result<Measurements> read(const NcclTestsHints& hints) {
    measurements_.file = name_;
    measurements_.origin = "nccl-tests";
    if (!read_document() || !json_.at_end()) {
      const JsonCursor::Failure& failure = json_.failure();
      const bool is_cut = text_.find_first_not_of(" \t\r\n", failure.offset) == std::string_view::npos;
      if (is_cut && !measurements_.rows.empty()) {
        measurements_.warnings.push_back(fmt::format("{}:{}: the document is cut here: the run may not have ended",
                                                     name_, lines_.line_of(text_.size())));
        return finish(hints);
      }
      const TextPosition position = position_of(text_, failure.offset);
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}:{}:{}: {}", name_, position.line, position.column, failure.message), failure.help);
    }
    if (measurements_.rows.empty()) {
      return fail(ErrorCode::invalid_input, fmt::format("{}:1:1: the document has no results", name_));
    }
    return finish(hints);
  }

 private:
  Result<Measurements> finish(const NcclTestsHints& hints) {
    if (const std::size_t empty = results_ - measurements_.rows.size(); empty > 0) {
      measurements_.warnings.push_back(
          fmt::format("{}: {} of 0 bytes {} left out", name_, counted(empty, "row"), empty == 1 ? "is" : "are"));
    }
    for (Measurement& row : measurements_.rows) {
      row.ranks = rank_count();
      row.collective = !collective_.empty()        ? collective_
                       : !hints.collective.empty() ? hints.collective
                                                   : collective_of_file_name(name_);
    }
    if (is_unequal_) {
      if (!matrix_file_.empty() && hints.traffic.empty()) {
        return fail(
            ErrorCode::invalid_input,
            fmt::format("{}:1:1: alltoallv_perf sent the blocks of {}, which are not in it", name_, matrix_file_),
            "name that file with --matrix");
      }
      const std::string traffic = hints.traffic.empty() ? fmt::format("spread:{}", spread_) : hints.traffic;
      if (auto given = give_unequal_blocks(measurements_, {0}, traffic); !given) return tl::unexpected(given.error());
    }
    return std::move(measurements_);
  }

  /// An entry of "devices" stands for a process and names its first GPU only, so that ranks are entries times GPUs of a
  /// process; where every GPU has an entry, their numbers follow each other. Of the groups that ran at once one counts.
  [[nodiscard]] std::uint32_t rank_count() const {
    constexpr std::int64_t max_of_process = 4096;
    const std::int64_t of_process =
        std::clamp<std::int64_t>(threads_, 1, max_of_process) * std::clamp<std::int64_t>(gpus_, 1, max_of_process);
    const bool are_processes = entries_ == 1 || first_ranks_[1] - first_ranks_[0] == static_cast<double>(of_process);
    constexpr std::int64_t max_ranks = std::int64_t{1} << 24;
    return static_cast<std::uint32_t>(std::min(entries_of_first_group_ * (are_processes ? of_process : 1), max_ranks));
  }

  bool read_document() {
    if (!json_.begin_object()) return false;
    std::string_view key;
    std::string_view ignored;
    while (json_.next_key(key)) {
      const bool read = key == "args"            ? read_arguments()
                        : key == "env"           ? read_environment()
                        : key == "config"        ? read_config()
                        : key == "results"       ? read_results()
                        : key == "out_of_bounds" ? read_out_of_bounds()
                                                 : json_.read_raw(ignored);
      if (!read) return false;
    }
    return !json_.failed();
  }

  bool read_arguments() {
    if (!json_.begin_array()) return false;
    std::string_view word;
    while (json_.next_element()) {
      if (!json_.read_string(word)) return false;
      if (auto found = collective_of_program(word)) {
        collective_ = *found;
        is_unequal_ = sends_unequal_blocks(word);
      }
    }
    return !json_.failed();
  }

  bool read_environment() {
    if (!json_.begin_array()) return false;
    std::string_view word;
    while (json_.next_element()) {
      if (!json_.read_string(word)) return false;
      constexpr std::string_view spread = "NCCL_TESTS_ALLTOALLV_SPREAD=", matrix = "NCCL_TESTS_ALLTOALLV_MATRIX_FILE=";
      if (word.starts_with(spread)) {
        if (const auto part = number_in(word.substr(spread.size()))) spread_ = std::clamp(*part, 0.0, 1.0);
      }
      if (word.starts_with(matrix)) matrix_file_ = word.substr(matrix.size());
    }
    return !json_.failed();
  }

  bool read_config() {
    if (!json_.begin_object()) return false;
    std::string_view key;
    std::string_view ignored;
    while (json_.next_key(key)) {
      const bool read = key == "devices"    ? read_array(json_, [this] { return read_device(); })
                        : key == "nthreads" ? json_.read_integer(threads_)
                        : key == "ngpus"    ? json_.read_integer(gpus_)
                                            : json_.read_raw(ignored);
      if (!read) return false;
    }
    return !json_.failed();
  }

  bool read_device() {
    double rank = 0, group = 0;
    std::string_view key;
    std::string_view value;
    if (!json_.begin_object()) return false;
    while (json_.next_key(key)) {
      if (!json_.read_raw(value)) return false;
      if (key == "rank") rank = number_in(value).value_or(0);
      if (key == "group") group = number_in(value).value_or(0);
    }
    if (entries_ < first_ranks_.size()) first_ranks_[entries_] = rank;
    ++entries_;
    if (group == 0) ++entries_of_first_group_;
    return !json_.failed();
  }

  bool read_out_of_bounds() {
    const std::size_t begin = json_.next_offset();
    std::string_view raw;
    if (!json_.read_raw(raw)) return false;
    if (raw.find("\"false\"") != std::string_view::npos) {
      measurements_.warnings.push_back(
          fmt::format("{}:{}: values out of bounds", name_, position_of(text_, begin).line));
    }
    return true;
  }

  bool read_results() {
    return read_array(json_, [this] { return read_row(); });
  }

  bool read_row() {
    const std::size_t begin = json_.next_offset();
    Measurement row;
    bool has_size = false;
    std::optional<double> out_of_place, in_place;
    std::string_view key;
    std::string_view value;
    if (!json_.begin_object()) return false;
    while (json_.next_key(key)) {
      bool read = true;
      if (key == "size") {
        read = has_size = read_byte_count(json_, row.size);
      } else if (key == "type") {
        read = json_.read_string(value);
        row.type = value;
      } else if (key == "root") {
        read = json_.read_raw(value);
        if (const auto root = number_in(value); root && *root >= 0) row.root = fmt::format("{:.0f}", *root);
      } else if (key == "out_of_place") {
        read = read_group(out_of_place, row.wrong);
      } else if (key == "in_place") {
        read = read_group(in_place, row.wrong);
      } else {
        read = json_.read_raw(value);
      }
      if (!read) return false;
    }
    if (json_.failed()) return false;
    if (!has_size || (!out_of_place && !in_place)) {
      return json_.fail(begin, "a result needs a size and the time of out_of_place or in_place");
    }
    row.seconds = out_of_place.value_or(in_place.value_or(0));
    row.in_place_seconds = in_place;
    row.line = lines_.line_of(begin);
    ++results_;
    if (row.size.count > 0) measurements_.rows.push_back(std::move(row));
    return true;
  }

  bool read_group(std::optional<double>& seconds, std::optional<std::int64_t>& wrong) {
    if (json_.take_null()) return true;
    if (!json_.begin_object()) return false;
    std::string_view key;
    std::string_view value;
    while (json_.next_key(key)) {
      double time = 0;
      if (key == "time") {
        if (!read_duration(json_, microsecond, time)) return false;
        seconds = time;
        continue;
      }
      const std::size_t begin = json_.next_offset();
      if (!json_.read_raw(value)) return false;
      if (key == "cpu_time") {
        return json_.fail(begin,
                          "this is the time of the calling thread: it says when a call returned, not when it was done",
                          "measure without -C");
      }
      constexpr double most = 1e18;
      const auto count = number_in(value);
      if (key == "nwrong" && count && *count >= 0 && *count < most) {
        wrong = wrong.value_or(0) + static_cast<std::int64_t>(*count);
      }
    }
    return !json_.failed();
  }

  std::string_view text_;
  std::string name_;
  JsonCursor json_;
  LineCounter lines_;
  Measurements measurements_;
  std::string collective_;
  bool is_unequal_ = false;  ///< Of alltoallv_perf.
  double spread_ = 1;
  std::string matrix_file_;
  std::int64_t threads_ = 1;  ///< Of a process.
  std::int64_t gpus_ = 1;     ///< Of a thread.
  std::size_t entries_ = 0;   ///< Of "devices".
  std::array<double, 2> first_ranks_ = {};
  std::int64_t entries_of_first_group_ = 0;
  std::size_t results_ = 0;  ///< With those that are left out.
};

}  // namespace

Result<Measurements> read_nccl_tests_json(std::string_view text, std::string_view name, const NcclTestsHints& hints) {
  return JsonReader(text, name).read(hints);
}

}  // namespace espalier::compare
