#include "engine/communicator/communicator.h"

#include <gtest/gtest.h>

#include "tests/support/engine_cases.h"
#include "tests/support/late_device.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine {
namespace {

using test::Memory;
using test::PlannedSource;
using test::run_case;

void run_all_kinds(Communicator& communicator, Memory memory) {
  for (const CollectiveKind kind : all_collective_kinds) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{50021}}) {
      for (const bool in_place : {false, true}) {
        DataCase data{kind, ElementType::float32, ReduceOperation::sum, communicator.size(), 0, count, count};
        if (has_root(kind)) data.root = communicator.size() - 1;
        run_case(communicator, data, memory, in_place);
      }
    }
  }
}

struct Setting {
  const char* planner;
  std::uint32_t ranks;
  TransportChoice transport;
  Memory memory;
};

class EveryCollective : public ::testing::TestWithParam<Setting> {};

TEST_P(EveryCollective, GivesWhatItPromises) {
  const Setting& setting = GetParam();
  PlannedSource source(setting.planner, Bytes{16384});
  JobOptions options;
  options.transport = setting.transport;
  run_ranks(setting.ranks, source.source(), std::move(options),
            [&](Communicator& communicator) { run_all_kinds(communicator, setting.memory); });
}

TEST(BroadcastToOne, IsWholeWhenBothSidesCopy) {
  PlannedSource source("flat");
  JobOptions options;
  options.transport = TransportChoice::shm;
  run_ranks(2, source.source(), std::move(options), [](Communicator& communicator) {
    for (const std::size_t count : {std::size_t{8192}, std::size_t{8193}, std::size_t{1'000'003}}) {
      for (std::uint32_t root = 0; root < 2; ++root) {
        run_case(communicator,
                 {CollectiveKind::broadcast, ElementType::float32, ReduceOperation::sum, 2, root, count, 5},
                 Memory::registered, root == 1);
      }
    }
  });
}

/// In place every rank adds to what the others still read: they get what it was.
TEST(ExchangeOfInputs, AddsWhatRanksBroughtInPlaceToo) {
  for (const TransportChoice transport : {TransportChoice::shm, TransportChoice::tcp}) {
    for (const std::uint32_t ranks : {2U, 3U, 5U}) {
      for (const bool is_late : {false, true}) {
        SCOPED_TRACE(std::string(to_string(transport)) + " " + std::to_string(ranks) + (is_late ? " late" : ""));
        PlannedSource source("oneshot", Bytes{16384});
        JobOptions options;
        options.transport = transport;
        if (is_late) options.make_device = [] { return std::make_unique<test::LateDevice>(); };
        run_ranks(ranks, source.source(), std::move(options), [](Communicator& communicator) {
          for (const std::size_t count :
               {std::size_t{1}, std::size_t{50021}, std::size_t{1000}, std::size_t{200'003}}) {
            for (const Memory memory : {Memory::plain, Memory::registered}) {
              for (const bool in_place : {false, true}) {
                run_case(communicator,
                         {CollectiveKind::all_reduce, ElementType::float32, ReduceOperation::sum, communicator.size(),
                          0, count, count},
                         memory, in_place);
              }
            }
          }
        });
      }
    }
  }
}

/// A device that is through with its work only later, as GPUs are, changes no result.
TEST_P(EveryCollective, GivesTheSameWithADeviceThatIsLate) {
  const Setting& setting = GetParam();
  PlannedSource source(setting.planner, Bytes{16384});
  JobOptions options;
  options.transport = setting.transport;
  options.make_device = [] { return std::make_unique<test::LateDevice>(); };
  run_ranks(setting.ranks, source.source(), std::move(options), [&](Communicator& communicator) {
    run_all_kinds(communicator, setting.memory);
    DataCase average{
        CollectiveKind::all_reduce, ElementType::float32, ReduceOperation::avg, communicator.size(), 0, 1000, 7};
    run_case(communicator, average, setting.memory, true);
  });
}

INSTANTIATE_TEST_SUITE_P(Settings, EveryCollective,
                         ::testing::Values(Setting{"flat", 1, TransportChoice::shm, Memory::plain},
                                           Setting{"flat", 2, TransportChoice::shm, Memory::registered},
                                           Setting{"flat", 4, TransportChoice::shm, Memory::registered},
                                           Setting{"flat", 4, TransportChoice::shm, Memory::plain},
                                           Setting{"flat", 3, TransportChoice::tcp, Memory::plain},
                                           Setting{"ring", 4, TransportChoice::shm, Memory::registered},
                                           Setting{"ring", 3, TransportChoice::shm, Memory::plain},
                                           Setting{"ring", 4, TransportChoice::tcp, Memory::registered},
                                           Setting{"tree", 5, TransportChoice::shm, Memory::registered},
                                           Setting{"tree", 5, TransportChoice::tcp, Memory::plain},
                                           Setting{"packing", 4, TransportChoice::shm, Memory::registered},
                                           Setting{"packing", 4, TransportChoice::shm, Memory::plain},
                                           Setting{"packing", 4, TransportChoice::tcp, Memory::plain}),
                         [](const auto& setting) {
                           return std::string(setting.param.planner) + std::to_string(setting.param.ranks) +
                                  std::string(to_string(setting.param.transport)) +
                                  (setting.param.memory == Memory::registered ? "Registered" : "Plain");
                         });

}  // namespace
}  // namespace espalier::engine
