// A schedule has transfers, each from one rank to another, in an order that gives them their meaning. A program has
// sends and receives in thread blocks. It is run here step by step; each receive makes a transfer, in the order of the
// receives.

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "schedule/formats/formats.h"
#include "schedule/formats/msccl_program.h"
#include "schedule/formats/writers.h"
#include "topology/routes.h"

namespace espalier {
namespace {

/// What is on its way: chunks of the collective's buffer, as they were at the sender.
struct MscclMessage {
  std::vector<std::int64_t> chunks;
  std::vector<std::uint32_t> versions;  ///< How often each had been written at the sender.
  int line = 0;
};

/// A chunk that lies in scratch until its rank adds it to its own: the transfer is made then.
struct HeldChunk {
  std::int64_t chunk = 0;
  std::uint32_t version = 0;  ///< At the sender, when it was sent.
  std::size_t from = 0;
  std::int64_t channel = 0;
  int line = 0;  ///< Where it was sent.

  [[nodiscard]] bool comes_with(const HeldChunk& other) const {
    return from == other.from && channel == other.channel && line == other.line;
  }
};

class MscclRun {
 public:
  MscclRun(const MscclProgram& program, const std::string& file, const Topology& topology)
      : program_(program),
        file_(file),
        topology_(topology),
        buffers_(program.collective, program.chunks),
        schedule_(program.collective, topology.name(), program.name.empty() ? "msccl" : program.name) {}

  Result<Schedule> run() {
    if (auto added = add_slices(); !added) return tl::unexpected(added.error());
    at_.resize(program_.ranks.size());
    versions_.assign(program_.ranks.size(), std::vector<std::uint32_t>(schedule_.slices.size()));
    scratch_.resize(program_.ranks.size());
    find_summed();
    std::vector<BlockPlace> waiting;
    for (std::size_t rank = program_.ranks.size(); rank-- > 0;) {
      at_[rank].assign(program_.ranks[rank].size(), 0);
      for (std::size_t block = program_.ranks[rank].size(); block-- > 0;) waiting.push_back({rank, block});
    }
    // What arrives is taken at once: the later a receive, the likelier that the sender's chunk has changed.
    for (bool moved = true; moved;) {
      moved = false;
      for (const BlockPlace& start : waiting) {
        std::vector<BlockPlace> stack{start};
        while (!stack.empty()) {
          const BlockPlace place = stack.back();
          const auto stepped = step(place, stack);
          if (!stepped) return tl::unexpected(stepped.error());
          moved = moved || *stepped;
          if (!*stepped) stack.pop_back();
        }
      }
    }
    if (auto stuck = check_end(); !stuck) return tl::unexpected(stuck.error());
    if (schedule_.reads_inputs()) {
      for (std::size_t i = 0; i < sends_input_.size(); ++i) {
        if (sends_input_[i]) schedule_.transfers[i].reads_input = 1;  // None then waits for another's turn.
      }
    }
    return std::move(schedule_);
  }

 private:
  struct BlockPlace {
    std::size_t rank = 0;
    std::size_t block = 0;
  };

  /// A slice per chunk.
  Result<void> add_slices() {
    if (topology_.rank_count() != program_.ranks.size()) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{} is for {} GPUs, and {} has {} ranks", file_, program_.ranks.size(), topology_.name(),
                              topology_.rank_count()),
                  "name a topology with as many ranks, or choose them with --ranks");
    }
    const std::int64_t total = buffers_.total();
    schedule_.units = total;
    const std::int64_t part = total / program_.collective.part_count();
    for (std::int64_t i = 0; i < total; ++i) {
      const PartRanks ranks = ranks_of_part(program_.collective, i / part);
      schedule_.slices.push_back({i, 1, ranks.rank, ranks.to});
    }
    return {};
  }

  /// The places of scratch that ranks add to their own.
  void find_summed() {
    summed_.resize(program_.ranks.size());
    held_.resize(program_.ranks.size());
    for (std::size_t rank = 0; rank < program_.ranks.size(); ++rank) {
      for (const MscclBlock& block : program_.ranks[rank]) {
        for (const MscclOp& op : block.ops) {
          for (std::int64_t i = 0; op.sums && i < op.count; ++i) summed_[rank].insert(op.src.offset + i);
        }
      }
    }
  }

  [[nodiscard]] const MscclOp* next(BlockPlace place) const {
    const auto& ops = program_.ranks[place.rank][place.block].ops;
    const std::size_t at = at_[place.rank][place.block];
    return at < ops.size() ? &ops[at] : nullptr;
  }

  tl::unexpected<Error> fail_step(ErrorCode code, int line, const std::string& message, const std::string& help) const {
    return fail(code, fmt::format("{}:{}:1: {}", file_, line, message), help);
  }

  /// The chunk that lies there, or an error.
  Result<std::int64_t> chunk_at(std::size_t rank, const MscclOp& op, MscclChunk place) const {
    if (place.buffer == 's') {
      const auto known = scratch_[rank].find(place.offset);
      if (known != scratch_[rank].end()) return known->second;
      if (summed_[rank].contains(place.offset)) {
        return fail_step(ErrorCode::unsupported, op.line,
                         fmt::format("scratch {} is added to the rank's own elsewhere, and used here", place.offset),
                         "a schedule adds what arrives once");
      }
      return fail_step(ErrorCode::invalid_input, op.line, fmt::format("nothing has come to scratch {}", place.offset),
                       "correct the step's offset");
    }
    const auto chunk = buffers_.find(Rank(rank), place);
    if (chunk) return *chunk;
    return fail_step(ErrorCode::invalid_input, op.line,
                     fmt::format("the buffer {} has no chunk {}", place.buffer, place.offset),
                     "correct the step's offset");
  }

  /// A chunk comes to a place: scratch takes any, input and output have a place for each.
  Result<void> put(std::size_t rank, const MscclOp& op, MscclChunk place, std::int64_t chunk) {
    if (place.buffer == 's') {
      scratch_[rank][place.offset] = chunk;
      return {};
    }
    const auto own = chunk_at(rank, op, place);
    if (!own) return tl::unexpected(own.error());
    if (*own == chunk) return {};
    return fail_step(ErrorCode::unsupported, op.line,
                     fmt::format("it moves a chunk to another's place, {}{}", place.buffer, place.offset),
                     "a schedule has each slice in one place of its buffer");
  }

  /// Does the next step of a thread block if it can; a thread block that it sends to is tried first then.
  Result<bool> step(BlockPlace place, std::vector<BlockPlace>& stack) {
    const MscclOp* const op = next(place);
    if (op == nullptr) return false;
    if (op->after_block >= 0 &&
        at_[place.rank][static_cast<std::size_t>(op->after_block)] <= static_cast<std::size_t>(op->after_step)) {
      return false;
    }
    const MscclBlock& block = program_.ranks[place.rank][place.block];
    if (op->receives) {
      const auto queue = messages_.find({static_cast<std::size_t>(block.receive), place.rank, block.channel});
      if (queue == messages_.end() || queue->second.empty()) return false;
      const MscclMessage message = std::move(queue->second.front());
      queue->second.pop_front();
      if (auto received = receive(place.rank, block, *op, message); !received) return tl::unexpected(received.error());
    }
    if (op->copies) {
      for (std::int64_t i = 0; i < op->count; ++i) {
        const auto chunk = chunk_at(place.rank, *op, {op->src.buffer, op->src.offset + i});
        if (!chunk) return tl::unexpected(chunk.error());
        if (auto done = put(place.rank, *op, {op->dst.buffer, op->dst.offset + i}, *chunk); !done)
          return tl::unexpected(done.error());
      }
    }
    if (op->sums) {
      if (auto summed = sum(place.rank, *op); !summed) return tl::unexpected(summed.error());
    }
    ++at_[place.rank][place.block];
    if (op->sends) {
      if (auto sent = send(place.rank, block, *op); !sent) return tl::unexpected(sent.error());
      const auto peer = static_cast<std::size_t>(block.send);
      for (std::size_t other = 0; other < program_.ranks[peer].size(); ++other) {
        const MscclBlock& there = program_.ranks[peer][other];
        const bool is_near = there.receive == static_cast<std::int64_t>(place.rank) && there.channel == block.channel;
        if (is_near && stack.size() < deepest_stack) stack.push_back({peer, other});
      }
    }
    return true;
  }

  /// A step that received sends on what it has where it put it; others send from their source.
  Result<void> send(std::size_t rank, const MscclBlock& block, const MscclOp& op) {
    MscclMessage message{.line = op.line};
    for (std::int64_t i = 0; i < op.count; ++i) {
      const MscclChunk& from = op.receives && !op.reduces ? op.dst : op.src;
      const auto chunk = chunk_at(rank, op, {from.buffer, from.offset + i});
      if (!chunk) return tl::unexpected(chunk.error());
      message.chunks.push_back(*chunk);
      message.versions.push_back(versions_[rank][static_cast<std::size_t>(*chunk)]);
    }
    messages_[{rank, static_cast<std::size_t>(block.send), block.channel}].push_back(std::move(message));
    return {};
  }

  Result<void> receive(std::size_t rank, const MscclBlock& block, const MscclOp& op, const MscclMessage& message) {
    const auto from = static_cast<std::size_t>(block.receive);
    if (static_cast<std::int64_t>(message.chunks.size()) != op.count) {
      return fail_step(
          ErrorCode::invalid_input, op.line,
          fmt::format("it takes {} chunks, and line {} sends {}", op.count, message.line, message.chunks.size()),
          "the k-th send on a channel goes with the k-th receive");
    }
    if (op.dst.buffer == 's' && !op.reduces && op.count > 0 && summed_[rank].contains(op.dst.offset)) {
      hold(rank, block, op, message);
      return {};
    }
    bool reads_input = false;
    for (std::size_t i = 0; i < message.chunks.size(); ++i) {
      const auto offset = static_cast<std::int64_t>(i);
      const std::int64_t chunk = message.chunks[i];
      if (auto done = put(rank, op, {op.dst.buffer, op.dst.offset + offset}, chunk); !done) return done;
      if (op.reduces) {
        const auto own = chunk_at(rank, op, {op.src.buffer, op.src.offset + offset});
        if (!own) return tl::unexpected(own.error());
        if (*own != chunk) {
          return fail_step(ErrorCode::unsupported, op.line, "it adds unlike chunks",
                           "a schedule adds what stands for one slice");
        }
      }
      if (versions_[from][static_cast<std::size_t>(chunk)] != message.versions[i]) {
        reads_input = op.reduces && std::ranges::all_of(message.versions, [](auto version) { return version == 0; });
        if (reads_input) continue;
        return fail_step(ErrorCode::unsupported, message.line,
                         "what it sends changes at the sender before it is received",
                         "a schedule has no copy of it on the way");
      }
    }
    const Action action = reads_input ? Action::reduce_input : op.reduces ? Action::reduce : Action::copy;
    return add_transfers(from, rank, block.channel, action, message);
  }

  void hold(std::size_t rank, const MscclBlock& block, const MscclOp& op, const MscclMessage& message) {
    for (std::size_t i = 0; i < message.chunks.size(); ++i) {
      held_[rank][op.dst.offset + static_cast<std::int64_t>(i)] = {
          message.chunks[i], message.versions[i], static_cast<std::size_t>(block.receive), block.channel, message.line};
    }
  }

  /// Adds what came to scratch to the rank's own: what it came from arrives here.
  Result<void> sum(std::size_t rank, const MscclOp& op) {
    std::vector<HeldChunk> added;
    for (std::int64_t i = 0; i < op.count; ++i) {
      const auto held = held_[rank].find(op.src.offset + i);
      if (op.src.buffer != 's' || op.dst.buffer == 's' || held == held_[rank].end()) {
        return fail_step(ErrorCode::unsupported, op.line, "it adds what did not come to scratch, or adds it in scratch",
                         "a schedule adds what arrives, and has no other sums within a rank");
      }
      const auto own = chunk_at(rank, op, {op.dst.buffer, op.dst.offset + i});
      if (!own) return tl::unexpected(own.error());
      if (*own != held->second.chunk) {
        return fail_step(ErrorCode::unsupported, op.line, "it adds unlike chunks",
                         "a schedule adds what stands for one slice");
      }
      added.push_back(held->second);
      held_[rank].erase(held);
    }
    for (auto first = added.begin(); first != added.end();) {
      const auto end = std::find_if(first, added.end(), [&](const auto& held) { return !held.comes_with(*first); });
      if (auto done = add_held(rank, {first, end}); !done) return done;
      first = end;
    }
    return {};
  }

  /// Chunks that came together.
  Result<void> add_held(std::size_t rank, std::span<const HeldChunk> held) {
    MscclMessage message{.line = held.front().line};
    bool has_changed = false;
    for (const HeldChunk& each : held) {
      message.chunks.push_back(each.chunk);
      message.versions.push_back(each.version);
      has_changed = has_changed || versions_[each.from][static_cast<std::size_t>(each.chunk)] != each.version;
    }
    const bool is_input = std::ranges::all_of(message.versions, [](auto version) { return version == 0; });
    if (has_changed && !is_input) {
      return fail_step(ErrorCode::unsupported, message.line, "what it sends changes at the sender before it is added",
                       "a schedule has no copy of it on the way");
    }
    return add_transfers(held.front().from, rank, held.front().channel,
                         has_changed ? Action::reduce_input : Action::reduce, message);
  }

  /// One transfer per run of chunks that follow each other.
  Result<void> add_transfers(std::size_t from, std::size_t rank, std::int64_t channel, Action action,
                             const MscclMessage& message) {
    const auto route = route_to(from, rank, channel);
    if (!route) return tl::unexpected(route.error());
    const bool is_input = std::ranges::all_of(message.versions, [](auto version) { return version == 0; });
    for (std::size_t i = 0; i < message.chunks.size();) {
      std::size_t end = i + 1;
      while (end < message.chunks.size() && message.chunks[end] == message.chunks[end - 1] + 1) ++end;
      schedule_.add_transfer(*route, SliceId(static_cast<std::size_t>(message.chunks[i])),
                             static_cast<std::uint32_t>(end - i), action,
                             ChannelId(static_cast<std::uint32_t>(channel)));
      sends_input_.push_back(action != Action::copy && is_input);
      for (; i < end; ++i) ++versions_[rank][static_cast<std::size_t>(message.chunks[i])];
    }
    return {};
  }

  /// The fastest route; channels take equally good ones in turn.
  Result<RouteId> route_to(std::size_t from, std::size_t to, std::int64_t channel) {
    auto& routes = routes_[{from, channel}];
    if (routes.empty()) routes = routes_from(topology_, Rank(from), {.variant = static_cast<std::uint32_t>(channel)});
    const auto& found = routes[to];
    if (!found) {
      return fail(ErrorCode::infeasible,
                  fmt::format("{}: {} reaches {} only through other ranks", file_, topology_.rank_name(Rank(from)),
                              topology_.rank_name(Rank(to))),
                  "name the topology that it was made for");
    }
    return schedule_.add_route(Rank(from), Rank(to), found->links);
  }

  [[nodiscard]] Result<void> check_end() const {
    for (std::size_t rank = 0; rank < at_.size(); ++rank) {
      for (std::size_t block = 0; block < at_[rank].size(); ++block) {
        const MscclOp* const op = next({rank, block});
        if (op == nullptr) continue;
        return fail_step(
            ErrorCode::infeasible, op->line,
            fmt::format("GPU {} never gets past this step: {}", rank,
                        op->receives ? "nothing comes that it could receive" : "what it waits for is never over"),
            "check the peers and channels of the thread blocks");
      }
    }
    for (const auto& [between, queue] : messages_) {
      if (queue.empty()) continue;
      return fail_step(ErrorCode::infeasible, queue.front().line, "nobody receives what it sends",
                       "check the peers and channels of the thread blocks");
    }
    return {};
  }

  static constexpr std::size_t deepest_stack = 64;

  const MscclProgram& program_;
  const std::string& file_;
  const Topology& topology_;
  MscclBuffers buffers_;
  Schedule schedule_;
  std::vector<std::vector<std::size_t>> at_;                   ///< The next step of each thread block.
  std::vector<std::vector<std::uint32_t>> versions_;           ///< By rank and chunk.
  std::vector<bool> sends_input_;                              ///< By transfer that adds: what its source brought.
  std::vector<std::map<std::int64_t, std::int64_t>> scratch_;  ///< By rank: offset to chunk.
  std::vector<std::set<std::int64_t>> summed_;                 ///< By rank: offsets of scratch that it adds.
  std::vector<std::map<std::int64_t, HeldChunk>> held_;        ///< By rank: what came there.
  std::map<std::tuple<std::size_t, std::size_t, std::int64_t>, std::deque<MscclMessage>> messages_;
  std::map<std::pair<std::size_t, std::int64_t>, std::vector<std::optional<FoundRoute>>> routes_;
};

}  // namespace

Result<Schedule> import_schedule(std::string_view text, const std::string& file, const Topology& topology,
                                 std::optional<ScheduleForm> source) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  if (source ? source == ScheduleForm::mscclpp : is_json) return import_mscclpp(text, file, topology);
  const auto program = read_msccl_program(text, file);
  if (!program) return tl::unexpected(program.error());
  return MscclRun(*program, file, topology).run();
}

}  // namespace espalier
