// The schedules of the shipped machines of up to 16 ranks, run by the interpreter: with every type on up to eight
// ranks, with a type of each size on more.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planners/planner.h"
#include "tests/support/device_program_case.h"
#include "tests/support/files/shipped_machine.h"

namespace espalier::engine::cuda {
namespace {

constexpr std::uint32_t max_ranks = 16;
constexpr std::uint32_t max_ranks_of_all_types = 8;
constexpr std::array a_type_of_each_size = {ElementType::uint8, ElementType::bfloat16, ElementType::float32,
                                            ElementType::float64};

/// All of a schedule that its device program is made of: machines that differ in their links alone share schedules.
std::vector<std::int64_t> content_of(const Schedule& schedule) {
  std::vector<std::int64_t> content = {static_cast<std::int64_t>(schedule.collective.kind),
                                       static_cast<std::int64_t>(schedule.collective.rank_count), schedule.units};
  for (const Slice& slice : schedule.slices) content.insert(content.end(), {slice.offset, slice.length});
  for (const Transfer& transfer : schedule.transfers) {
    for (const std::size_t value :
         {schedule.src(transfer).index(), schedule.dst(transfer).index(), transfer.first_slice.index(),
          std::size_t{transfer.slice_count}, transfer.channel().index(), std::size_t{transfer.reduces}}) {
      content.push_back(static_cast<std::int64_t>(value));
    }
  }
  return content;
}

TEST(DeviceProgramRaces, NoneInTheSchedulesOfShippedMachines) {
  std::set<std::vector<std::int64_t>> schedules;
  std::set<std::string_view> planned;
  for (const std::string& name : test::shipped_names()) {
    const Topology topology = test::shipped_machine(name);
    const auto ranks = static_cast<std::uint32_t>(topology.rank_count());
    if (ranks > max_ranks) continue;
    const auto types = ranks <= max_ranks_of_all_types ? std::span<const ElementType>(all_element_types)
                                                       : std::span<const ElementType>(a_type_of_each_size);
    for (const CollectiveKind kind : all_collective_kinds) {
      const auto root = has_root(kind) ? std::optional(Rank(ranks - 1)) : std::nullopt;
      const auto collective = make_collective(kind, ranks, root);
      for (const planners::Planner& planner : planners::all_planners()) {
        const auto schedule = planners::plan_unbounded(topology, *collective, planner);
        if (!schedule || !schedule->relays.empty()) continue;
        planned.insert(planner.name);
        if (!schedules.insert(content_of(*schedule)).second) continue;
        SCOPED_TRACE(name + ", " + std::string(planner.name));
        for (const ElementType type : types) {
          const bool low_latency = size_of(type) == 1;
          const std::uint32_t blocks = type == ElementType::float32 ? 2 : 1;  // A block is a thread.
          test::run_device_case(*schedule, {kind, type, ReduceOperation::sum, ranks, root ? ranks - 1 : 0, 67},
                                Bytes{64}, {.blocks_per_rank = blocks, .low_latency = low_latency}, false);
          if (HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GE(schedules.size(), 100U);
  EXPECT_GE(planned.size(), 10U);
}

}  // namespace
}  // namespace espalier::engine::cuda
