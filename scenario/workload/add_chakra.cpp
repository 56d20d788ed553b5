#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "scenario/workload/chakra.h"

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
}  // namespace chakra_streams

/// The nodes of a rank in the order in which they can be issued: dependencies first, then by id. Those on and behind
/// circles are left out.
std::vector<std::size_t> issue_order(const std::vector<ChakraNode>& nodes,
                                     const std::unordered_map<std::uint64_t, std::size_t>& index) {
  std::vector<std::size_t> begins(nodes.size() + 1, 0), pending(nodes.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    pending[i] = nodes[i].after.size();
    for (const std::uint64_t id : nodes[i].after) ++begins[index.at(id) + 1];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::size_t> followers(begins.back()), next(begins.begin(), begins.end() - 1);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const std::uint64_t id : nodes[i].after) followers[next[index.at(id)]++] = i;
  }
  using Next = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (pending[i] == 0) ready.push({nodes[i].id, i});
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t at = ready.top().second;
    ready.pop();
    order.push_back(at);
    for (std::size_t i = begins[at]; i < begins[at + 1]; ++i) {
      if (--pending[followers[i]] == 0) ready.push({nodes[followers[i]].id, followers[i]});
    }
  }
  return order;
}

class Importer {
 public:
  Importer(Job& job, std::span<const std::vector<ChakraNode>> traces, const ChakraOptions& options)
      : job_(job), traces_(traces), options_(options) {}

  Result<void> add() {
    if (traces_.size() > options_.ranks.size()) {
      return fail(ErrorCode::invalid_input, fmt::format("the trace has {} ranks, and there are {} to put it on",
                                                        traces_.size(), options_.ranks.size()));
    }
    for (std::size_t rank = 0; rank < traces_.size(); ++rank) {
      if (auto added = add_rank(rank); !added) return added;
    }
    if (auto checked = check_collectives(); !checked) return checked;
    return check_messages();
  }

 private:
  /// A node and whose it is.
  struct Place {
    std::size_t rank = 0;
    const ChakraNode* node = nullptr;
  };
  /// The collectives of a group, in the order in which each rank issues them.
  struct Collectives {
    std::vector<CallId> calls;
    std::vector<Place> first;                ///< Which node was the first of each call, for messages.
    std::vector<std::vector<Place>> issued;  ///< By rank of the group.
    std::vector<TaskId> last;                ///< By rank of the group: the task of its latest; none before the first.
  };
  /// What one rank sends to another with one tag, in the order in which either issues it.
  struct Messages {
    std::vector<CallId> calls;
    std::vector<Place> sent;
    std::vector<Place> received;
  };

  std::string place(std::size_t rank, const ChakraNode& node) const {
    return fmt::format("rank {}, node {} '{}'", rank, node.id, node.name.substr(0, 60));
  }
  tl::unexpected<Error> bad(std::size_t rank, const ChakraNode& node, std::string_view what) const {
    return fail(ErrorCode::invalid_input, fmt::format("{}: {}", place(rank, node), what));
  }

  std::string place(const Place& of) const { return place(of.rank, *of.node); }

  Result<void> add_rank(std::size_t rank) {
    const auto& nodes = traces_[rank];
    std::unordered_map<std::uint64_t, std::size_t> index;
    index.reserve(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!index.emplace(nodes[i].id, i).second) return bad(rank, nodes[i], "the id is used twice");
    }
    for (const ChakraNode& node : nodes) {
      for (const std::uint64_t id : node.after) {
        if (!index.contains(id)) return bad(rank, node, fmt::format("it depends on node {}, which is not there", id));
      }
    }
    const std::vector<std::size_t> order = issue_order(nodes, index);
    if (order.size() < nodes.size()) return circle(rank, order, index);
    std::vector<TaskId> tasks(nodes.size());
    for (const std::size_t i : order) {
      after_.clear();
      for (const std::uint64_t id : nodes[i].after) after_.push_back(tasks[index.at(id)]);
      tasks[i] = TaskId(job_.tasks().size());
      const auto task = task_of(rank, nodes[i]);
      if (!task) return tl::unexpected(task.error());
      std::ranges::sort(after_);
      after_.erase(std::unique(after_.begin(), after_.end()), after_.end());
      job_.add_task(*task, after_);
    }
    return {};
  }

  /// Walking back along what is not in the order ends in a circle.
  tl::unexpected<Error> circle(std::size_t rank, const std::vector<std::size_t>& order,
                               const std::unordered_map<std::uint64_t, std::size_t>& index) const {
    const auto& nodes = traces_[rank];
    std::vector<bool> is_free(nodes.size(), false);
    for (const std::size_t i : order) is_free[i] = true;
    auto at = static_cast<std::size_t>(std::ranges::find(is_free, false) - is_free.begin());
    for (std::size_t steps = 0; steps < nodes.size(); ++steps) {
      at = index.at(*std::ranges::find_if(nodes[at].after, [&](std::uint64_t id) { return !is_free[index.at(id)]; }));
    }
    return bad(rank, nodes[at], "it depends on itself, through what it depends on");
  }

  Result<Task> task_of(std::size_t rank, const ChakraNode& node) {
    Task task{.rank = options_.ranks[rank],
              .label = job_.add_label(node.name.empty() ? "node" : node.name),
              .stream = no_stream};
    switch (node.type) {
      case ChakraType::metadata:
        task.kind = TaskKind::wait;
        task.duration = nanoseconds_of(node);
        return task;
      case ChakraType::memory_load:
      case ChakraType::memory_store:
      case ChakraType::compute: return compute(rank, node, task);
      case ChakraType::collective: return collective(rank, node, task);
      case ChakraType::send:
      case ChakraType::receive: return message(rank, node, task);
    }
    return task;
  }

  static std::int64_t nanoseconds_of(const ChakraNode& node) {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(node.duration_ns, longest_us * 1000)) * 1000;
  }

  Result<Task> compute(std::size_t rank, const ChakraNode& node, Task task) const {
    task.stream = node.stream.value_or(node.on_cpu ? chakra_streams::cpu : chakra_streams::compute);
    if (node.on_cpu || node.type != ChakraType::compute) task.kind = TaskKind::wait;
    if (node.duration_us > static_cast<std::uint64_t>(longest_us)) return bad(rank, node, "it takes more than an hour");
    task.duration = static_cast<std::int64_t>(node.duration_us) * picoseconds_per_microsecond + nanoseconds_of(node);
    if (task.duration > 0 || node.operations == 0) return task;
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
    const bool is_barrier = node.comm_type == barrier_type;
    if (!is_barrier && (node.comm_size < 0 || node.comm_size > max_message_size.count)) {
      return bad(rank, node, fmt::format("its comm_size is {} bytes", node.comm_size));
    }
    const std::int64_t size = is_barrier ? element : (node.comm_size + element - 1) / element * element;
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

  /// The rank's next collective of its group, behind the one before: begins it, or checks that it is the one that
  /// others have there.
  Result<Task> join(std::size_t rank, const ChakraNode& node, Task task, const Call& call, Rank own) {
    Collectives& match = collectives_[call.group];
    match.issued.resize(job_.ranks(call.group).size());
    match.last.resize(match.issued.size());
    const std::size_t number = match.issued[own.index()].size();
    match.issued[own.index()].push_back({rank, &node});
    if (number == match.calls.size()) {
      match.calls.push_back(job_.add_call(call));
      match.first.push_back({rank, &node});
    }
    const Call& first = job_.call(match.calls[number]);
    if (first.kind != call.kind || first.size != call.size || first.root != call.root) {
      return bad(rank, node,
                 fmt::format("it is {} of {} bytes, and in its place {} is {} of {} bytes", with_article(call.kind),
                             call.size.count, place(match.first[number]), with_article(first.kind), first.size.count));
    }
    TaskId& last = match.last[own.index()];
    if (!last.is_none()) after_.push_back(last);
    last = TaskId(job_.tasks().size());
    task.call = match.calls[number];
    task.kind = TaskKind::call;
    return task;
  }

  static std::string with_article(CollectiveKind kind) {
    const std::string name(to_string(kind));
    return (name.starts_with('a') ? "an " : "a ") + name;
  }

  Result<void> check_collectives() const {
    for (const auto& [group, match] : collectives_) {
      const auto [least, most] =
          std::ranges::minmax_element(match.issued, {}, [](const auto& of) { return of.size(); });
      if (least->size() == most->size()) continue;
      const Rank missing = job_.ranks(group)[static_cast<std::size_t>(least - match.issued.begin())];
      const auto other = static_cast<std::size_t>(std::ranges::find(options_.ranks, missing) - options_.ranks.begin());
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: it is collective {} of its group of {} ranks, and rank {} takes part in {}",
                              place((*most)[least->size()]), least->size() + 1, match.issued.size(), other,
                              least->size() == 0 ? "none" : fmt::format("{} only", least->size())),
                  "the traces must be of the same run");
    }
    return {};
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
    const std::int64_t own = sends ? node.comm_src : node.comm_dst;
    if (own >= 0 && own != static_cast<std::int64_t>(rank)) {
      return bad(rank, node, fmt::format("its {} is {}, another rank", sends ? "comm_src" : "comm_dst", own));
    }
    const auto other = static_cast<std::size_t>(peer);
    const std::size_t from = sends ? rank : other, to = sends ? other : rank;
    Messages& match = messages_[{from, to, node.comm_tag}];
    std::vector<Place>& side = sends ? match.sent : match.received;
    const std::vector<Place>& facing = sends ? match.received : match.sent;
    const std::size_t number = side.size();
    side.push_back({rank, &node});
    if (number == match.calls.size()) match.calls.push_back(add_message(from, to, node.comm_size));
    if (number < facing.size() && facing[number].node->comm_size != node.comm_size) {
      return bad(rank, node,
                 fmt::format("it is of {} bytes, and its counterpart, {}, is of {} bytes", node.comm_size,
                             place(facing[number]), facing[number].node->comm_size));
    }
    task.call = match.calls[number];
    task.kind = TaskKind::call;
    return task;
  }

  CallId add_message(std::size_t from, std::size_t to, std::int64_t bytes) {
    const Rank src = options_.ranks[from], dst = options_.ranks[to];
    return job_.add_call({.size = {bytes},
                          .group = job_.add_group({src, dst}),
                          .label = job_.add_label("SEND_RECV"),
                          .planner = LabelId(),
                          .chunk = options_.chunk,
                          .root = Rank(src < dst ? 0 : 1),
                          .kind = CollectiveKind::broadcast,
                          .element_size = 1,
                          .is_eager = true});
  }

  Result<void> check_messages() const {
    for (const auto& [key, match] : messages_) {
      const auto& [from, to, tag] = key;
      if (match.sent.size() == match.received.size()) continue;
      const bool is_sent = match.sent.size() > match.received.size();
      const Place& lone = is_sent ? match.sent[match.received.size()] : match.received[match.sent.size()];
      std::string help = "the traces must be of the same run";
      if (const Place* other = other_tag(from, to, tag, !is_sent)) {
        help = fmt::format("{} has tag {}", place(*other), other->node->comm_tag);
      }
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}: rank {} has no {} for it ({} rank {} with tag {})", place(lone), is_sent ? to : from,
                              is_sent ? "receive" : "send", is_sent ? "to" : "from", is_sent ? to : from, tag),
                  std::move(help));
    }
    return {};
  }

  /// A node without a counterpart on the other side that goes between the same ranks with another tag; null when there
  /// is none.
  const Place* other_tag(std::size_t from, std::size_t to, std::int64_t tag, bool is_sent) const {
    for (const auto& [key, match] : messages_) {
      if (std::get<0>(key) != from || std::get<1>(key) != to || std::get<2>(key) == tag) continue;
      const auto& side = is_sent ? match.sent : match.received;
      const auto& facing = is_sent ? match.received : match.sent;
      if (side.size() > facing.size()) return &side[facing.size()];
    }
    return nullptr;
  }

  Job& job_;
  std::span<const std::vector<ChakraNode>> traces_;
  const ChakraOptions& options_;
  std::map<GroupId, Collectives> collectives_;
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t>, Messages> messages_;  // by source, destination, tag
  std::vector<TaskId> after_;                                                        // what the node at hand waits for
};

}  // namespace

Result<void> add_chakra(Job& job, std::span<const std::vector<ChakraNode>> traces, const ChakraOptions& options) {
  return Importer(job, traces, options).add();
}

}  // namespace espalier::scenario
