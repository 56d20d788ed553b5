#include "compare/read/read_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "compare/read/others/readers.h"
#include "compare/read/read_tables.h"
#include "schedule/timeline/binary_timeline.h"
#include "schedule/timeline/chrome_trace.h"
#include "topology/import/known_files.h"

namespace espalier::compare {
namespace {

enum class Kind {
  chrome_trace,
  binary_timeline,
  results,
  nccl_json,
  tables,
  inspector,
  flight_recorder,
  perftest_json,
  nvbandwidth_json,
  profiler_trace,
  plan,
  topology,
  other
};

/// Of several marks in a JSON text the first one decides.
Kind kind_of_json(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Kind>, 10> marks = {{{"\"espalier_timeline\"", Kind::chrome_trace},
                                                                        {"\"nvbandwidth\"", Kind::nvbandwidth_json},
                                                                        {"\"test_info\"", Kind::perftest_json},
                                                                        {"\"espalier/results/", Kind::results},
                                                                        {"\"espalier_schedule\"", Kind::plan},
                                                                        {"\"espalier\"", Kind::topology},
                                                                        {"\"nccl_version\"", Kind::nccl_json},
                                                                        {"\"out_of_place\"", Kind::nccl_json},
                                                                        {"\"coll_perf\"", Kind::inspector},
                                                                        {"\"pg_config\"", Kind::flight_recorder}}};
  std::size_t first = std::string_view::npos;
  Kind kind = Kind::other;
  for (const auto& [mark, meaning] : marks) {
    const std::size_t at = text.find(mark);
    if (at >= first) continue;
    first = at;
    kind = meaning;
  }
  // A profiler's trace names its process groups as the recorder does.
  const bool is_trace = kind == Kind::flight_recorder && text.find("\"traceEvents\"") != std::string_view::npos;
  return is_trace ? Kind::profiler_trace : kind;
}

Kind kind_of(std::string_view text) {
  if (text.starts_with("ESPTIME")) return Kind::binary_timeline;
  if (is_pickle(text)) return Kind::flight_recorder;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return Kind::other;
  if (text[first] == '{') return kind_of_json(text);
  return text.substr(first).starts_with("espalier:") ? Kind::topology : Kind::tables;
}

/// What a text is that is no run. Nothing for what nccl-tests printed, also with NCCL's log around it: what is wrong
/// with its rows says more.
std::optional<KnownFile> recognise_other(std::string_view text) {
  const auto known = recognise_file(text);
  const bool may_have_rows = text.find("NCCL INFO ") != std::string_view::npos;
  return known && (known->is_run || may_have_rows) ? std::nullopt : known;
}

/// Times of a timeline that add up to less than 2^62 ps (53 days), so that nothing that is summed overflows.
Result<Timeline> checked(Result<Timeline> timeline, std::string_view name) {
  if (!timeline) return timeline;
  constexpr __int128 limit = __int128{1} << 62;
  __int128 sum = 0;
  for (const Span& span : timeline->spans) {
    sum += span.end.count - static_cast<__int128>(span.begin.count);
    if (span.begin.count < -limit / 2 || span.end.count > limit / 2) sum = limit;
    if (sum >= limit) {
      return fail(ErrorCode::too_large, std::string(name) + ":1:1: the timeline's times add up to more than 53 days");
    }
  }
  return timeline;
}

template <class T>
Result<RunFile> widen(Result<T> read) {
  if (!read) return tl::unexpected(std::move(read.error()));
  return RunFile(std::move(*read));
}

}  // namespace

Result<RunFile> read_run(std::string_view text, std::string_view name, const NcclTestsHints& hints) {
  const auto refuse = [&](const char* what, const char* help) {
    return fail(ErrorCode::invalid_input, std::string(name) + ":1:1: " + what, help);
  };
  const auto refuse_known = [&](const KnownFile& file) {
    return fail(ErrorCode::unsupported, fmt::format("{}:1:1: this is {}, not a run", name, file.what),
                std::string(file.help));
  };
  switch (kind_of(text)) {
    case Kind::chrome_trace: return widen(checked(read_chrome_trace(text, name), name));
    case Kind::binary_timeline: return widen(checked(read_binary_timeline(text, name), name));
    case Kind::results: return widen(read_results(text, name));
    case Kind::nccl_json: return widen(read_nccl_tests_json(text, name, hints));
    case Kind::tables: {
      auto rows = read_tables(text, name, hints);
      if (rows || has_other_table(text)) return widen(std::move(rows));
      if (const auto known = recognise_other(text)) return refuse_known(*known);
      return widen(std::move(rows));
    }
    case Kind::inspector: return widen(read_nccl_inspector(text, name));
    case Kind::flight_recorder: return widen(read_flight_recorder(text, name));
    case Kind::perftest_json: return widen(read_perftest_json(text, name));
    case Kind::nvbandwidth_json: return widen(read_nvbandwidth_json(text, name));
    case Kind::profiler_trace:
      return refuse("this is a trace of PyTorch's profiler, which has no times of a size",
                    "espalier diagnose MACHINE FILE FILE... takes those of several ranks and names who comes late");
    case Kind::plan: return refuse("this is a plan, not a run of it", "espalier simulate PLAN --json or --trace FILE");
    case Kind::topology:
      return refuse("this is a topology, not a run on it", "espalier simulate TOPOLOGY COLLECTIVE --json");
    case Kind::other: break;
  }
  if (const auto known = recognise_other(text)) return refuse_known(*known);
  return refuse("this is neither a timeline nor results",
                "give what --trace or --json of simulate and run write, or what nccl-tests prints (docs/compare.md)");
}

}  // namespace espalier::compare
