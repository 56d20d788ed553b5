#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "scenario/read/scenario_codes.h"
#include "scenario/read/scenario_keys.h"
#include "scenario/read/scenario_reading.h"
#include "scenario/workload/trace_forms.h"
#include "scenario/workload/unpack_gzip.h"
#include "topology/yaml/read_codes.h"

namespace espalier::scenario {
namespace {

tl::unexpected<Error> too_large(const std::string& name, std::size_t most) {
  return fail(ErrorCode::too_large,
              fmt::format("{} and the traces before it have more than {} bytes, unpacked", name, most),
              "raise the limit with --max-input if they are meant to be as large");
}

Result<std::string> read_bytes(const std::filesystem::path& path, std::size_t most) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return fail(ErrorCode::unavailable, "cannot read " + path.string());
  std::string bytes;
  std::string block(std::size_t{1} << 16U, '\0');
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    bytes.append(block, 0, static_cast<std::size_t>(stream.gcount()));
    if (bytes.size() > most) return too_large(path.filename().string(), most);
  }
  return bytes;
}

/// What the traces of all ranks say, in whichever form they are.
struct Traces {
  std::vector<std::vector<ChakraNode>> nodes;              ///< By rank.
  std::map<std::string, std::vector<std::size_t>> groups;  ///< That the traces define themselves.
  std::uint64_t guessed = 0;                               ///< KinetoTrace::guessed of all.
  std::vector<RecordedTime> recorded;                      ///< Of a profiler's traces.
};

/// A file of the folder as far as there is room, unpacked; takes its size off the room.
Result<std::string> read_unpacked(const std::filesystem::path& folder, const std::string& name, std::size_t& room,
                                  std::size_t max_bytes) {
  auto bytes = read_bytes(folder / name, room);
  if (!bytes) return bytes;
  if (is_gzip(*bytes)) {
    bytes = unpack_gzip(*bytes, room);
    if (!bytes && bytes.error().code == ErrorCode::too_large) return too_large(name, max_bytes);
    if (!bytes) return fail(bytes.error().code, name + ": " + bytes.error().message, bytes.error().help);
  }
  room -= bytes->size();
  return bytes;
}

/// PREFIX.RANK.SUFFIX or the same with .gz, whichever is there; nothing when neither is.
std::optional<std::string> find_trace(const std::filesystem::path& folder, const std::string& prefix, std::size_t rank,
                                      std::string_view suffix) {
  std::error_code status;
  const std::string name = fmt::format("{}.{}.{}", prefix, rank, suffix);
  for (const std::string& written : {name, name + ".gz"}) {
    if (std::filesystem::exists(folder / written, status)) return written;
  }
  return std::nullopt;
}

/// The traces PREFIX.0.et, PREFIX.1.et, ... or .json as far as they are there; or one file of all ranks, PREFIX itself,
/// when it ends in .goal or, compiled, in .bin.
Result<Traces> read_traces(const std::filesystem::path& folder, const std::string& prefix, std::size_t most,
                           std::size_t max_bytes, WaitReading reading, bool is_spmd) {
  std::size_t room = max_bytes;
  Traces traces;
  const bool is_compiled = prefix.ends_with(".bin") || prefix.ends_with(".bin.gz");
  if (is_compiled || prefix.ends_with(".goal") || prefix.ends_with(".goal.gz")) {
    const auto text = read_unpacked(folder, prefix, room, max_bytes);
    if (!text) return tl::unexpected(text.error());
    auto nodes =
        is_compiled || is_goal_binary(*text) ? read_goal_binary(*text, prefix, most) : read_goal(*text, prefix, most);
    if (!nodes) return tl::unexpected(nodes.error());
    traces.nodes = *std::move(nodes);
    return traces;
  }
  const bool is_kineto = !find_trace(folder, prefix, 0, "et") && find_trace(folder, prefix, 0, "json");
  const std::string_view suffix = is_kineto ? "json" : "et";
  std::vector<std::string> names;
  while (auto name = find_trace(folder, prefix, names.size(), suffix)) {
    names.push_back(*std::move(name));
    if (names.size() > most) {
      return fail(ErrorCode::invalid_input, fmt::format("there are traces of more than {} ranks", most));
    }
  }
  if (names.empty()) names.push_back(fmt::format("{}.0.et", prefix));  // To say that it cannot be read.
  for (const std::string& name : names) {
    const auto bytes = read_unpacked(folder, name, room, max_bytes);
    if (!bytes) return tl::unexpected(bytes.error());
    if (is_kineto) {
      auto read = read_kineto(*bytes, name, names.size(), reading, is_spmd);
      if (!read) return tl::unexpected(read.error());
      traces.nodes.push_back(std::move(read->nodes));
      traces.groups.merge(read->groups);
      traces.guessed += read->guessed;
      traces.recorded.push_back(read->recorded);
      continue;
    }
    auto nodes = read_chakra(*bytes, name);
    if (!nodes) return tl::unexpected(nodes.error());
    traces.nodes.push_back(*std::move(nodes));
  }
  return traces;
}

}  // namespace

void read_trace(ScenarioContext& context, const Fields& fields, const std::vector<Rank>& ranks) {
  for (const std::string_view key : scenario_keys::training) {
    if (!fields.has(key) || std::ranges::find(scenario_keys::trace, key) != scenario_keys::trace.end()) continue;
    context.error(fields.mark_of(key), read_codes::keys_conflict, fmt::format("'{}' does not go with 'trace'", key),
                  "a trace says itself what is computed; beside it stand ranks, type, flops and chunk");
    return;
  }
  const auto prefix = fields.text("trace");
  const auto type = read_type(context, fields, "type");
  const auto rate = read_flop_rate(context, fields, "flops");
  const auto chunk = read_chunk(context, fields);
  const auto spmd = fields.boolean("spmd");
  if (!prefix || !chunk || (fields.has("type") && !type) || (fields.has("flops") && !rate) ||
      (fields.has("spmd") && !spmd)) {
    return;
  }
  const bool is_spmd = spmd.value_or(false);
  const Mark mark = fields.mark_of("trace");
  if (!context.folder || prefix->empty() || leaves_folder(*prefix)) {
    context.error(mark, scenario_codes::bad_trace, "traces lie in the scenario's folder or below it",
                  "write 'trace: step' for the files step.0.et, step.1.et, ...");
    return;
  }
  auto traces = read_traces(*context.folder, *prefix, ranks.size(), context.options.max_trace_bytes,
                            context.options.kernel_waits, is_spmd);
  if (!traces) return context.error(mark, scenario_codes::bad_trace, traces.error());
  if (is_spmd && traces->recorded.empty()) {
    return context.error(fields.mark_of("spmd"), scenario_codes::bad_trace,
                         "'spmd' is for traces of the PyTorch profiler",
                         "leave it out, and give the trace of every rank");
  }
  if (is_spmd) {
    const std::size_t recorded = traces->nodes.size();
    for (std::size_t rank = recorded; rank < ranks.size(); ++rank) {
      traces->nodes.push_back(traces->nodes[rank % recorded]);
    }
  }
  ChakraOptions options{ranks, {}, type.value_or(ElementType::float32), rate, *chunk};
  for (const auto& [name, of_traces] : traces->groups) {
    for (const std::size_t rank : of_traces) options.groups[name].push_back(ranks[rank]);
  }
  const Job& job = context.scenario.job;
  for (const auto& [name, groups] : context.groups) {
    if (groups.size() == 1) options.groups[name].assign(job.ranks(groups[0]).begin(), job.ranks(groups[0]).end());
  }
  context.scenario.guessed_waits += traces->guessed;
  for (const RecordedTime& one : traces->recorded) {
    RecordedTime& all = context.scenario.recorded;
    all.elapsed_us = std::max(all.elapsed_us, one.elapsed_us);
    all.exposed_us += one.exposed_us / static_cast<double>(traces->recorded.size());
  }
  const auto added = add_chakra(context.scenario.job, traces->nodes, options);
  if (!added) context.error(mark, scenario_codes::bad_trace, added.error());
}

}  // namespace espalier::scenario
