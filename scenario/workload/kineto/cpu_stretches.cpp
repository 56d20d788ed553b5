#include "scenario/workload/kineto/cpu_stretches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "scenario/workload/trace_forms.h"

namespace espalier::scenario {
namespace {

using Json = nlohmann::json;

constexpr std::size_t no_stretch = std::numeric_limits<std::size_t>::max();

/// Where a call ended in a gap between operators, the thread waited for it if it ended so long after the gap's begin:
/// operators follow each other within some microseconds, so that calls end in gaps by chance.
constexpr double shortest_wait_us = 50;
constexpr double max_span_us = 3600e6;

/// Operators of torch.distributed, and what the backends' ranges call the same.
constexpr std::array<std::pair<std::string_view, std::string_view>, 19> issuing_operators = {{
    {"allreduce_", "all_reduce"},
    {"allreduce_coalesced_", "all_reduce"},
    {"broadcast_", "broadcast"},
    {"reduce_", "reduce"},
    {"allgather_", "all_gather"},
    {"_allgather_base_", "all_gather"},
    {"allgather_coalesced_", "all_gather"},
    {"allgather_into_tensor_coalesced_", "all_gather"},
    {"gather_", "gather"},
    {"scatter_", "scatter"},
    {"reduce_scatter_", "reduce_scatter"},
    {"_reduce_scatter_base_", "reduce_scatter"},
    {"reduce_scatter_tensor_coalesced_", "reduce_scatter"},
    {"alltoall_", "all_to_all"},
    {"alltoall_base_", "all_to_all"},
    {"send", "send"},
    {"recv_", "recv"},
    {"recv_any_source_", "recvAnySource"},
    {"barrier", "barrier"},
}};

/// What the profiler calls element types, and c10::ScalarType's names.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> element_names = {{
    {"float", "Float"},
    {"double", "Double"},
    {"c10::Half", "Half"},
    {"c10::BFloat16", "BFloat16"},
    {"c10::Float8_e4m3fn", "Float8_e4m3fn"},
    {"c10::Float8_e5m2", "Float8_e5m2"},
    {"unsigned char", "Byte"},
    {"signed char", "Char"},
    {"bool", "Bool"},
    {"short int", "Short"},
    {"int", "Int"},
    {"long int", "Long"},
    {"c10::complex<float>", "ComplexFloat"},
}};

std::string text_in(const Json& map, const char* key) {
  const auto at = map.find(key);
  return at != map.end() && at->is_string() ? at->get<std::string>() : std::string();
}

/// The elements of a tensor's dimensions, [2, 3], or of a list of such; nothing where it is no such list.
std::optional<std::int64_t> count_elements(const Json& dims) {
  if (!dims.is_array() || dims.empty()) return std::nullopt;
  if (dims.front().is_array()) {
    std::int64_t sum = 0;
    for (const Json& one : dims) {
      const auto count = count_elements(one);
      if (!count || *count > (std::int64_t{1} << 60) - sum) return std::nullopt;
      sum += *count;
    }
    return sum;
  }
  std::int64_t product = 1;
  for (const Json& dim : dims) {
    if (!dim.is_number_unsigned()) return std::nullopt;
    const auto size = dim.get<std::uint64_t>();
    if (size > (std::uint64_t{1} << 40) || __builtin_mul_overflow(product, static_cast<std::int64_t>(size), &product))
      return std::nullopt;
  }
  return product;
}

/// The elements of an event's first input.
std::optional<std::int64_t> first_input(const Json& event) {
  const auto args = event.find("args");
  if (args == event.end() || !args->is_object()) return std::nullopt;
  const auto dims = args->find("Input Dims");
  if (dims == args->end() || !dims->is_array() || dims->empty()) return std::nullopt;
  return count_elements(dims->front());
}

/// The whole number that an operator was given as its input `index`.
std::optional<std::int64_t> number_given(const Json& event, std::size_t index) {
  const auto args = event.find("args");
  if (args == event.end() || !args->is_object()) return std::nullopt;
  const auto given = args->find("Concrete Inputs");
  if (given == args->end() || !given->is_array() || given->size() <= index || !(*given)[index].is_string())
    return std::nullopt;
  const auto& text = (*given)[index].get_ref<const std::string&>();
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// An event with a begin and an end on a thread.
struct Span {
  double begin = 0;
  double end = 0;
  std::int64_t thread = 0;
  std::string kind;  ///< Of a call or of the operator that issues one, as the backends' ranges have it.
  const Json* event = nullptr;
};

std::optional<Span> span_of(const Json& event) {
  const auto begin = event.find("ts"), length = event.find("dur"), thread = event.find("tid");
  if (begin == event.end() || length == event.end() || !begin->is_number() || !length->is_number()) return std::nullopt;
  const double from = begin->get<double>();
  if (!std::isfinite(from) || std::abs(from) > 1e16) return std::nullopt;
  const bool is_whole = thread != event.end() && thread->is_number_integer();
  return Span{from,
              from + std::clamp(length->get<double>(), 0.0, max_span_us),
              is_whole ? thread->get<std::int64_t>() : 0,
              {},
              &event};
}

/// "gloo:_all_gather_base" is an all_gather; nothing where the name is no backend's range.
std::optional<std::string> kind_of_range(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view backend = name.substr(0, colon);
  if (backend != "gloo" && backend != "espalier" && backend != "mpi" && backend != "ucc") return std::nullopt;
  name.remove_prefix(colon + 1);
  while (name.starts_with('_')) name.remove_prefix(1);
  for (const std::string_view ending : {"_base", "_coalesced", "_into_tensor", "_tensor", "_single"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return std::string(name);
}

/// Operators in which a thread only waits, or that only say what others do.
bool says_nothing(std::string_view name) {
  return name == "record_param_comms" || name.ends_with("::wait_tensor") || name.ends_with("::wait");
}

class CpuReader {
 public:
  CpuReader(const std::string& name, std::size_t ranks, WaitReading reading)
      : name_(name), ranks_(ranks), reading_(reading) {}

  Result<CpuStretches> read(const Json& events) {
    for (const Json& event : events) take(event);
    if (calls_.empty() && !issues_.empty()) {
      return fail(ErrorCode::unsupported,
                  name_ + ": calls of torch.distributed were issued, but no range of a backend says when they ran",
                  "record with a backend that has ranges, such as gloo or espalier, or with activities CPU and CUDA");
    }
    std::ranges::stable_sort(calls_, {}, &Span::begin);
    for (auto& [_, queue] : issues_) std::ranges::stable_sort(queue, {}, &Span::begin);
    issue_of_.assign(calls_.size(), {});
    find_issues();
    computed_before_.assign(calls_.size(), no_stretch);
    for (auto& [thread, operators] : operators_) cut_thread(thread, operators);
    if (auto added = add_calls(); !added) return tl::unexpected(added.error());
    return in_order();
  }

 private:
  void take(const Json& event) {
    if (!event.is_object() || text_in(event, "ph") != "X") return;
    auto span = span_of(event);
    if (!span) return;
    const std::string category = text_in(event, "cat"), name = text_in(event, "name");
    if (category == "user_annotation") {
      if (auto kind = kind_of_range(name)) {
        span->kind = *std::move(kind);
        calls_.push_back(*std::move(span));
      }
    } else if (category == "cpu_op" && !says_nothing(name)) {
      if (name.starts_with("c10d::")) {
        const auto known = std::ranges::find(issuing_operators, std::string_view(name).substr(6),
                                             &std::pair<std::string_view, std::string_view>::first);
        if (known != issuing_operators.end()) {
          span->kind = known->second;
          issues_[span->kind].push_back(*span);
        }
      }
      operators_[span->thread].push_back(*std::move(span));
    }
  }

  /// The k-th range of a kind belongs to the k-th operator that issues such, as long as there are as many.
  void find_issues() {
    std::map<std::string, std::size_t> seen;
    std::map<std::string, std::size_t> counts;
    for (const Span& call : calls_) ++counts[call.kind];
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const auto queue = issues_.find(calls_[i].kind);
      if (queue == issues_.end() || queue->second.size() != counts[calls_[i].kind]) continue;
      const Span& issue = queue->second[seen[calls_[i].kind]++];
      if (issue.begin > calls_[i].begin) continue;
      issue_of_[i] = issue;
      calls_of_thread_[issue.thread].emplace_back(issue.begin, i);
    }
    for (auto& [_, calls] : calls_of_thread_) std::ranges::stable_sort(calls);
    for (std::size_t i = 0; i < calls_.size(); ++i) ended_.emplace_back(calls_[i].end, i);
    std::ranges::stable_sort(ended_);
  }

  /// Cuts what a thread did into stretches. Operators nest; those without another inside are what ran.
  void cut_thread(std::int64_t thread, std::vector<Span>& operators) {
    std::ranges::stable_sort(operators, {}, [](const Span& one) { return std::pair(one.begin, -one.end); });
    const auto& issued = calls_of_thread_[thread];
    auto next_issue = issued.begin();
    Open open{.thread = thread};
    for (std::size_t i = 0; i < operators.size(); ++i) {
      const Span& one = operators[i];
      const bool is_leaf = i + 1 == operators.size() || operators[i + 1].begin >= one.end;
      for (; next_issue != issued.end() && next_issue->first <= one.begin; ++next_issue) {
        go_on(open, next_issue->first);
        close(open, next_issue->first);
        computed_before_[next_issue->second] = open.last;
        if (blocks(next_issue->second, thread)) wait_for(open, next_issue->second);
      }
      if (!is_leaf || one.begin < open.begin) continue;
      go_on(open, one.begin);
      open.busy_until = std::max(open.busy_until, one.end);
    }
    close(open, open.busy_until);
  }

  struct Open {
    std::int64_t thread = 0;
    double begin = -std::numeric_limits<double>::infinity();
    double busy_until = -std::numeric_limits<double>::infinity();
    std::vector<std::size_t> waits;               ///< Calls.
    std::size_t last = no_stretch;                ///< The thread's stretch before.
    std::map<std::int64_t, std::size_t> known{};  ///< By a backend's thread: its last call that was considered.
  };

  /// The thread does something at a time: it had waited before if a call ended while it did nothing.
  void go_on(Open& open, double time) {
    if (std::isinf(open.begin)) {
      open.begin = open.busy_until = time;
      return;
    }
    const auto first = std::ranges::upper_bound(ended_, open.busy_until, {}, &std::pair<double, std::size_t>::first);
    std::vector<std::size_t> waits;
    bool is_long = false;
    for (auto one = first; one != ended_.end() && one->first <= time; ++one) {
      if (calls_[one->second].begin > open.busy_until + shortest_wait_us) continue;
      waits.push_back(one->second);
      is_long = is_long || one->first > open.busy_until + shortest_wait_us;
    }
    if (!waits.empty() && !is_long) ++guessed_;
    if (!is_long && reading_ == WaitReading::least) return;
    if (waits.empty()) return;
    close(open, open.busy_until);
    open.begin = open.busy_until = calls_[waits.back()].end;
    open.waits = std::move(waits);
  }

  /// Whether a thread carried a call out itself, within the operator that issued it.
  [[nodiscard]] bool blocks(std::size_t call, std::int64_t thread) const {
    const auto& issue = issue_of_[call];
    return issue && calls_[call].thread == thread && calls_[call].end <= issue->end;
  }

  /// What the thread does next begins at a call's end.
  void wait_for(Open& open, std::size_t call) const {
    open.begin = open.busy_until = calls_[call].end;
    open.waits = {call};
  }

  void close(Open& open, double end) {
    const double from = open.begin;
    open.begin = end;
    open.busy_until = std::max(open.busy_until, end);
    std::vector<std::size_t> waits = std::exchange(open.waits, {});
    if (std::isinf(from)) {
      open.begin = open.busy_until = end;
      return;
    }
    if (end <= from && waits.empty()) return;
    consider_all(open, from, waits);
    CpuStretch stretch{from, std::max(from, end), "compute", nullptr, {}};
    if (open.last != no_stretch) stretch.after.push_back(open.last);
    calls_before_.push_back(std::move(waits));
    open.last = stretches_.size();
    stretches_.push_back(std::move(stretch));
  }

  /// Counts the calls that had ended when a stretch began and that it was not seen to wait for; adds them by `most`.
  void consider_all(Open& open, double time, std::vector<std::size_t>& waits) {
    std::map<std::int64_t, std::size_t> latest;
    const auto end = std::ranges::upper_bound(ended_, time, {}, &std::pair<double, std::size_t>::first);
    const auto from = std::max<std::ptrdiff_t>(0, (end - ended_.begin()) - max_looked_back);
    for (auto one = ended_.begin() + from; one != end; ++one) latest[calls_[one->second].thread] = one->second;
    for (const auto& [thread, call] : latest) {
      const auto [known, is_first] = open.known.try_emplace(thread, call);
      if (!is_first && known->second == call) continue;
      known->second = call;
      if (std::ranges::find(waits, call) != waits.end()) continue;
      ++guessed_;
      if (reading_ == WaitReading::most) waits.push_back(call);
    }
  }

  Result<void> add_calls() {
    std::map<std::int64_t, std::size_t> previous;  // By the backend's thread: its last call.
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      auto words = words_of(calls_[i], issue_of_[i]);
      if (!words) return tl::unexpected(words.error());
      CpuStretch stretch{calls_[i].begin, calls_[i].end, text_in(*calls_[i].event, "name"), *std::move(words), {}};
      if (computed_before_[i] != no_stretch) stretch.after.push_back(computed_before_[i]);
      const bool is_message = calls_[i].kind == "send" || calls_[i].kind == "recv";
      const auto [before, is_first] = previous.try_emplace(calls_[i].thread, i);
      if (!is_first) {
        if (!is_message || calls_[before->second].end <= calls_[i].begin) {
          stretch.after.push_back(call_places_[before->second]);
        }
        before->second = i;
      }
      call_places_.push_back(stretches_.size());
      stretches_.push_back(std::move(stretch));
    }
    for (std::size_t i = 0; i < calls_before_.size(); ++i) {
      for (const std::size_t call : calls_before_[i]) stretches_[i].after.push_back(call_places_[call]);
    }
    return {};
  }

  /// A call in the words that kernels of NCCL have.
  Result<Json> words_of(const Span& call, const std::optional<Span>& issue) const {
    const std::string place = fmt::format("{}: '{}'", name_, text_in(*call.event, "name").substr(0, 60));
    Json words = {{"Collective name", call.kind}, {"Group size", ranks_}};
    if (call.kind == "barrier") return words;
    if (call.kind == "send" || call.kind == "recv") {
      const auto peer = issue ? number_given(*issue->event, 2) : std::nullopt;
      if (!peer) return fail(ErrorCode::unsupported, place + " does not say which rank it is for", record_shapes);
      words[call.kind == "send" ? "Dst Rank" : "Src Rank"] = *peer;
    }
    const auto args = call.event->find("args");
    const auto types =
        args != call.event->end() && args->is_object() ? args->find("Input type") : Json::const_iterator();
    const bool has_type = args != call.event->end() && args->is_object() && types != args->end() && types->is_array() &&
                          !types->empty() && types->front().is_string();
    const std::string type = has_type ? types->front().get<std::string>() : std::string();
    const auto element = std::ranges::find(element_names, type, &std::pair<std::string_view, std::string_view>::first);
    auto count = first_input(*call.event);
    std::int64_t times = call.kind == "all_gather" || call.kind == "gather" ? static_cast<std::int64_t>(ranks_) : 1;
    if (call.kind == "scatter" && issue) {  // Its inputs are the root's alone; each rank has an output.
      count = first_input(*issue->event);
      times = static_cast<std::int64_t>(ranks_);
    }
    std::int64_t all = 0;
    if (element == element_names.end() || !count || __builtin_mul_overflow(*count, times, &all)) {
      return fail(ErrorCode::unsupported, place + " does not say how much it carries", record_shapes);
    }
    words["dtype"] = element->second;
    words["In msg nelems"] = all;
    words["Out msg nelems"] = all;
    return words;
  }

  /// By begin; what waits stands behind what it waits for, where both begin at once.
  CpuStretches in_order() {
    std::vector<std::size_t> order(stretches_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) {
      return std::tuple(stretches_[i].begin, stretches_[i].end, stretches_[i].call.is_null() ? 0 : 1);
    });
    std::vector<std::size_t> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
    CpuStretches all;
    all.guessed = guessed_;
    for (const std::size_t i : order) {
      CpuStretch& one = stretches_[i];
      for (std::size_t& before : one.after) before = place[before];
      std::ranges::sort(one.after);
      const auto repeated = std::ranges::unique(one.after);
      one.after.erase(repeated.begin(), repeated.end());
      std::erase_if(one.after, [&](std::size_t before) { return before >= all.stretches.size(); });
      all.stretches.push_back(std::move(one));
    }
    return all;
  }

  static constexpr const char* record_shapes = "record with torch.profiler.profile(record_shapes=True)";
  static constexpr std::ptrdiff_t max_looked_back = 64;  ///< A backend has fewer threads than that.

  const std::string& name_;
  std::size_t ranks_;
  WaitReading reading_;
  std::vector<Span> calls_;  ///< By begin.
  std::map<std::string, std::vector<Span>> issues_;
  std::map<std::int64_t, std::vector<Span>> operators_;
  std::vector<std::optional<Span>> issue_of_;
  std::map<std::int64_t, std::vector<std::pair<double, std::size_t>>> calls_of_thread_;  ///< Issued there, by time.
  std::vector<std::pair<double, std::size_t>> ended_;                                    ///< Calls by their ends.
  std::vector<std::size_t> computed_before_;  ///< By call: the stretch that its thread had done when it issued it.
  std::vector<CpuStretch> stretches_;
  std::vector<std::vector<std::size_t>> calls_before_;  ///< By stretch that computes: the calls it waited for.
  std::vector<std::size_t> call_places_;                ///< By call: its stretch.
  std::uint64_t guessed_ = 0;
};

}  // namespace

Result<CpuStretches> read_cpu_stretches(const Json& events, const std::string& name, std::size_t ranks,
                                        WaitReading reading) {
  return CpuReader(name, ranks, reading).read(events);
}

}  // namespace espalier::scenario
