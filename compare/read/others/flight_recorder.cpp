#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "compare/read/json_values.h"
#include "compare/read/others/readers.h"
#include "compare/read/others/rows.h"

namespace espalier::compare {
namespace {

/// What a profiling_name means: "nccl:_all_gather_base" is an all_gather. Whether S is what goes in.
struct RecorderName {
  std::string_view part;
  std::string_view collective;
  bool is_input;
};
constexpr std::array<RecorderName, 8> recorder_names = {{{"reduce_scatter", "reduce_scatter", true},
                                                         {"all_gather", "all_gather", false},
                                                         {"all_reduce", "all_reduce", true},
                                                         {"allreduce", "all_reduce", true},
                                                         {"all_to_all", "all_to_all", true},
                                                         {"broadcast", "broadcast", true},
                                                         {"gather", "gather", false},
                                                         {"reduce", "reduce", true}}};

std::int64_t bytes_of_type(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 14> types = {{{"Double", 8},
                                                                                {"Long", 8},
                                                                                {"Float", 4},
                                                                                {"Int", 4},
                                                                                {"Half", 2},
                                                                                {"BFloat16", 2},
                                                                                {"Short", 2},
                                                                                {"Char", 1},
                                                                                {"Byte", 1},
                                                                                {"Bool", 1},
                                                                                {"Float8_e4m3fn", 1},
                                                                                {"Float8_e5m2", 1},
                                                                                {"ComplexFloat", 8},
                                                                                {"ComplexDouble", 16}}};
  for (const auto& [name, bytes] : types) {
    if (name == type) return bytes;
  }
  return 0;
}

struct RecorderEntry {
  std::string name, group;
  std::vector<double> input_counts, output_counts;
  std::vector<std::int64_t> input_bytes, output_bytes;
  std::optional<double> seconds;
  std::size_t offset = 0;
};

class RecorderReader {
 public:
  RecorderReader(std::string_view text, std::string_view name) : text_(text), name_(name), json_(text) {}

  Result<Measurements> read() {
    Measurements table;
    table.file = name_;
    table.origin = "flight-recorder";
    if (!read_document() || !json_.at_end()) {
      const TextPosition position = position_of(text_, json_.failure().offset);
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}:{}:{}: {}", name_, position.line, position.column, json_.failure().message),
                  json_.failure().help);
    }
    CallTable rows;
    LineCounter lines(text_);
    bool has_time = entries_.empty();
    for (const RecorderEntry& entry : entries_) {
      has_time = has_time || entry.seconds.has_value();
      add(rows, entry, lines.line_of(entry.offset));
    }
    table.rows = rows.rows();
    if (!has_time) {
      return with_rows(std::move(table), "no entry has duration_ms: the recorder did not time what ran",
                       "run with TORCH_NCCL_ENABLE_TIMING=1");
    }
    return with_rows(std::move(table), "no entry is a collective of a known kind with a time");
  }

 private:
  void add(CallTable& rows, const RecorderEntry& entry, std::size_t line) const {
    if (!entry.seconds) return;
    for (const RecorderName& known : recorder_names) {
      if (entry.name.find(known.part) == std::string::npos) continue;
      const auto& counts = known.is_input ? entry.input_counts : entry.output_counts;
      const auto& widths = known.is_input ? entry.input_bytes : entry.output_bytes;
      double bytes = 0;
      for (std::size_t i = 0; i < counts.size(); ++i) {
        bytes += counts[i] * static_cast<double>(i < widths.size() ? widths[i] : 0);
      }
      const auto ranks = ranks_.find(entry.group);
      if (is_measured(bytes, *entry.seconds)) {
        rows.add(std::string(known.collective), ranks == ranks_.end() ? 0 : ranks->second,
                 static_cast<std::int64_t>(bytes), *entry.seconds, line);
      }
      return;
    }
  }

  bool read_document() {
    std::string_view key, ignored;
    if (!json_.begin_object()) return false;
    while (json_.next_key(key)) {
      const bool read = key == "pg_config" ? read_groups()
                        : key == "entries" ? read_array(json_, [this] { return read_entry(); })
                                           : json_.read_raw(ignored);
      if (!read) return false;
    }
    return !json_.failed();
  }

  /// {"0": {"name": "0", "ranks": "[0, 1]"}, ...}; ranks may be a list.
  bool read_groups() {
    std::string_view key, value;
    if (!json_.begin_object()) return false;
    while (json_.next_key(key)) {
      const std::string group(key);
      if (!json_.begin_object()) return false;
      while (json_.next_key(key)) {
        const bool is_ranks = key == "ranks";
        if (!json_.read_raw(value)) return false;
        if (!is_ranks || value.find_first_of("0123456789") == std::string_view::npos) continue;
        ranks_[group] = static_cast<std::uint32_t>(1 + std::ranges::count(value, ','));
      }
      if (json_.failed()) return false;
    }
    return !json_.failed();
  }

  bool read_entry() {
    RecorderEntry entry;
    entry.offset = json_.next_offset();
    std::string_view key, value;
    if (!json_.begin_object()) return false;
    while (json_.next_key(key)) {
      bool read = true;
      if (key == "profiling_name") {
        read = json_.read_string(value);
        entry.name = value;
      } else if (key == "process_group") {
        read = read_group_of(entry.group);
      } else if (key == "input_sizes") {
        read = read_counts(entry.input_counts);
      } else if (key == "output_sizes") {
        read = read_counts(entry.output_counts);
      } else if (key == "input_dtypes") {
        read = read_types(entry.input_bytes);
      } else if (key == "output_dtypes") {
        read = read_types(entry.output_bytes);
      } else if (key == "duration_ms") {
        double seconds = 0;
        if (json_.take_null()) continue;
        read = read_duration(json_, 1e-3, seconds);
        entry.seconds = seconds;
      } else {
        read = json_.read_raw(value);
      }
      if (!read) return false;
    }
    if (json_.failed()) return false;
    entries_.push_back(std::move(entry));
    return true;
  }

  /// ["0", "default_pg"]: the number counts.
  bool read_group_of(std::string& group) {
    std::string_view raw;
    bool is_first = true;
    return read_array(json_, [&] {
      if (!json_.read_raw(raw)) return false;
      if (is_first) group = raw.size() > 1 && raw.front() == '"' ? raw.substr(1, raw.size() - 2) : raw;
      is_first = false;
      return true;
    });
  }

  bool read_counts(std::vector<double>& counts) {
    if (json_.take_null()) return true;
    return read_array(json_, [&] {
      double count = 1;
      const bool read = read_array(json_, [&] {
        std::int64_t length = 0;
        if (!json_.read_integer(length)) return false;
        count *= static_cast<double>(std::max<std::int64_t>(0, length));
        return true;
      });
      counts.push_back(count);
      return read;
    });
  }

  bool read_types(std::vector<std::int64_t>& bytes) {
    if (json_.take_null()) return true;
    std::string_view type;
    return read_array(json_, [&] {
      if (!json_.read_string(type)) return false;
      bytes.push_back(bytes_of_type(type));
      return true;
    });
  }

  std::string_view text_;
  std::string name_;
  JsonCursor json_;
  std::map<std::string, std::uint32_t> ranks_;
  std::vector<RecorderEntry> entries_;
};

}  // namespace

bool is_pickle(std::string_view text) {
  constexpr unsigned char mark = 0x80;
  return text.size() > 2 && static_cast<unsigned char>(text[0]) == mark && text[1] >= 2 && text[1] <= 5;
}

Result<Measurements> read_flight_recorder(std::string_view text, std::string_view name) {
  if (is_pickle(text)) {
    return fail(ErrorCode::unsupported,
                fmt::format("{}:1:1: this is a pickle, which can run any program when it is read", name),
                "if it is your own: python3 -c 'import json,pickle,sys; "
                "json.dump(pickle.load(open(sys.argv[1],\"rb\")),sys.stdout)' FILE > FILE.json");
  }
  return RecorderReader(text, name).read();
}

}  // namespace espalier::compare
