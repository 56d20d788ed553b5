#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>

#include "scenario/chakra.h"

namespace espalier::scenario {
namespace {

constexpr std::int64_t picoseconds_per_microsecond = 1'000'000;
constexpr std::int64_t longest_us = std::int64_t{3600} * 1'000'000;

/// By ChakraProtoMsg.CollectiveCommType; a barrier moves nothing worth counting: an all_reduce of one element.
struct CommType {
  std::string_view name;
  CollectiveKind kind;
};
constexpr std::array<CommType, 10> comm_types = {{
    {"ALL_REDUCE", CollectiveKind::all_reduce},
    {"REDUCE", CollectiveKind::reduce},
    {"ALL_GATHER", CollectiveKind::all_gather},
    {"GATHER", CollectiveKind::gather},
    {"SCATTER", CollectiveKind::scatter},
    {"BROADCAST", CollectiveKind::broadcast},
    {"ALL_TO_ALL", CollectiveKind::all_to_all},
    {"REDUCE_SCATTER", CollectiveKind::reduce_scatter},
    {"REDUCE_SCATTER_BLOCK", CollectiveKind::reduce_scatter},
    {"BARRIER", CollectiveKind::all_reduce},
}};
constexpr std::int64_t barrier_type = 9;

namespace chakra_streams {
constexpr std::uint16_t compute = 0;
constexpr std::uint16_t cpu = 1;
constexpr std::uint32_t first_of_calls = 2;
}  // namespace chakra_streams

class Importer {
 public:
  Importer(Job& job, std::span<const std::vector<ChakraNode>> traces, const ChakraOptions& options)
      : job_(job), traces_(traces), options_(options), stream_count_(traces.size(), chakra_streams::first_of_calls) {}

  Result<void> add() {
    if (traces_.size() > options_.ranks.size()) {
      return fail(ErrorCode::invalid_input, fmt::format("the trace has {} ranks, and there are {} to put it on",
                                                        traces_.size(), options_.ranks.size()));
    }
    for (std::size_t rank = 0; rank < traces_.size(); ++rank) {
      if (auto added = add_rank(rank); !added) return added;
    }
    for (const auto& [key, match] : collectives_) {
      if (match.calls.size() == match.most && match.least == match.most) continue;
      return fail(ErrorCode::invalid_input,
                  fmt::format("the ranks of a group of {} take part in different numbers of collectives ({} to {})",
                              job_.ranks(key).size(), match.least, match.most),
                  "the traces must be of the same run");
    }
    for (const auto& [key, match] : messages_) {
      if (match.sent == match.received) continue;
      return fail(ErrorCode::invalid_input,
                  fmt::format("rank {} sends {} messages with tag {} to rank {}, which receives {}", std::get<0>(key),
                              match.sent, std::get<2>(key), std::get<1>(key), match.received),
                  "the traces must be of the same run");
    }
    return {};
  }

 private:
  /// The collectives of a group, in the order in which each rank has them.
  struct Collectives {
    std::vector<CallId> calls;
    std::vector<std::string> first;   ///< Which node was the first of each call, for messages.
    std::vector<std::size_t> counts;  ///< By rank of the group.
    std::size_t least = 0;
    std::size_t most = 0;
  };
  struct Messages {
    std::vector<CallId> calls;
    std::size_t sent = 0;
    std::size_t received = 0;
  };

  std::string place(std::size_t rank, const ChakraNode& node) const {
    return fmt::format("rank {}, node {} '{}'", rank, node.id, node.name.substr(0, 60));
  }
  tl::unexpected<Error> bad(std::size_t rank, const ChakraNode& node, std::string_view what) const {
    return fail(ErrorCode::invalid_input, fmt::format("{}: {}", place(rank, node), what));
  }

  Result<void> add_rank(std::size_t rank) {
    const auto& nodes = traces_[rank];
    const auto first = static_cast<std::uint32_t>(job_.tasks().size());
    std::unordered_map<std::uint64_t, TaskId> tasks;
    tasks.reserve(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!tasks.emplace(nodes[i].id, TaskId(first + i)).second) return bad(rank, nodes[i], "the id is used twice");
    }
    std::vector<TaskId> after;
    for (const ChakraNode& node : nodes) {
      after.clear();
      for (const std::uint64_t id : node.after) {
        const auto found = tasks.find(id);
        if (found == tasks.end()) return bad(rank, node, fmt::format("it depends on node {}, which is not there", id));
        after.push_back(found->second);
      }
      std::ranges::sort(after);
      after.erase(std::unique(after.begin(), after.end()), after.end());
      const auto task = task_of(rank, node);
      if (!task) return tl::unexpected(task.error());
      job_.add_task(*task, after);
    }
    return {};
  }

  Result<Task> task_of(std::size_t rank, const ChakraNode& node) {
    Task task{.rank = options_.ranks[rank], .label = job_.add_label(node.name.empty() ? "node" : node.name)};
    switch (node.type) {
      case ChakraType::metadata: task.kind = TaskKind::wait; return task;
      case ChakraType::memory_load:
      case ChakraType::memory_store:
      case ChakraType::compute: return compute(rank, node, task);
      case ChakraType::collective: return collective(rank, node, task);
      case ChakraType::send:
      case ChakraType::receive: return message(rank, node, task);
    }
    return task;
  }

  Result<Task> compute(std::size_t rank, const ChakraNode& node, Task task) const {
    task.stream = node.on_cpu ? chakra_streams::cpu : chakra_streams::compute;
    if (node.on_cpu || node.type != ChakraType::compute) task.kind = TaskKind::wait;
    if (node.duration_us > static_cast<std::uint64_t>(longest_us)) return bad(rank, node, "it takes more than an hour");
    task.duration = static_cast<std::int64_t>(node.duration_us) * picoseconds_per_microsecond;
    if (node.duration_us > 0 || node.operations == 0) return task;
    if (!options_.rate) {
      return bad(rank, node,
                 fmt::format("it has {} operations and no duration: say how fast a rank is", node.operations));
    }
    const __int128 time =
        (static_cast<__int128>(node.operations) * picoseconds_per_second + options_.rate->per_second - 1) /
        options_.rate->per_second;
    if (time > static_cast<__int128>(longest_us) * picoseconds_per_microsecond) {
      return bad(rank, node, "it takes more than an hour");
    }
    task.duration = static_cast<std::int64_t>(time);
    return task;
  }

  Result<GroupId> group_of(std::size_t rank, const ChakraNode& node) {
    if (node.group.empty()) {
      return job_.add_group(
          {options_.ranks.begin(), options_.ranks.begin() + static_cast<std::ptrdiff_t>(traces_.size())});
    }
    const auto found = options_.groups.find(node.group);
    if (found == options_.groups.end()) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: there is no group '{}'", place(rank, node), node.group.substr(0, 60)),
                  "list its ranks under 'groups:' of the scenario, by this name");
    }
    return job_.add_group(found->second);
  }

  Result<Task> collective(std::size_t rank, const ChakraNode& node, Task task) {
    if (node.comm_type < 0 || node.comm_type >= static_cast<std::int64_t>(comm_types.size())) {
      return bad(rank, node, fmt::format("its comm_type is {}, which is no collective", node.comm_type));
    }
    if (!node.has_all_dimensions) {
      return fail(ErrorCode::unsupported, place(rank, node) + ": it is over some dimensions of the network only",
                  "give it a process group (pg_name) instead of involved_dim");
    }
    const std::int64_t element = size_of(options_.type);
    const std::int64_t size =
        node.comm_type == barrier_type ? element : (node.comm_size + element - 1) / element * element;
    if (node.comm_type != barrier_type && (node.comm_size < 0 || size > max_message_size.count)) {
      return bad(rank, node, fmt::format("its comm_size is {} bytes", node.comm_size));
    }
    const auto group = group_of(rank, node);
    if (!group) return tl::unexpected(group.error());
    const Rank own = job_.rank_in(*group, task.rank);
    if (own.is_none())
      return bad(rank, node, fmt::format("the rank is not in the group '{}'", node.group.substr(0, 60)));
    const std::size_t ranks = job_.ranks(*group).size();
    const CommType& type = comm_types[static_cast<std::size_t>(node.comm_type)];
    if (has_root(type.kind) && (node.root < 0 || node.root >= static_cast<std::int64_t>(ranks))) {
      return bad(rank, node, fmt::format("its root is {} of {} ranks", node.root, ranks));
    }
    const Call call{.size = {size},
                    .group = *group,
                    .label = job_.add_label(type.name),
                    .planner = LabelId(),
                    .chunk = options_.chunk,
                    .root = has_root(type.kind) ? Rank(static_cast<std::size_t>(node.root)) : Rank(),
                    .kind = type.kind,
                    .element_size = static_cast<std::uint8_t>(element)};
    return join(rank, node, task, call, own);
  }

  /// The rank's next collective of its group: begins it, or checks that it is the one that others have there.
  Result<Task> join(std::size_t rank, const ChakraNode& node, Task task, const Call& call, Rank own) {
    Collectives& match = collectives_[call.group];
    match.counts.resize(job_.ranks(call.group).size(), 0);
    const std::size_t number = match.counts[own.index()]++;
    if (number == match.calls.size()) {
      match.calls.push_back(job_.add_call(call));
      match.first.push_back(place(rank, node));
    }
    const Call& first = job_.call(match.calls[number]);
    if (first.kind != call.kind || first.size != call.size || first.root != call.root) {
      return bad(rank, node,
                 fmt::format("it is a {} of {} bytes, and in its place {} is a {} of {} bytes", to_string(call.kind),
                             call.size.count, match.first[number], to_string(first.kind), first.size.count));
    }
    const auto [least, most] = std::ranges::minmax(match.counts);
    match.least = least;
    match.most = most;
    task.call = match.calls[number];
    task.kind = TaskKind::call;
    return with_stream(rank, node, task, {0, call.group.value(), 0, 0});
  }

  Result<Task> message(std::size_t rank, const ChakraNode& node, Task task) {
    const bool sends = node.type == ChakraType::send;
    const std::int64_t peer = sends ? node.comm_dst : node.comm_src;
    if (peer < 0 || peer >= static_cast<std::int64_t>(traces_.size()) || peer == static_cast<std::int64_t>(rank)) {
      return bad(rank, node,
                 fmt::format("its {} is {} of {} ranks", sends ? "comm_dst" : "comm_src", peer, traces_.size()));
    }
    if (node.comm_size < 0 || node.comm_size > max_message_size.count) {
      return bad(rank, node, fmt::format("its comm_size is {} bytes", node.comm_size));
    }
    const auto other = static_cast<std::size_t>(peer);
    const std::size_t from = sends ? rank : other, to = sends ? other : rank;
    Messages& match = messages_[{from, to, node.comm_tag}];
    const std::size_t number = sends ? match.sent++ : match.received++;
    if (number == match.calls.size()) {
      const Rank src = options_.ranks[from], dst = options_.ranks[to];
      match.calls.push_back(job_.add_call({.size = {node.comm_size},
                                           .group = job_.add_group({src, dst}),
                                           .label = job_.add_label("SEND_RECV"),
                                           .planner = LabelId(),
                                           .chunk = options_.chunk,
                                           .root = Rank(src < dst ? 0 : 1),
                                           .kind = CollectiveKind::broadcast,
                                           .element_size = 1}));
    }
    if (job_.call(match.calls[number]).size.count != node.comm_size) {
      return bad(rank, node,
                 fmt::format("it is of {} bytes, and rank {} has {} bytes in its place", node.comm_size, peer,
                             job_.call(match.calls[number]).size.count));
    }
    task.call = match.calls[number];
    task.kind = TaskKind::call;
    return with_stream(rank, node, task, {sends ? 1U : 2U, static_cast<std::uint32_t>(peer), node.comm_tag, 0});
  }

  using StreamKey = std::tuple<std::uint32_t, std::uint32_t, std::int64_t, std::size_t>;

  Result<Task> with_stream(std::size_t rank, const ChakraNode& node, Task task, StreamKey key) {
    std::get<3>(key) = rank;
    const auto [at, is_new] = streams_.emplace(key, stream_count_[rank]);
    if (is_new && ++stream_count_[rank] > 0xFFFF) return bad(rank, node, "the rank talks to too many groups and peers");
    task.stream = static_cast<std::uint16_t>(at->second);
    return task;
  }

  Job& job_;
  std::span<const std::vector<ChakraNode>> traces_;
  const ChakraOptions& options_;
  std::map<GroupId, Collectives> collectives_;
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t>, Messages> messages_;  // by source, destination, tag
  std::map<StreamKey, std::uint32_t> streams_;
  std::vector<std::uint32_t> stream_count_;  // by rank of the trace
};

}  // namespace

Result<void> add_chakra(Job& job, std::span<const std::vector<ChakraNode>> traces, const ChakraOptions& options) {
  return Importer(job, traces, options).add();
}

}  // namespace espalier::scenario
