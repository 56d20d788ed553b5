#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/counted.h"
#include "scenario/workload/kineto/cpu_stretches.h"
#include "scenario/workload/kineto/recorded_time.h"
#include "scenario/workload/trace_forms.h"

namespace espalier::scenario {
namespace {

using Json = nlohmann::json;

constexpr double longest_kernel_us = 3600e6;
constexpr const char* record_kernels =
    "write one with torch.profiler, activities CPU and CUDA, and export_chrome_trace";

/// By the names that c10d records; the number is ChakraProtoMsg.CollectiveCommType.
struct TorchCollective {
  std::string_view name;
  std::int64_t comm_type;
};
constexpr std::array<TorchCollective, 19> torch_collectives = {{
    {"allreduce", 0},
    {"all_reduce", 0},
    {"allreduce_coalesced", 0},
    {"reduce", 1},
    {"allgather", 2},
    {"all_gather", 2},
    {"_allgather_base", 2},
    {"all_gather_into_tensor_coalesced", 2},
    {"allgather_into_tensor_coalesced", 2},
    {"gather", 3},
    {"scatter", 4},
    {"broadcast", 5},
    {"_broadcast_oop", 5},
    {"all_to_all", 6},
    {"all_to_allv", 6},
    {"reduce_scatter", 7},
    {"_reduce_scatter_base", 7},
    {"reduce_scatter_tensor_coalesced", 7},
    {"barrier", 9},
}};

/// Bytes of an element by the names of c10::ScalarType.
std::optional<std::int64_t> bytes_of_dtype(std::string_view name) {
  for (const std::string_view one : {"Byte", "Char", "Bool", "Float8_e4m3fn", "Float8_e5m2"}) {
    if (name == one) return 1;
  }
  for (const std::string_view two : {"Short", "Half", "BFloat16"}) {
    if (name == two) return 2;
  }
  for (const std::string_view four : {"Int", "Float"}) {
    if (name == four) return 4;
  }
  for (const std::string_view eight : {"Long", "Double", "ComplexFloat"}) {
    if (name == eight) return 8;
  }
  return std::nullopt;
}

std::string text_of(const Json& map, const char* key) {
  const auto at = map.find(key);
  if (at == map.end()) return {};
  if (at->is_string()) return at->get<std::string>();
  return at->is_number_integer() ? std::to_string(at->get<std::int64_t>()) : std::string();
}

std::int64_t whole_of(const Json& map, const char* key, std::int64_t otherwise) {
  const auto at = map.find(key);
  return at != map.end() && at->is_number_integer() ? at->get<std::int64_t>() : otherwise;
}

/// A kernel, a copy or a fill of the GPU.
struct Kernel {
  KernelRun run;
  const Json* event = nullptr;
  const Json* args = nullptr;
  const Json* call = nullptr;  ///< Where the collective stands that it carries out; its arguments where none does.
};

/// What an event is of; PyTorch before 1.12 wrote it with a capital, and runtime alone.
std::string category_of(const Json& event) {
  std::string category = text_of(event, "cat");
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> old = {
      {{"Kernel", "kernel"}, {"Memcpy", "gpu_memcpy"}, {"Memset", "gpu_memset"}, {"Runtime", "cuda_runtime"}}};
  const auto known = std::ranges::find(old, category, &std::pair<std::string_view, std::string_view>::first);
  return known == old.end() ? category : std::string(known->second);
}

/// Whether a call to the runtime of a GPU or another accelerator gives it something to do; of CUDA's those that ask
/// and set are recorded, too.
bool starts_work(std::string_view category, std::string_view name) {
  if (category == "cuda_runtime" || category == "cuda_driver") return name.find("Launch") != std::string_view::npos;
  return category.ends_with("_runtime") || category.ends_with("_driver");
}

/// Whether a kernel of this name moves data between GPUs: those of NCCL and RCCL of all versions, of the all_reduce
/// that vLLM and SGLang have of their own, and of libraries on NVSHMEM.
bool communicates(std::string name) {
  for (char& letter : name) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  return ((has("nccl") || has("rccl")) && has("kernel")) || has("cross_device_reduce") || has("nvshmem") ||
         has("deep_ep::");
}

class KinetoReader {
 public:
  KinetoReader(const std::string& name, std::size_t ranks, WaitReading reading, bool is_spmd)
      : name_(name), ranks_(ranks), reading_(reading), is_spmd_(is_spmd) {}

  Result<KinetoTrace> read(std::string_view text) {
    const Json document = Json::parse(text, nullptr, false);
    if (document.is_discarded() || !document.is_object()) return broken("no JSON object");
    const auto events = document.find("traceEvents");
    if (events == document.end() || !events->is_array()) return broken("there are no traceEvents");
    read_groups(document);
    for (const Json& event : *events) note_call(event);
    for (const Json& event : *events) take(event);
    if (kernels_.empty() && launches_ > 0) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: {} gave a GPU or another device something to do, and nothing of what it did is read",
                              name_, counted(launches_, "call")),
                  record_kernels);
    }
    if (kernels_.empty()) return read_processors(*events);
    std::ranges::stable_sort(kernels_, {}, [](const Kernel& kernel) { return kernel.run.begin; });
    if (kernels_.size() > max_tasks / 4) return fail(ErrorCode::too_large, name_ + " has too many kernels");
    std::vector<KernelRun> runs;
    for (const Kernel& kernel : kernels_) runs.push_back(kernel.run);
    KernelWaits waits(std::move(runs), calls_, std::move(recorded_), reading_);
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      if (auto added = add(i, waits.of(i)); !added) return tl::unexpected(added.error());
    }
    trace_.guessed = waits.guessed();
    std::vector<BusyTime> times;
    for (const Kernel& kernel : kernels_) times.push_back({kernel.run.begin, kernel.run.end, kernel.run.communicates});
    trace_.recorded = time_recorded(times);
    return std::move(trace_);
  }

 private:
  /// What the threads of a rank without GPU did.
  Result<KinetoTrace> read_processors(const Json& events) {
    if (listed_.size() > 1) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: there are {} process groups, and ranges on the CPU do not say whose they are", name_,
                              listed_.size()),
                  "traces of training on the CPU are read where all ranks are one group");
    }
    what_ = "call";
    auto read = read_cpu_stretches(events, name_, ranks_of_group(), reading_);
    if (!read) return tl::unexpected(read.error());
    if (read->stretches.empty()) return broken("no kernel of a GPU and no operator of a processor ran");
    if (read->stretches.size() > max_tasks / 4) return fail(ErrorCode::too_large, name_ + " has too many calls");
    std::vector<BusyTime> times;
    std::vector<double> ends;
    for (const CpuStretch& stretch : read->stretches) {
      double ready = read->stretches.front().begin;
      std::vector<std::uint64_t> after;
      for (const std::size_t before : stretch.after) {
        after.push_back(ids_[before]);
        ready = std::max(ready, std::min(ends[before], stretch.begin));
      }
      const KernelRun run{stretch.begin, stretch.end, 0, -1, !stretch.call.is_null()};
      if (auto added = add_node(stretch.name, run, stretch.call, std::move(after), stretch.begin - ready); !added) {
        return tl::unexpected(added.error());
      }
      times.push_back({stretch.begin, stretch.end, run.communicates});
      ends.push_back(stretch.end);
    }
    trace_.guessed = read->guessed;
    trace_.recorded = time_recorded(times);
    return std::move(trace_);
  }

  /// The one group of a trace on processors: as many ranks as it says itself, else one for each trace.
  [[nodiscard]] std::size_t ranks_of_group() const {
    return listed_.empty() || listed_.begin()->second.empty() ? ranks_ : listed_.begin()->second.size();
  }

  [[nodiscard]] tl::unexpected<Error> broken(std::string_view what) const {
    return fail(ErrorCode::invalid_input, fmt::format("{}: not a trace of the PyTorch profiler: {}", name_, what),
                record_kernels);
  }
  [[nodiscard]] std::string place(const ChakraNode& node) const {
    return fmt::format("{}: {} '{}'", name_, what_, node.name);
  }

  /// The ranks of process groups that the head of the trace lists.
  void read_groups(const Json& document) {
    const auto info = document.find("distributedInfo");
    if (info == document.end() || !info->is_object()) return;
    if (is_spmd_) ranks_ = static_cast<std::size_t>(std::max<std::int64_t>(1, whole_of(*info, "world_size", 1)));
    const auto groups = info->find("pg_config");
    if (groups == info->end() || !groups->is_array()) return;
    for (const Json& group : *groups) {
      if (!group.is_object() || !group.contains("ranks") || !group["ranks"].is_array()) continue;
      std::vector<std::size_t> ranks;
      for (const Json& rank : group["ranks"]) {
        if (rank.is_number_unsigned()) ranks.push_back(rank.get<std::size_t>());
      }
      listed_[text_of(group, "pg_name")] = std::move(ranks);
    }
  }

  /// Calls of c10d on the CPU: a kernel without arguments of its own has their number as its External id.
  void note_call(const Json& event) {
    const auto args = event.is_object() ? event.find("args") : event.end();
    if (!event.is_object() || args == event.end() || !args->is_object()) return;
    const std::string id = text_of(*args, "External id");
    if (!id.empty() && args->contains("Collective name") && text_of(event, "cat") == "cpu_op")
      collectives_[id] = &*args;
  }

  void take(const Json& event) {
    if (!event.is_object() || text_of(event, "ph") != "X") return;
    const std::string category = category_of(event);
    if (starts_work(category, text_of(event, "name"))) ++launches_;
    const bool is_kernel = category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset";
    const bool is_call = category == "cuda_runtime" || category == "cuda_driver";
    if (!is_kernel && !is_call && category != "cuda_sync") return;
    const auto begin = event.find("ts"), length = event.find("dur"), args = event.find("args");
    if (begin == event.end() || length == event.end() || !begin->is_number() || !length->is_number()) return;
    static const Json none = Json::object();
    const Json& values = args != event.end() && args->is_object() ? *args : none;
    const double from = begin->get<double>(), to = from + std::clamp(length->get<double>(), 0.0, longest_kernel_us);
    if (!std::isfinite(from)) return;
    const std::int64_t correlation = whole_of(values, "correlation", -1);
    if (is_call) {
      calls_.push_back({from, to, correlation, text_of(event, "name")});
    } else if (!is_kernel) {
      take_wait(text_of(event, "name"), values, correlation);
    } else {
      const Json* call = &values;
      const bool by_name = communicates(text_of(event, "name"));
      if (by_name && !values.contains("Collective name")) {
        if (const auto known = collectives_.find(text_of(values, "External id")); known != collectives_.end()) {
          call = known->second;
        }
      }
      const bool is_collective = by_name || !text_of(values, "Collective name").empty();
      const std::int64_t stream = whole_of(values, "stream", whole_of(event, "tid", 0));
      kernels_.push_back({{from, to, stream, correlation, is_collective}, &event, &values, call});
    }
  }

  /// What the driver records of synchronisation (the profiler's enable_cuda_sync_events).
  void take_wait(std::string_view name, const Json& values, std::int64_t correlation) {
    constexpr std::array<std::pair<std::string_view, RecordedWait::Kind>, 4> kinds = {
        {{"Stream Wait Event", RecordedWait::Kind::stream_waits_for_event},
         {"Event Sync", RecordedWait::Kind::host_waits_for_event},
         {"Stream Sync", RecordedWait::Kind::host_waits_for_stream},
         {"Context Sync", RecordedWait::Kind::host_waits_for_all}}};
    const auto kind = std::ranges::find(kinds, name, &std::pair<std::string_view, RecordedWait::Kind>::first);
    if (kind == kinds.end() || correlation < 0) return;
    recorded_.push_back({kind->second, correlation, whole_of(values, "stream", -1),
                         whole_of(values, "wait_on_stream", -1),
                         whole_of(values, "wait_on_cuda_event_record_corr_id", -1)});
  }

  /// Adds a kernel behind what it waits for.
  Result<void> add(std::size_t at, const std::vector<std::size_t>& waits) {
    const KernelRun& run = kernels_[at].run;
    std::vector<std::uint64_t> after;
    double ready = kernels_.front().run.begin;
    for (const std::size_t before : waits) {
      after.push_back(ids_[before]);
      ready = std::max(ready, std::min(kernels_[before].run.end, run.begin));
    }
    const std::string name = text_of(*kernels_[at].event, "name");
    return add_node(name, run, *kernels_[at].call, std::move(after), run.begin - ready);
  }

  /// Adds a pause of so many us and, behind it, what ran: a call of such arguments where it communicates.
  Result<void> add_node(const std::string& name, const KernelRun& run, const Json& call,
                        std::vector<std::uint64_t> after, double pause_us) {
    ChakraNode pause;
    pause.id = trace_.nodes.size();
    pause.name = "pause";
    pause.after = std::move(after);
    pause.duration_ns =
        static_cast<std::uint64_t>(std::llround(std::min(std::max(pause_us, 0.0), longest_kernel_us) * 1000));
    ChakraNode node;
    node.id = pause.id + 1;
    node.name = name.substr(0, 60);
    node.after = {pause.id};
    node.stream = no_stream;
    if (!run.communicates) {
      node.type = ChakraType::compute;
      node.duration_ns = static_cast<std::uint64_t>(std::llround((run.end - run.begin) * 1000));
    } else if (auto filled = fill(node, call); !filled) {
      return filled;
    }
    ids_.push_back(node.id);
    trace_.nodes.push_back(std::move(pause));
    trace_.nodes.push_back(std::move(node));
    return {};
  }

  /// Fills what a call of such arguments does; the node has its name.
  Result<void> fill(ChakraNode& node, const Json& call) {
    const std::string collective = text_of(call, "Collective name");
    const auto element = bytes_of_dtype(text_of(call, "dtype"));
    const std::int64_t in = whole_of(call, "In msg nelems", -1);
    const std::int64_t out = whole_of(call, "Out msg nelems", -1);
    const std::int64_t count = std::max(in, out);
    const bool is_barrier = collective == "barrier";
    if (!is_barrier && (!element || count < 0 || count > max_message_size.count / 8)) {
      return fail(ErrorCode::unsupported, place(node) + " does not say how much it carries",
                  "traces of PyTorch 2.3 and later have dtype and msg nelems beside each kernel of NCCL");
    }
    node.comm_size = is_barrier ? 0 : count * *element;
    if (collective == "send" || collective == "recv") return fill_message(node, call, collective == "send");
    const auto known = std::ranges::find(torch_collectives, collective, &TorchCollective::name);
    if (known == torch_collectives.end()) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: there is no collective for '{}'", place(node), collective.substr(0, 60)));
    }
    node.type = ChakraType::collective;
    node.comm_type = known->comm_type;
    return set_group(node, call);
  }

  Result<void> fill_message(ChakraNode& node, const Json& call, bool sends) const {
    if (is_spmd_) {
      return fail(ErrorCode::unsupported, place(node) + " is a message: whom other ranks would send to is not known",
                  "'spmd' takes calls of all ranks alone");
    }
    const std::int64_t peer = whole_of(call, sends ? "Dst Rank" : "Src Rank", -1);
    if (peer < 0) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{} does not say which rank it is {}", place(node), sends ? "for" : "from"));
    }
    node.type = sends ? ChakraType::send : ChakraType::receive;
    (sends ? node.comm_dst : node.comm_src) = peer;
    return {};
  }

  Result<void> set_group(ChakraNode& node, const Json& call) {
    const std::int64_t size = whole_of(call, "Group size", -1);
    const std::string name = text_of(call, "Process Group Name");
    std::optional<std::vector<std::size_t>> ranks = read_ranks(text_of(call, "Process Group Ranks"));
    const auto listed = listed_.find(name);
    if (!ranks && listed != listed_.end()) ranks = listed->second;
    if (is_spmd_) {
      const std::int64_t of_group = ranks ? static_cast<std::int64_t>(ranks->size()) : size;
      if (of_group == static_cast<std::int64_t>(ranks_)) return {};
      return fail(
          ErrorCode::unsupported,
          fmt::format("{}: its group '{}' has {} of {} ranks", place(node), name.substr(0, 60), of_group, ranks_),
          "'spmd' takes calls of all ranks alone");
    }
    if (!ranks && size == static_cast<std::int64_t>(ranks_)) return {};  // All of them.
    if (!ranks || (size >= 0 && static_cast<std::int64_t>(ranks->size()) != size)) {
      return fail(ErrorCode::unsupported, fmt::format("{} does not say which {} ranks its group '{}' has", place(node),
                                                      size, name.substr(0, 60)));
    }
    std::ranges::sort(*ranks);
    if (std::ranges::adjacent_find(*ranks) != ranks->end() || ranks->empty() || ranks->back() >= ranks_) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: its group '{}' does not fit {} traces", place(node), name.substr(0, 60), ranks_),
                  "give the trace of every rank");
    }
    node.group = fmt::format("{} [{}]", name, fmt::join(*ranks, ","));
    trace_.groups[node.group] = *std::move(ranks);
    return {};
  }

  /// "[0, 1]"; nothing where the list is not whole: it ends in ... behind 30 ranks.
  static std::optional<std::vector<std::size_t>> read_ranks(std::string_view text) {
    if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
    text = text.substr(1, text.size() - 2);
    std::vector<std::size_t> ranks;
    while (!text.empty()) {
      const std::size_t begin = text.find_first_not_of(" ,");
      if (begin == std::string_view::npos) break;
      text.remove_prefix(begin);
      std::size_t rank = 0;
      const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), rank);
      if (status != std::errc()) return std::nullopt;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      ranks.push_back(rank);
    }
    return ranks;
  }

  const std::string& name_;
  std::size_t ranks_;
  WaitReading reading_;
  bool is_spmd_;
  std::string_view what_ = "kernel";  ///< That communicates.
  KinetoTrace trace_;
  std::vector<Kernel> kernels_;
  std::map<std::string, const Json*> collectives_;  ///< Calls on the CPU, by External id: their arguments.
  std::vector<std::uint64_t> ids_;                  ///< By kernel: the node of what it does.
  std::map<std::string, std::vector<std::size_t>> listed_;
  std::vector<HostCall> calls_;
  std::size_t launches_ = 0;  ///< Calls on the CPU that gave a device something to do.
  std::vector<RecordedWait> recorded_;
};

}  // namespace

Result<KinetoTrace> read_kineto(std::string_view text, const std::string& name, std::size_t ranks, WaitReading reading,
                                bool is_spmd) {
  return KinetoReader(name, ranks, reading, is_spmd).read(text);
}

}  // namespace espalier::scenario
