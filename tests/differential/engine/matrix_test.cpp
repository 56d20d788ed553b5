// Every collective with every kind of schedule on 2, 3, 4 and 8 ranks, over each transport, element by element. Types,
// operations and counts are dealt to these, so that all of them come; ESPALIER_MATRIX=full runs all with all.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "planners/planner.h"
#include "tests/support/engine_cases.h"
#include "tests/support/local_ranks.h"
#include "tests/support/transports_here.h"
#include "topology/generate/generate.h"

namespace espalier {
namespace {

/// One element; fewer than ranks; a prime that no number of ranks divides; more than one chunk, and what RDMA writes
/// directly.
constexpr std::array<std::size_t, 4> matrix_counts = {1, 5, 997, 20011};

bool is_full_matrix() {
  const char* text = std::getenv("ESPALIER_MATRIX");
  return text != nullptr && std::string_view(text) == "full";
}

/// The schedules that one planner makes on fully connected ranks.
struct PlannerSchedules {
  std::string_view planner;
  std::map<CollectiveKind, std::shared_ptr<const Schedule>> by_kind;
};

Collective matrix_collective(CollectiveKind kind, std::uint32_t ranks) {
  return *make_collective(kind, ranks, has_root(kind) ? std::optional(Rank(ranks - 1)) : std::nullopt);
}

std::vector<PlannerSchedules> plan_everything(std::uint32_t ranks) {
  const auto topology = generate_fully_connected({.ranks = ranks});
  std::vector<PlannerSchedules> all;
  for (const planners::Planner& planner : planners::all_planners()) {
    PlannerSchedules made{planner.name, {}};
    for (const CollectiveKind kind : all_collective_kinds) {
      auto schedule = planners::plan(*topology, matrix_collective(kind, ranks), planner);
      if (schedule) made.by_kind[kind] = std::make_shared<const Schedule>(std::move(*schedule));
    }
    if (!made.by_kind.empty()) all.push_back(std::move(made));
  }
  return all;
}

struct MatrixCell {
  CollectiveKind kind = CollectiveKind::all_reduce;
  ElementType type = ElementType::float32;
  ReduceOperation operation = ReduceOperation::sum;
  std::size_t count = 0;
  test::Memory memory = test::Memory::plain;
  bool in_place = false;
};

/// The calls of a planner's schedules; `place` goes on from one planner to the next.
std::vector<MatrixCell> cells_of(const PlannerSchedules& schedules, std::size_t& place) {
  std::vector<MatrixCell> cells;
  const auto add = [&](CollectiveKind kind, ElementType type, std::size_t count) {
    cells.push_back({kind, type, all_reduce_operations[place % all_reduce_operations.size()], count,
                     static_cast<test::Memory>(place % 3), place / 3 % 2 == 1});
    ++place;
  };
  for (const auto& entry : schedules.by_kind) {
    if (is_full_matrix()) {
      for (const ElementType type : all_element_types) {
        for (const std::size_t count : matrix_counts) add(entry.first, type, count);
      }
    } else {
      const ElementType type = all_element_types[place % all_element_types.size()];
      add(entry.first, type, matrix_counts[place / all_element_types.size() % matrix_counts.size()]);
    }
  }
  return cells;
}

/// A transport and a number of ranks.
class EngineMatrix : public ::testing::TestWithParam<std::tuple<TransportChoice, std::uint32_t>> {};

TEST_P(EngineMatrix, GivesWhatTheCollectivePromises) {
  const auto [transport, ranks] = GetParam();
  const std::vector<PlannerSchedules> all = plan_everything(ranks);
  std::set<CollectiveKind> kinds;
  for (const PlannerSchedules& schedules : all) {
    for (const auto& entry : schedules.by_kind) kinds.insert(entry.first);
  }
  EXPECT_EQ(kinds.size(), all_collective_kinds.size());
  EXPECT_GE(all.size(), 8U) << "planners that plan on fully connected ranks";
  const auto none = [](const Collective&, Bytes) -> Result<SourcedSchedule> {
    return fail(ErrorCode::unsupported, "each group brings its own schedule");
  };
  JobOptions options;
  options.transport = transport;
  options.timeout = std::chrono::milliseconds(60000);
  run_ranks(ranks, none, std::move(options), [&all, ranks = ranks](Communicator& world) {
    std::vector<std::uint32_t> members(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) members[rank] = rank;
    std::size_t place = ranks;
    for (const PlannerSchedules& schedules : all) {
      auto group = world.split(members, std::string(schedules.planner),
                               [&](const Collective& collective, Bytes) -> Result<SourcedSchedule> {
                                 return SourcedSchedule{schedules.by_kind.at(collective.kind), Bytes{16384}};
                               });
      ASSERT_TRUE(group) << group.error().message;
      for (const MatrixCell& cell : cells_of(schedules, place)) {
        SCOPED_TRACE(std::string(schedules.planner));
        const engine::DataCase data{cell.kind,  cell.type, cell.operation, ranks, has_root(cell.kind) ? ranks - 1 : 0,
                                    cell.count, cell.count};
        test::run_case(**group, data, cell.memory, cell.in_place);
        if (::testing::Test::HasFailure()) return world.abort("a test failed");
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, EngineMatrix,
                         ::testing::Combine(::testing::ValuesIn(test::transports_here()),
                                            ::testing::Values(2U, 3U, 4U, 8U)),
                         [](const auto& cell) {
                           return std::string(to_string(std::get<0>(cell.param))) + "On" +
                                  std::to_string(std::get<1>(cell.param));
                         });

}  // namespace
}  // namespace espalier
