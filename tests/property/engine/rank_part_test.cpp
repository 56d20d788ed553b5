// What a rank takes out of a symmetric plan by itself compiles to the program that it gets out of the whole plan.
#include "planners/symmetric/rank_part.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "engine/program/rank_program.h"
#include "topology/generate/generate.h"

namespace espalier::engine {
namespace {

std::string text(const Location& location) {
  return fmt::format("{}+{}", static_cast<int>(location.place), location.offset);
}

/// All that a program does, with transfers by what they move.
std::string text(const RankProgram& program, const Schedule& schedule) {
  std::string all = fmt::format("{} {} {} {} {}\n", program.send_bytes, program.receive_bytes, program.scratch_bytes,
                                program.max_op_bytes, program.in_place_shift.value_or(-1));
  for (const Stream& stream : program.streams) {
    all += fmt::format("{} {} {}, {} credits\n", stream.is_outgoing ? "to" : "from", stream.peer.value(), stream.number,
                       stream.initial_credits);
    for (std::uint32_t i = 0; i < stream.op_count; ++i) {
      const Op& op = program.ops[stream.first_op + i];
      const Transfer& moved = schedule.transfers[op.transfer.index()];
      all += fmt::format("  {}+{} of {}>{} chunk {} level {} bytes {} fused {}:", moved.first_slice.value(),
                         moved.slice_count, schedule.src(moved).value(), schedule.dst(moved).value(), op.chunk,
                         op.level, op.bytes, op.fused != not_fused);
      for (std::uint32_t p = 0; p < op.piece_count; ++p) {
        const Piece& piece = program.pieces[op.first_piece + p];
        all += fmt::format(" {} {}>{} ({})", piece.length, text(piece.source), text(piece.target), text(piece.first));
      }
      for (std::uint32_t w = 0; w < op.wait_count; ++w) {
        all += fmt::format(" waits {}:{}", program.waits[op.first_wait + w].stream,
                           program.waits[op.first_wait + w].count);
      }
      all += "\n";
    }
  }
  for (const FusedReduction& fused : program.fused_reductions) {
    all += fmt::format("fused {} forwarded {}\n", fused.member_count, fused.forward_count);
  }
  for (const LocalCopy& copy : program.local_copies) {
    all += fmt::format("copy {} {}>{}\n", copy.length, text(copy.from), text(copy.to));
  }
  return all;
}

TEST(RankPart, CompilesToTheProgramOfTheWhole) {
  const std::array machines = {generate_ring({.ranks = 5}), generate_torus({.dims = {4, 3}}),
                               generate_torus({.dims = {3, 3, 2}}),
                               generate_rail_boxes({.boxes = 3, .gpus_per_box = 4, .rails = 4}),
                               generate_leaf_spine({.leaves = 3, .ranks_per_leaf = 3, .spines = 3})};
  std::size_t compared = 0;
  for (const auto& machine : machines) {
    ASSERT_TRUE(machine) << machine.error().message;
    const Topology& topology = *machine;
    for (const CollectiveKind kind :
         {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
      const auto packing =
          planners::plan_symmetric(topology, *make_collective(kind, topology.rank_count(), std::nullopt));
      ASSERT_TRUE(packing) << packing.error().message;
      for (const auto& plan : {*packing, *planners::plan_symmetric_tree(*packing, topology)}) {
        const auto whole = planners::written_out(plan, topology);
        ASSERT_TRUE(whole) << whole.error().message;
        for (const std::int64_t size : {1000, 100'000}) {  // not all of it divides among the ranks
          const Layout layout = *Layout::make(*whole, {size}, 4);
          for (std::uint32_t rank = 0; rank < topology.rank_count(); ++rank) {
            const auto needs = planners::needs_of_rank(plan, topology, Rank(rank));
            ASSERT_TRUE(needs) << needs.error().message;
            EXPECT_LE(needs->transfers.size(), whole->transfers.size());
            const auto choose = [](const Transfer& transfer) { return transfer.channel_value % 2; };
            const auto by_part = compile(*needs, *Layout::make(*needs, {size}, 4), {{512}}, Rank(rank), choose);
            const auto by_whole = compile(*whole, layout, {{512}}, Rank(rank), choose);
            ASSERT_TRUE(by_part && by_whole);
            ASSERT_EQ(text(*by_part, *needs), text(*by_whole, *whole))
                << topology.name() << " " << to_string(kind) << " by " << plan.part.algorithm << ", rank " << rank;
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 500U);
}

}  // namespace
}  // namespace espalier::engine
