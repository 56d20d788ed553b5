#include "cli/jobs/run_task.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/parse_units.h"
#include "cli/flags/algorithm_flags.h"
#include "forecast/sources/advisor.h"
#include "planners/pacing_search.h"

namespace espalier::cli {
namespace {

constexpr std::int64_t max_processors = 1024;

/// Whose costs auto counts where no --profile says so: sockets', or those that the machine names if they are the
/// engine's own. A machine of GPUs whose schedules run on processors here says nothing of them.
std::string usual_profile(const RunFlags& flags, const RunTask& task, const Input& input) {
  if (task.transport == TransportChoice::tcp || !flags.addresses.empty()) return "espalier-tcp";
  return input.profile.starts_with("espalier-") ? input.profile : std::string();
}

Result<void> check_algorithm(const std::string& algorithm) {
  const auto named = parse_algorithms(algorithm);
  if (!named) return tl::unexpected(named.error());
  if (named->size() == 1) return {};
  return fail(ErrorCode::invalid_input, fmt::format("-a {}: run measures one algorithm at a time", algorithm),
              "name one, or auto; espalier simulate and espalier lab compare several");
}

/// Of this machine, whichever of them a rank may use: all ranks have to choose alike.
std::uint32_t online_processors() {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(sysconf(_SC_NPROCESSORS_ONLN), 1, max_processors));
}

}  // namespace

Result<RunTask> resolve_run(const RunFlags& flags, const Input& input) {
  RunTask task;
  std::optional<Bytes> of_matrix;
  if (auto checked = check_algorithm(flags.algorithm); !checked) return tl::unexpected(checked.error());
  if (input.schedule) {
    task.collective = input.schedule->collective;
  } else {
    auto sized = flags.collective.resolve_sized(input.topology);
    if (!sized) return tl::unexpected(sized.error());
    task.collective = std::move(sized->collective);
    of_matrix = sized->size;
  }
  if (task.collective.has_matrix() && (flags.device == "cuda" || flags.device == "cuda-copies")) {
    return fail(ErrorCode::unsupported, "--device cuda carries out equal blocks, and this is a traffic matrix",
                "leave --device out, or write --device cuda-ranks");
  }
  const auto type = parse_element_type(flags.sizes.type);
  if (!type) return tl::unexpected(type.error());
  const auto operation = parse_reduce_operation(flags.operation);
  if (!operation) return tl::unexpected(operation.error());
  const auto transport = parse_transport(flags.transport);
  if (!transport) return tl::unexpected(transport.error());
  auto sizes = parse_sizes(flags.sizes, *type);
  if (!sizes) return tl::unexpected(sizes.error());
  if (!flags.chunk.empty()) {
    const auto chunk = parse_size(flags.chunk);
    if (!chunk) return fail(chunk.error().code, "--chunk: " + chunk.error().message, chunk.error().help);
    task.chunk = Bytes{std::max(chunk->count, size_of(*type))};
  }
  const auto ahead = parse_ahead(flags.ahead);
  if (!ahead) return tl::unexpected(ahead.error());
  task.ahead = *ahead;
  task.type = *type;
  task.operation = *operation;
  task.transport = *transport;
  auto profile = flags.profile.resolve({}, usual_profile(flags, task, input));
  if (!profile) return tl::unexpected(profile.error());
  task.profile = *std::move(profile);
  task.sizes = std::move(*sizes);
  if (of_matrix && !flags.names_size) task.sizes = {whole_elements(*of_matrix, *type)};
  return task;
}

engine::DataCase data_of(const RunTask& task, Bytes size) {
  engine::DataCase data;
  data.kind = task.collective.kind;
  data.type = task.type;
  data.operation = task.operation;
  data.ranks = task.collective.rank_count;
  data.root = has_root(data.kind) ? task.collective.root.value() : 0;
  data.count = static_cast<std::size_t>(size.count / size_of(task.type));
  data.shares = task.collective.shares;
  return data;
}

ScheduleSource source_for(const RunFlags& flags, const RunTask& task, bool is_one_machine, Input& input,
                          std::function<Result<double>(const planners::Candidate&, Bytes)> seconds_there) {
  forecast::AdvisorOptions options;
  options.seconds_there = std::move(seconds_there);
  options.algorithm = input.schedule ? "auto" : flags.algorithm;
  options.chunk = task.chunk;
  options.ahead = task.ahead;
  if (task.profile) {
    auto costs = std::make_shared<profile::Profile>(task.profile->profile);
    // Ranks that are all on this machine share its processors.
    if (is_one_machine && costs->processors == 0) costs->processors = online_processors();
    options.profile = std::move(costs);
  }
  // Who names an algorithm or a plan wants to see it run, and so does who wants its timeline.
  options.may_be_replaced = options.algorithm == "auto" && flags.trace.file.empty();
  options.shares_memory = is_one_machine && takes_shared_memory(task.transport);
  options.leaves_chunk_to_engine = true;  // The model's chunk is for links; memory and sockets have caches.
  const auto advise = [&] {
    return forecast::Advisor::source(std::make_shared<forecast::Advisor>(input.topology, options));
  };
  ScheduleSource advised = advise();
  if (input.schedule) {
    auto plan = std::make_shared<const Schedule>(std::move(*input.schedule));
    return [plan, advised, given = planners::FixedPacing{task.chunk, task.ahead}](
               const Collective& collective, Bytes size) -> Result<SourcedSchedule> {
      if (!(collective == plan->collective)) return advised(collective, size);
      // Rounds are of the plan's own chunk, which is for links.
      return SourcedSchedule{plan, given.chunk.value_or(Bytes{}), false, given.ahead.value_or(0)};
    };
  }
  if (options.algorithm == "auto") return advised;
  // The algorithm is for what is measured: what ranks agree on besides need not be of its kind.
  options.algorithm = "auto";
  return [advised, besides = advise(), kind = task.collective.kind](const Collective& collective, Bytes size) {
    return collective.kind == kind ? advised(collective, size) : besides(collective, size);
  };
}

Result<void> check_run(const RunFlags& flags, const Input& input) {
  const auto task = resolve_run(flags, input);
  if (!task) return tl::unexpected(task.error());
  if (const auto verbs = flags.verbs.resolve(); !verbs) return tl::unexpected(verbs.error());
  return {};
}

}  // namespace espalier::cli
