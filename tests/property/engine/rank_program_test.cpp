// Programs of all ranks, carried out in one thread in random order with few slots between ranks: they always finish,
// and every byte that is promised is there.
#include "engine/program/rank_program.h"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <tuple>

#include "base/check.h"
#include "base/random.h"
#include "planners/planner.h"
#include "tests/support/networks/random_graph.h"

namespace espalier::engine {
namespace {

using Image = std::vector<std::uint64_t>;  // A number for each byte, so that sums never mix up.

/// One rank: its program and its three memories.
struct Actor {
  RankProgram program;
  std::array<Image, 3> memories;
  std::vector<std::uint32_t> next;  ///< By stream: ops that were begun, which are also done.

  std::uint64_t* at(const Location& location) {
    return memories[static_cast<std::size_t>(location.place)].data() + location.offset;
  }
  [[nodiscard]] bool may_begin(const Op& op) const {
    for (std::uint32_t i = 0; i < op.wait_count; ++i) {
      const LocalWait& wait = program.waits[op.first_wait + i];
      if (next[wait.stream] < wait.count) return false;
    }
    return true;
  }
  [[nodiscard]] const Op* head(std::uint32_t stream) const {
    const Stream& of = program.streams[stream];
    return next[stream] < of.op_count ? &program.ops[of.first_op + next[stream]] : nullptr;
  }
};

/// All ranks, with a few slots of staging between each two.
class Stage {
 public:
  Stage(const Schedule& schedule, const Layout& layout, Bytes chunk, std::uint32_t streams, std::size_t slots)
      : slots_(slots) {
    for (std::uint32_t rank = 0; rank < schedule.collective.rank_count; ++rank) {
      auto program = compile(schedule, layout, {chunk}, Rank(rank),
                             [&](const Transfer& transfer) { return transfer.first_slice.value() % streams; });
      ESPALIER_CHECK(program.has_value(), "schedules of ranks alone compile");
      Actor actor;
      actor.next.assign(program->streams.size(), 0);
      actor.memories[0].resize(static_cast<std::size_t>(program->send_bytes));
      actor.memories[1].resize(static_cast<std::size_t>(program->receive_bytes));
      actor.memories[2].resize(static_cast<std::size_t>(program->scratch_bytes));
      actor.program = std::move(*program);
      actors.push_back(std::move(actor));
    }
  }

  /// False when nothing can move and something is left.
  bool run(Random& random) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
    for (std::uint32_t rank = 0; rank < actors.size(); ++rank) {
      for (std::uint32_t stream = 0; stream < actors[rank].program.streams.size(); ++stream) {
        ends.emplace_back(rank, stream);
      }
    }
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t i = ends.size(); i-- > 1;) std::swap(ends[i], ends[random.below(i + 1)]);
      for (const auto& [rank, stream] : ends) moved |= step(actors[rank], rank, stream);
    }
    for (const auto& [rank, stream] : ends) {
      if (actors[rank].head(stream) != nullptr) return false;
    }
    for (Actor& actor : actors) {
      for (const LocalCopy& copy : actor.program.local_copies) {
        std::copy_n(actor.at(copy.from), copy.length, actor.at(copy.to));
      }
    }
    return true;
  }

  std::vector<Actor> actors;

 private:
  using PairStream = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // From, to, number.

  bool step(Actor& actor, std::uint32_t rank, std::uint32_t index) {
    const Stream& stream = actor.program.streams[index];
    const Op* op = actor.head(index);
    if (op == nullptr || !actor.may_begin(*op)) return false;
    if (stream.is_outgoing) {
      auto& queue = queues_[{rank, stream.peer.value(), stream.number}];
      if (queue.size() == slots_) return false;
      Image bytes;
      for (std::uint32_t i = 0; i < op->piece_count; ++i) {
        const Piece& piece = actor.program.pieces[op->first_piece + i];
        bytes.insert(bytes.end(), actor.at(piece.source), actor.at(piece.source) + piece.length);
      }
      EXPECT_EQ(bytes.size(), static_cast<std::size_t>(op->bytes));
      queue.push_back(std::move(bytes));
      ++actor.next[index];
      return true;
    }
    if (op->fused != not_fused) return take_fused(actor, rank, actor.program.fused_reductions[op->fused]);
    if (queue_of(actor, rank, index).empty()) return false;
    take(actor, rank, index);
    return true;
  }

  std::deque<Image>& queue_of(const Actor& actor, std::uint32_t rank, std::uint32_t index) {
    const Stream& stream = actor.program.streams[index];
    return queues_[{stream.peer.value(), rank, stream.number}];
  }

  bool take_fused(Actor& actor, std::uint32_t rank, const FusedReduction& fused) {
    const auto members = std::span(actor.program.members).subspan(fused.first_member, fused.member_count);
    for (const OpPlace& member : members) {
      if (actor.next[member.stream] != member.index || !actor.may_begin(*actor.head(member.stream)) ||
          queue_of(actor, rank, member.stream).empty()) {
        return false;
      }
    }
    for (const OpPlace& member : members) take(actor, rank, member.stream);
    return true;
  }

  void take(Actor& actor, std::uint32_t rank, std::uint32_t index) {
    const Op& op = *actor.head(index);
    auto& queue = queue_of(actor, rank, index);
    const Image bytes = std::move(queue.front());
    queue.pop_front();
    ASSERT_EQ(bytes.size(), static_cast<std::size_t>(op.bytes)) << "both ends run the same ops in the same order";
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < op.piece_count; ++i) {
      const Piece& piece = actor.program.pieces[op.first_piece + i];
      for (std::int64_t byte = 0; byte < piece.length; ++byte, ++at) {
        actor.at(piece.target)[byte] = bytes[at] + (op.reduces ? actor.at(piece.first)[byte] : 0);
      }
    }
    ++actor.next[index];
  }

  std::size_t slots_;
  std::map<PairStream, std::deque<Image>> queues_;
};

/// What rank `rank` brings for byte `at` of its send buffer.
std::uint64_t value_of(std::uint32_t rank, std::size_t at) { return (std::uint64_t{1} << (8 * rank)) * (1 + at % 31); }

class Programs : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  /// All schedules of ranks alone for an all_reduce on a random network.
  void for_each_schedule(const std::function<void(const Schedule&)>& body) {
    const Topology topology = test::make_topology(test::random_graph(random, {6, 2, 9, true}), 1);
    const auto collective = make_collective(CollectiveKind::all_reduce, topology.rank_count(), std::nullopt);
    for (const planners::Planner& planner : planners::all_planners()) {
      const auto schedule = planners::plan_unbounded(topology, *collective, planner);
      if (!schedule || !schedule->relays.empty()) continue;
      SCOPED_TRACE(std::string(planner.name));
      body(*schedule);
      if (HasFatalFailure()) return;
    }
  }

  Random random{1000 + GetParam()};
};

TEST_P(Programs, FinishAndAddUp) {
  for_each_schedule([&](const Schedule& schedule) {
    const std::uint32_t ranks = schedule.collective.rank_count;
    const std::int64_t size = random.between(0, 300);
    const auto layout = Layout::make(schedule, Bytes{size}, 1);
    ASSERT_TRUE(layout);
    Stage stage(schedule, *layout, Bytes{random.between(1, 1 + size)}, 1 + static_cast<std::uint32_t>(random.below(3)),
                1 + random.below(3));
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      Image& send = stage.actors[rank].memories[0];
      for (std::size_t at = 0; at < send.size(); ++at) send[at] = value_of(rank, at);
    }
    ASSERT_TRUE(stage.run(random)) << "ranks wait for each other in a circle";
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      ASSERT_EQ(stage.actors[rank].memories[1].size(), static_cast<std::size_t>(size));
      for (std::size_t at = 0; at < static_cast<std::size_t>(size); ++at) {
        std::uint64_t sum = 0;
        for (std::uint32_t each = 0; each < ranks; ++each) sum += value_of(each, at);
        ASSERT_EQ(stage.actors[rank].memories[1][at], sum) << "rank " << rank << " byte " << at;
      }
    }
  });
}

/// How many of its first ops a rank waits for nothing with.
std::uint32_t count_free(const RankProgram& program, const Stream& stream) {
  std::uint32_t count = 0;
  while (count < stream.op_count && program.ops[stream.first_op + count].wait_count == 0) ++count;
  return count;
}

TEST_P(Programs, KnowWhatTheOtherEndPermitsByEntering) {
  for_each_schedule([&](const Schedule& schedule) {
    const auto layout = Layout::make(schedule, Bytes{300}, 1);
    ASSERT_TRUE(layout);
    const Stage stage(schedule, *layout, Bytes{random.between(1, 300)}, 2, 1);
    for (std::uint32_t rank = 0; rank < schedule.collective.rank_count; ++rank) {
      for (const Stream& stream : stage.actors[rank].program.streams) {
        const RankProgram& other = stage.actors[stream.peer.index()].program;
        const auto end = std::ranges::find_if(other.streams, [&](const Stream& theirs) {
          return theirs.peer == Rank(rank) && theirs.number == stream.number &&
                 theirs.is_outgoing != stream.is_outgoing;
        });
        ASSERT_NE(end, other.streams.end());
        const std::uint32_t free = count_free(other, *end);
        if (end->is_outgoing) {
          EXPECT_EQ(stream.initial_credits, free);
        } else {
          EXPECT_LE(stream.initial_credits,
                    free);  // A wait that the own stream or fused fulfils is still one to others.
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, Programs, ::testing::Range<std::uint64_t>(0, 80));

}  // namespace
}  // namespace espalier::engine
