// A plan of MSCCL++ moves chunks between places of memory: a rank puts into another's buffers, reads from them, and
// adds what lies in scratch. A schedule moves slices between ranks. The plan is run here; every place knows which slice
// of which rank it holds a copy of, and a transfer is made where a slice comes to its own place at another rank, or is
// added to what a rank has.

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "schedule/formats/formats.h"
#include "schedule/formats/mscclpp_program.h"
#include "topology/routes.h"

namespace espalier {
namespace {

using Kind = MscclppOp::Kind;

/// What a place holds: a slice as a rank had it after so many writes.
struct HeldSlice {
  std::int64_t slice = -1;  ///< -1: nothing has come here.
  std::size_t rank = 0;
  std::uint32_t version = 0;
};

/// A step between two ranks that one slice takes.
struct SliceStep {
  std::size_t src = 0, dst = 0;
  Action action = Action::copy;
  friend bool operator==(const SliceStep&, const SliceStep&) = default;
};

class MscclppRun {
 public:
  MscclppRun(const MscclppProgram& program, const std::string& file, const Topology& topology)
      : program_(program),
        file_(file),
        topology_(topology),
        buffers_(program.collective, program.chunks),
        schedule_(program.collective, topology.name(), program.name.empty() ? "mscclpp" : program.name) {}

  Result<Schedule> run() {
    if (auto ready = prepare(); !ready) return tl::unexpected(ready.error());
    // What arrives is used at once: the later it is, the likelier that the sender's slice has changed.
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < blocks_.size(); ++rank) {
        for (std::size_t block = 0; block < blocks_[rank].size(); ++block) {
          const auto stepped = step(rank, block);
          if (!stepped) return tl::unexpected(stepped.error());
          moved = moved || *stepped;
        }
      }
    }
    if (auto checked = check_end(); !checked) return tl::unexpected(checked.error());
    return std::move(schedule_);
  }

 private:
  struct BlockState {
    std::size_t at = 0;
    bool has_arrived = false;      ///< At the barrier that is next.
    std::uint64_t generation = 0;  ///< Of that barrier when it arrived.
  };
  struct Barrier {
    std::int64_t arrived = 0;
    std::uint64_t generation = 0;
  };
  struct RankState {
    std::map<char, std::vector<HeldSlice>> cells;  ///< By buffer; those that share memory with another are unused.
    std::vector<std::uint32_t> versions;           ///< By slice.
    std::vector<std::int64_t> signals;             ///< By channel: how many have come and were not waited for.
    std::vector<std::int64_t> semaphores;
    std::map<std::int64_t, Barrier> barriers;
  };

  Result<void> prepare() {
    const std::size_t ranks = program_.ranks.size();
    if (topology_.rank_count() != ranks) {
      return fail(
          ErrorCode::invalid_input,
          fmt::format("{} is for {} GPUs, and {} has {} ranks", file_, ranks, topology_.name(), topology_.rank_count()),
          "name a topology with as many ranks, or choose them with --ranks");
    }
    schedule_.units = buffers_.total();
    const std::int64_t part = schedule_.units / program_.collective.part_count();
    for (std::int64_t i = 0; i < schedule_.units; ++i) {
      const PartRanks part_ranks = ranks_of_part(program_.collective, i / part);
      schedule_.slices.push_back({i, 1, part_ranks.rank, part_ranks.to});
    }
    states_.resize(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      RankState& state = states_[rank];
      blocks_.emplace_back(program_.ranks[rank].blocks.size());
      state.versions.assign(schedule_.slices.size(), 0);
      state.signals.assign(program_.ranks[rank].channels.size(), 0);
      state.semaphores = program_.ranks[rank].semaphores;
      state.cells['i'].resize(static_cast<std::size_t>(buffers_.inputs()));
      state.cells['o'].resize(static_cast<std::size_t>(buffers_.outputs()));
      state.cells['s'].resize(static_cast<std::size_t>(program_.ranks[rank].scratch));
      for (std::int64_t i = 0; i < buffers_.inputs(); ++i) {
        cell(rank, {'i', i}) = {*buffers_.find(Rank(rank), {'i', i}), rank, 0};
      }
      for (std::size_t i = 0; i < program_.ranks[rank].channels.size(); ++i) {
        const MscclppChannel& channel = program_.ranks[rank].channels[i];
        ends_[{rank, channel.peer, channel.is_port, channel.number}] = i;
      }
    }
    return {};
  }

  /// In place, input and output share memory.
  [[nodiscard]] MscclChunk canonical(std::size_t rank, MscclChunk place) const {
    if (!program_.in_place || place.buffer == 's') return place;
    const std::int64_t own = program_.chunks / program_.collective.rank_count * static_cast<std::int64_t>(rank);
    switch (program_.collective.kind) {
      case CollectiveKind::all_gather: return place.buffer == 'i' ? MscclChunk{'o', own + place.offset} : place;
      case CollectiveKind::reduce_scatter: return place.buffer == 'o' ? MscclChunk{'i', own + place.offset} : place;
      default: return {'o', place.offset};
    }
  }

  HeldSlice& cell(std::size_t rank, MscclChunk place) {
    const MscclChunk at = canonical(rank, place);
    return states_[rank].cells[at.buffer][static_cast<std::size_t>(at.offset)];
  }

  tl::unexpected<Error> fail_op(ErrorCode code, const MscclppOp& op, const std::string& message,
                                const std::string& help) const {
    return fail(code, fmt::format("{}: {}: {}", file_, op.place, message), help);
  }

  /// Does the next operation of a thread block if it can.
  Result<bool> step(std::size_t rank, std::size_t block) {
    BlockState& state = blocks_[rank][block];
    const std::vector<MscclppOp>& ops = program_.ranks[rank].blocks[block];
    if (state.at == ops.size()) return false;
    const MscclppOp& op = ops[state.at];
    if (!is_ready(rank, op, state)) return false;
    if (op.kind == Kind::move || op.kind == Kind::reduce) {
      if (auto done = move(rank, block, op); !done) return tl::unexpected(done.error());
    }
    for (const std::size_t channel : op.channels) {
      if (op.kind == Kind::wait) {
        --states_[rank].signals[channel];
      } else {
        const MscclppChannel& own = program_.ranks[rank].channels[channel];
        const auto end = ends_.find({own.peer, rank, own.is_port, own.number});
        if (end != ends_.end()) ++states_[own.peer].signals[end->second];  // Else nobody can wait for it.
      }
    }
    for (const std::int64_t semaphore : op.semaphores) {
      states_[rank].semaphores[static_cast<std::size_t>(semaphore)] += op.kind == Kind::release ? 1 : -1;
    }
    ++state.at;
    return true;
  }

  bool is_ready(std::size_t rank, const MscclppOp& op, BlockState& block) {
    RankState& state = states_[rank];
    switch (op.kind) {
      case Kind::wait:
        return std::ranges::all_of(op.channels, [&](std::size_t channel) { return state.signals[channel] > 0; });
      case Kind::acquire:
        return std::ranges::all_of(op.semaphores, [&](std::int64_t semaphore) {
          return state.semaphores[static_cast<std::size_t>(semaphore)] > 0;
        });
      case Kind::barrier: {
        Barrier& barrier = state.barriers[op.barrier];
        if (!block.has_arrived) {
          block.has_arrived = true;
          block.generation = barrier.generation;
          if (++barrier.arrived == op.barrier_blocks) {
            ++barrier.generation;
            barrier.arrived = 0;
          }
        }
        if (block.generation == barrier.generation) return false;
        block.has_arrived = false;
        return true;
      }
      default: break;
    }
    if (!op.awaits_sources) return true;
    for (const MscclppCells& run : op.sources) {
      if (run.first.buffer != 's') continue;
      for (std::int64_t i = 0; i < run.count; ++i) {
        if (cell(run.rank, {'s', run.first.offset + i}).slice < 0) return false;
      }
    }
    return true;
  }

  /// Chunk by chunk; chunks that follow each other and take the same steps become transfers together.
  Result<void> move(std::size_t rank, std::size_t block, const MscclppOp& op) {
    channel_ = ChannelId(static_cast<std::uint32_t>(block));
    const std::size_t lists = op.kind == Kind::move && op.sources.size() > 1 ? op.sources.size() : 1;
    for (std::size_t list = 0; list < lists; ++list) {
      const auto& length = op.kind == Kind::move ? op.sources[list] : op.sources.front();
      for (std::int64_t i = 0; i < length.count; ++i) {
        steps_.clear();
        const auto done = op.kind == Kind::reduce ? reduce_chunk(rank, op, i)
                          : lists > 1             ? move_chunk(op, list, list, list + 1, i)
                                                  : move_chunk(op, 0, 0, op.targets.size(), i);
        if (!done) return tl::unexpected(done.error());
        if (auto joined = join_steps(*done); !joined) return joined;
      }
      if (auto flushed = flush_steps(); !flushed) return flushed;
    }
    return {};
  }

  /// The slice that lies there.
  Result<HeldSlice> read(const MscclppOp& op, const MscclppCells& run, std::int64_t i) {
    const HeldSlice held = cell(run.rank, {run.first.buffer, run.first.offset + i});
    if (held.slice >= 0) return held;
    return fail_op(ErrorCode::invalid_input, op,
                   fmt::format("nothing has come to {}{} of GPU {}", run.first.buffer, run.first.offset + i, run.rank),
                   "check what it waits for, and its places");
  }

  /// What lies there as the rank's own: a copy of another's slice that is handed on has to become it.
  Result<HeldSlice> own(const MscclppOp& op, const MscclppCells& run, std::int64_t i) {
    const auto held = read(op, run, i);
    if (!held || held->rank == run.rank) return held;
    const auto version = take_step(op, *held, run.rank, Action::copy);
    if (!version) return tl::unexpected(version.error());
    const HeldSlice own{held->slice, run.rank, *version};
    cell(run.rank, {run.first.buffer, run.first.offset + i}) = own;
    return own;
  }

  /// A slice goes to a rank, which has it in a new version then.
  Result<std::uint32_t> take_step(const MscclppOp& op, const HeldSlice& held, std::size_t dst, Action action) {
    if (auto current = check_current(op, held); !current) return tl::unexpected(current.error());
    steps_.push_back({held.rank, dst, action});
    return ++states_[dst].versions[static_cast<std::size_t>(held.slice)];
  }

  Result<void> check_current(const MscclppOp& op, const HeldSlice& held) const {
    if (states_[held.rank].versions[static_cast<std::size_t>(held.slice)] == held.version) return {};
    return fail_op(ErrorCode::unsupported, op,
                   fmt::format("it uses a copy of chunk {} of GPU {}, which has changed since", held.slice, held.rank),
                   "a schedule has no copy of it on the way");
  }

  Result<std::int64_t> move_chunk(const MscclppOp& op, std::size_t source, std::size_t first, std::size_t end,
                                  std::int64_t i) {
    const MscclppCells& from = op.sources[source];
    auto held = read(op, from, i);
    if (!held) return tl::unexpected(held.error());
    for (std::size_t target = first; target < end; ++target) {
      if (op.targets[target].rank != from.rank) {
        held = own(op, from, i);
        if (!held) return tl::unexpected(held.error());
      }
      if (auto put = write(op, op.targets[target], i, *held); !put) return tl::unexpected(put.error());
    }
    return held->slice;
  }

  /// A slice comes to a place. Where that is its own place at another rank, it has been transferred.
  Result<void> write(const MscclppOp& op, const MscclppCells& run, std::int64_t i, HeldSlice held) {
    const MscclChunk place = canonical(run.rank, {run.first.buffer, run.first.offset + i});
    const auto home = buffers_.find(Rank(run.rank), place);
    if (held.rank != run.rank && place.buffer != 's' && home == held.slice) {
      const auto version = take_step(op, held, run.rank, Action::copy);
      if (!version) return tl::unexpected(version.error());
      held = {held.slice, run.rank, *version};
    }
    cell(run.rank, place) = held;
    return {};
  }

  Result<std::int64_t> reduce_chunk(std::size_t rank, const MscclppOp& op, std::int64_t i) {
    std::optional<HeldSlice> sum;
    std::vector<HeldSlice> others;
    for (const MscclppCells& run : op.sources) {
      const auto held = run.rank == rank ? read(op, run, i) : own(op, run, i);
      if (!held) return tl::unexpected(held.error());
      if (held->slice != (sum ? sum->slice : others.empty() ? held->slice : others.front().slice)) {
        return fail_op(ErrorCode::unsupported, op, "it adds unlike chunks",
                       "a schedule adds what stands for one slice");
      }
      if (held->rank != rank) {
        others.push_back(*held);
        continue;
      }
      if (sum) return fail_op(ErrorCode::unsupported, op, "it adds a chunk to itself", "a schedule adds each once");
      sum = *held;
    }
    if (sum) {
      if (auto current = check_current(op, *sum); !current) return tl::unexpected(current.error());
    }
    for (const HeldSlice& other : others) {
      const auto version = take_step(op, other, rank, sum ? Action::reduce : Action::copy);
      if (!version) return tl::unexpected(version.error());
      sum = HeldSlice{other.slice, rank, *version};
    }
    for (const MscclppCells& run : op.targets) {
      if (auto put = write(op, run, i, *sum); !put) return tl::unexpected(put.error());
    }
    return sum->slice;
  }

  /// Adds a chunk's steps to those of the chunks before it, where they are alike.
  Result<void> join_steps(std::int64_t slice) {
    if (!steps_.empty() && steps_ == joined_ && slice == first_joined_ + joined_count_) {
      ++joined_count_;
      return {};
    }
    if (auto flushed = flush_steps(); !flushed) return flushed;
    joined_ = steps_;
    first_joined_ = slice;
    joined_count_ = 1;
    return {};
  }

  Result<void> flush_steps() {
    for (const SliceStep& step : joined_) {
      const auto route = route_to(step.src, step.dst);
      if (!route) return tl::unexpected(route.error());
      schedule_.add_transfer(*route, SliceId(static_cast<std::size_t>(first_joined_)),
                             static_cast<std::uint32_t>(joined_count_), step.action, channel_);
    }
    joined_.clear();
    return {};
  }

  /// The fastest route; thread blocks take equally good ones in turn.
  Result<RouteId> route_to(std::size_t from, std::size_t to) {
    auto& routes = routes_[{from, channel_}];
    if (routes.empty()) {
      routes = routes_from(topology_, Rank(from), {.variant = static_cast<std::uint32_t>(channel_.index())});
    }
    const auto& found = routes[to];
    if (found) return schedule_.add_route(Rank(from), Rank(to), found->links);
    return fail(ErrorCode::infeasible,
                fmt::format("{}: {} reaches {} only through other ranks", file_, topology_.rank_name(Rank(from)),
                            topology_.rank_name(Rank(to))),
                "name the topology that it was made for");
  }

  /// Every thread block has come to its end, and every output holds its slice as the rank has it.
  Result<void> check_end() {
    for (std::size_t rank = 0; rank < blocks_.size(); ++rank) {
      for (std::size_t block = 0; block < blocks_[rank].size(); ++block) {
        const std::vector<MscclppOp>& ops = program_.ranks[rank].blocks[block];
        if (blocks_[rank][block].at == ops.size()) continue;
        return fail_op(ErrorCode::infeasible, ops[blocks_[rank][block].at], "it never gets past this operation",
                       "check the channels and semaphores that it waits for");
      }
    }
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
      for (std::int64_t i = 0; i < buffers_.outputs(); ++i) {
        const HeldSlice& held = cell(rank, {'o', i});
        const auto wanted = buffers_.find(Rank(rank), {'o', i});
        const bool is_own_block = !program_.in_place && program_.collective.kind == CollectiveKind::all_to_all &&
                                  wanted == buffers_.find(Rank(rank), {'i', i});
        if (is_own_block && held.slice < 0) continue;  // What stays at its rank moves over no link.
        if (held.slice == *wanted && held.rank == rank &&
            states_[rank].versions[static_cast<std::size_t>(*wanted)] == held.version) {
          continue;
        }
        return fail(ErrorCode::invalid_input,
                    fmt::format("{}: at its end chunk {} of GPU {}'s output is not what it is to be", file_, i, rank),
                    "check the operations that write there");
      }
    }
    return {};
  }

  const MscclppProgram& program_;
  const std::string& file_;
  const Topology& topology_;
  MscclBuffers buffers_;
  Schedule schedule_;
  std::vector<RankState> states_;
  std::vector<std::vector<BlockState>> blocks_;
  std::map<std::tuple<std::size_t, std::size_t, bool, std::size_t>, std::size_t> ends_;
  std::map<std::pair<std::size_t, ChannelId>, std::vector<std::optional<FoundRoute>>> routes_;
  ChannelId channel_;
  std::vector<SliceStep> steps_;   ///< Of the chunk that is being moved.
  std::vector<SliceStep> joined_;  ///< Of the chunks before it.
  std::int64_t first_joined_ = 0, joined_count_ = 0;
};

}  // namespace

Result<Schedule> import_mscclpp(std::string_view text, const std::string& file, const Topology& topology) {
  const auto program = read_mscclpp_program(text, file);
  if (!program) return tl::unexpected(program.error());
  return MscclppRun(*program, file, topology).run();
}

}  // namespace espalier
