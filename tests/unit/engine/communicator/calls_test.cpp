// Calls that are started, launched together, made by groups of ranks, or refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>

#include "tests/support/engine_cases.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::Memory;
using test::PlannedSource;
using test::run_case;

class Calls : public ::testing::TestWithParam<TransportChoice> {
 protected:
  void run(std::uint32_t ranks, const std::function<void(Communicator&)>& body) {
    JobOptions options;
    options.transport = GetParam();
    options.timeout = milliseconds(20000);
    run_ranks(ranks, source_.source(), std::move(options), body);
  }

  PlannedSource source_{"flat"};
};

std::vector<std::int32_t> numbers(std::size_t count, std::int32_t first) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST_P(Calls, AScheduleThatDoesNotKeepItsPromiseIsRefusedOnAllRanks) {
  const ScheduleSource broken = [source = source_.source()](const Collective& collective,
                                                            Bytes size) -> Result<SourcedSchedule> {
    auto sourced = source(collective, size);
    Schedule schedule = *sourced->schedule;
    schedule.transfers.pop_back();
    return SourcedSchedule{std::make_shared<const Schedule>(std::move(schedule)), sourced->chunk};
  };
  JobOptions options;
  options.transport = GetParam();
  options.timeout = milliseconds(20000);
  run_ranks(3, broken, std::move(options), [](Communicator& communicator) {
    std::int32_t one = 1;
    for (int again = 0; again < 2; ++again) {
      const auto ran = communicator.all_reduce(&one, &one, 1, ElementType::int32, ReduceOperation::sum);
      ASSERT_FALSE(ran);
      EXPECT_NE(ran.error().message.find("breaks rule S7"), std::string::npos) << ran.error().message;
    }
    EXPECT_EQ(one, 1);
  });
}

TEST_P(Calls, SeveralAreInFlight) {
  run(3, [](Communicator& communicator) {
    constexpr std::size_t calls = 12;
    std::vector<std::vector<std::int32_t>> buffers;
    std::vector<CallHandle> handles;
    for (std::size_t i = 0; i < calls; ++i) {
      buffers.push_back(numbers(1000, static_cast<std::int32_t>(i)));
      auto started = communicator.start({CollectiveKind::all_reduce, buffers.back().data(), buffers.back().data(), 1000,
                                         ElementType::int32, ReduceOperation::sum, 0});
      ASSERT_TRUE(started);
      handles.push_back(std::move(*started));
    }
    // A blocking call comes after those that were started.
    std::int32_t one = 1;
    ASSERT_TRUE(communicator.all_reduce(&one, &one, 1, ElementType::int32, ReduceOperation::sum));
    EXPECT_EQ(one, 3);
    for (std::size_t i = 0; i < calls; ++i) {
      EXPECT_TRUE(handles[i].test());
      ASSERT_TRUE(handles[i].wait());
      ASSERT_TRUE(handles[i].wait());  // Again is fine.
      EXPECT_EQ(buffers[i][7], 3 * (static_cast<std::int32_t>(i) + 7));
    }
  });
}

TEST_P(Calls, ManyShapesComeAndGo) {
  // More shapes than a group keeps prepared, twice: those of the second round were forgotten in between.
  run(2, [](Communicator& communicator) {
    for (int round = 0; round < 2; ++round) {
      for (std::size_t count = 1; count <= 300; ++count) {
        std::vector<std::int32_t> values = numbers(count, round);
        ASSERT_TRUE(
            communicator.all_reduce(values.data(), values.data(), count, ElementType::int32, ReduceOperation::sum));
        ASSERT_EQ(values.back(), 2 * (round + static_cast<std::int32_t>(count) - 1));
      }
    }
  });
}

TEST_P(Calls, AHandleMayOutliveItsCommunicator) {
  for (int round = 0; round < 5; ++round) {
    std::mutex mutex;
    std::vector<CallHandle> kept;
    run(2, [&](Communicator& communicator) {
      std::int32_t one = 1;
      auto started =
          communicator.start({CollectiveKind::all_reduce, &one, &one, 1, ElementType::int32, ReduceOperation::sum, 0});
      ASSERT_TRUE(started);
      if (communicator.rank() == 1) {
        ASSERT_TRUE(started->wait());
        return;
      }
      ASSERT_TRUE(started->wait());
      const std::lock_guard lock(mutex);
      kept.push_back(std::move(*started));
    });
    for (CallHandle& handle : kept) EXPECT_TRUE(handle.wait());
  }
}

TEST_P(Calls, SendsAndReceives) {
  run(4, [](Communicator& communicator) {
    const std::uint32_t rank = communicator.rank();
    std::vector<std::int32_t> data = numbers(777, static_cast<std::int32_t>(rank) * 1000);
    if (rank == 1) {
      ASSERT_TRUE(communicator.send(data.data(), data.size(), ElementType::int32, 3));
      ASSERT_TRUE(communicator.send(data.data(), 1, ElementType::int32, 3));
      ASSERT_TRUE(communicator.receive(data.data(), 0, ElementType::int32, 3));
    } else if (rank == 3) {
      ASSERT_TRUE(communicator.receive(data.data(), data.size(), ElementType::int32, 1));
      EXPECT_EQ(data[776], 1776);
      ASSERT_TRUE(communicator.receive(data.data() + 5, 1, ElementType::int32, 1));
      EXPECT_EQ(data[5], 1000);
      ASSERT_TRUE(communicator.send(data.data(), 0, ElementType::int32, 1));
    }
    ASSERT_TRUE(communicator.barrier());
  });
}

TEST_P(Calls, ExchangesBothWaysAndAroundARing) {
  run(4, [](Communicator& communicator) {
    const std::uint32_t rank = communicator.rank();
    const std::uint32_t next = (rank + 1) % 4;
    const std::uint32_t previous = (rank + 3) % 4;
    for (std::int32_t round = 0; round < 5; ++round) {
      const std::vector<std::int32_t> sent = numbers(50'000, static_cast<std::int32_t>(rank) + round);
      std::vector<std::int32_t> from_previous(sent.size());
      std::vector<std::int32_t> from_next(sent.size());
      communicator.group_begin();
      if (rank % 2 == 0) {  // Ranks note them in different orders.
        ASSERT_TRUE(communicator.send(sent.data(), sent.size(), ElementType::int32, next));
        ASSERT_TRUE(communicator.receive(from_previous.data(), sent.size(), ElementType::int32, previous));
      } else {
        ASSERT_TRUE(communicator.receive(from_previous.data(), sent.size(), ElementType::int32, previous));
        ASSERT_TRUE(communicator.send(sent.data(), sent.size(), ElementType::int32, next));
      }
      ASSERT_TRUE(communicator.send(sent.data(), sent.size(), ElementType::int32, previous));
      ASSERT_TRUE(communicator.receive(from_next.data(), sent.size(), ElementType::int32, next));
      const auto done = communicator.group_end();
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(from_previous[3], static_cast<std::int32_t>(previous) + round + 3);
      EXPECT_EQ(from_next[49'999], static_cast<std::int32_t>(next) + round + 49'999);
    }
  });
}

TEST_P(Calls, LaunchesSeveralCommunicatorsTogether) {
  run(3, [this](Communicator& communicator) {
    const std::vector<std::uint32_t> all = {2, 0, 1};
    auto other = communicator.split(all, "turned", source_.source());
    ASSERT_TRUE(other) << other.error().message;
    EXPECT_EQ((*other)->rank(), (communicator.rank() + 1) % 3);
    EXPECT_EQ((*other)->name(), "world/turned");
    for (std::int32_t round = 0; round < 10; ++round) {
      std::int32_t sum = round;
      std::int32_t most = static_cast<std::int32_t>(communicator.rank());
      std::int32_t token = static_cast<std::int32_t>(communicator.rank()) + 100;
      communicator.group_begin();
      // Not even in the same order everywhere.
      Communicator& first = communicator.rank() == 1 ? **other : communicator;
      Communicator& second = communicator.rank() == 1 ? communicator : **other;
      std::int32_t& of_first = communicator.rank() == 1 ? most : sum;
      std::int32_t& of_second = communicator.rank() == 1 ? sum : most;
      const auto operation = [&](const Communicator& called) {
        return &called == &communicator ? ReduceOperation::sum : ReduceOperation::max;
      };
      ASSERT_TRUE(first.all_reduce(&of_first, &of_first, 1, ElementType::int32, operation(first)));
      ASSERT_TRUE(first.barrier());
      ASSERT_TRUE(second.all_reduce(&of_second, &of_second, 1, ElementType::int32, operation(second)));
      ASSERT_TRUE(second.barrier());
      // Sends of a communicator that did not begin the launch.
      if ((*other)->rank() == 0) {
        ASSERT_TRUE((*other)->send(&token, 1, ElementType::int32, 2));
      }
      if ((*other)->rank() == 2) {
        ASSERT_TRUE((*other)->receive(&token, 1, ElementType::int32, 0));
      }
      const auto done = communicator.group_end();
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(sum, 3 * round);
      EXPECT_EQ(most, 2);
      if ((*other)->rank() == 2) {
        EXPECT_EQ(token, 102);  // World rank 2 is rank 0 of the other.
      }
    }
  });
}

TEST_P(Calls, GroupsOverlapAndShareNames) {
  run(4, [this](Communicator& communicator) {
    const std::uint32_t rank = communicator.rank();
    PlannedSource rings("ring", Bytes{64});
    const std::vector<std::vector<std::uint32_t>> sets = {{0, 1}, {2, 3}, {1, 2, 3}, {3, 0}, {0, 1}, {2}};
    for (int round = 0; round < 2; ++round) {
      std::vector<std::unique_ptr<Communicator>> groups;
      for (const auto& members : sets) {
        if (std::ranges::find(members, rank) == members.end()) continue;
        auto group = communicator.split(members, "part", members.size() % 2 == 0 ? source_.source() : rings.source());
        ASSERT_TRUE(group) << group.error().message;
        groups.push_back(std::move(*group));
      }
      for (const auto& group : groups) {
        for (const std::size_t count : {1U, 1000U}) {
          run_case(
              *group,
              {CollectiveKind::all_reduce, ElementType::float32, ReduceOperation::sum, group->size(), 0, count, count},
              Memory::plain, false);
          run_case(
              *group,
              {CollectiveKind::all_gather, ElementType::float32, ReduceOperation::sum, group->size(), 0, count, count},
              Memory::registered, false);
        }
        ASSERT_TRUE(group->barrier());
      }
    }
    ASSERT_TRUE(communicator.barrier());
  });
}

TEST_P(Calls, GroupsThatCannotBeAreRefused) {
  run(2, [this](Communicator& communicator) {
    for (const std::vector<std::uint32_t>& members :
         {std::vector<std::uint32_t>{0, 2}, std::vector<std::uint32_t>{0, 1, 1}, std::vector<std::uint32_t>{},
          std::vector<std::uint32_t>{1 - communicator.rank()}}) {
      EXPECT_EQ(communicator.split(members, "wrong", source_.source()).error().code, ErrorCode::invalid_input);
    }
    std::int32_t one = 1;
    EXPECT_EQ(communicator.send(&one, 1, ElementType::int32, communicator.rank()).error().code,
              ErrorCode::invalid_input);
    EXPECT_EQ(communicator.send(&one, 1, ElementType::int32, 2).error().message,
              "rank " + std::to_string(communicator.rank()) + " cannot send to rank 2 of 2");
    EXPECT_EQ(communicator.allocate(SIZE_MAX).error().code, ErrorCode::too_large);
    communicator.free(nullptr);
    ASSERT_TRUE(communicator.barrier());  // None of that did harm.
  });
}

/// A rank leaves as soon as its own part is done, also of what others have not taken yet.
TEST_P(Calls, WhoLeavesEarlyTakesNothingAlong) {
  for (int round = 0; round < 20; ++round) {
    run(2, [](Communicator& communicator) {
      std::vector<std::int32_t> data = numbers(1000, 5);
      // Rank 0 is the one that may leave last only; its pairs are made while it is there.
      ASSERT_TRUE(communicator.rank() == 1 ? communicator.send(data.data(), 1, ElementType::int32, 0)
                                           : communicator.receive(data.data(), 1, ElementType::int32, 1));
      if (communicator.rank() == 1) {
        ASSERT_TRUE(communicator.send(data.data(), data.size(), ElementType::int32, 0));
        return;
      }
      data.assign(data.size(), 0);
      std::this_thread::sleep_for(milliseconds(2));
      const auto received = communicator.receive(data.data(), data.size(), ElementType::int32, 1);
      ASSERT_TRUE(received) << received.error().message;
      EXPECT_EQ(data[999], 1004);
    });
  }
}

TEST_P(Calls, WhoLeavesWhileOthersCallIsNamed) {
  run(3, [](Communicator& communicator) {
    ASSERT_TRUE(communicator.barrier());
    if (communicator.rank() == 1) return;
    const auto begun = steady_clock::now();
    const auto done = communicator.barrier();
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("rank 1"), std::string::npos) << done.error().message;
    EXPECT_LT(steady_clock::now() - begun, milliseconds(5000));
  });
}

TEST_P(Calls, AnAbortEndsACallThatWaits) {
  run(3, [](Communicator& communicator) {
    ASSERT_TRUE(communicator.barrier());
    std::thread aborter;
    const auto begun = steady_clock::now();
    if (communicator.rank() == 0) {
      aborter = std::thread([&] {
        std::this_thread::sleep_for(milliseconds(50));
        communicator.abort("enough of it");
        communicator.abort("enough of it");  // Twice is fine.
      });
    }
    if (communicator.rank() != 2) {  // Rank 2 never comes.
      const auto done = communicator.barrier();
      ASSERT_FALSE(done);
      EXPECT_NE(done.error().message.find("rank 0: enough of it"), std::string::npos) << done.error().message;
      EXPECT_NE(done.error().message.find("call 2: all_reduce of 1 uint8, max (group world, rank "), std::string::npos)
          << done.error().message;
      EXPECT_LT(steady_clock::now() - begun, milliseconds(5000));
      // The job stays failed, at once.
      EXPECT_FALSE(communicator.barrier());
    } else {
      while (!communicator.control().has_failed()) std::this_thread::sleep_for(milliseconds(1));
      EXPECT_FALSE(communicator.barrier());
    }
    if (aborter.joinable()) aborter.join();
  });
}

TEST_P(Calls, AHandleAborts) {
  run(2, [](Communicator& communicator) {
    std::int32_t one = 1;
    if (communicator.rank() == 0) {
      auto started =
          communicator.start({CollectiveKind::all_reduce, &one, &one, 1, ElementType::int32, ReduceOperation::sum, 0});
      ASSERT_TRUE(started);
      std::this_thread::sleep_for(milliseconds(20));
      EXPECT_FALSE(started->test());
      started->abort("changed my mind");
      EXPECT_FALSE(started->wait());
      EXPECT_TRUE(started->test());
    } else {
      while (!communicator.control().has_failed()) std::this_thread::sleep_for(milliseconds(1));
      EXPECT_NE(communicator.barrier().error().message.find("changed my mind"), std::string::npos);
    }
  });
}

TEST_P(Calls, BuffersThatCannotBeAreRefusedOnAllRanks) {
  const std::vector<std::pair<CallArguments, std::string>> wrong = [] {
    static std::vector<float> data(64);
    float* base = data.data();
    const auto call = [&](CollectiveKind kind, float* send, float* receive) {
      return CallArguments{kind, send, receive, 8, ElementType::float32, ReduceOperation::sum, 0};
    };
    return std::vector<std::pair<CallArguments, std::string>>{
        {call(CollectiveKind::all_reduce, nullptr, base), "has no send buffer"},
        {call(CollectiveKind::all_reduce, base, nullptr), "has no receive buffer"},
        {call(CollectiveKind::all_reduce, base, base + 1), "overlap"},
        {call(CollectiveKind::all_gather, base + 7, base), "overlap"},
        {call(CollectiveKind::all_to_all, base, base), "cannot work in place"}};
  }();
  for (const auto& [arguments, why] : wrong) {
    SCOPED_TRACE(why);
    run(2, [&arguments = arguments, &why = why](Communicator& communicator) {
      const auto done = communicator.run(arguments);
      ASSERT_FALSE(done);
      EXPECT_NE(done.error().message.find(why), std::string::npos) << done.error().message;
      EXPECT_NE(done.error().message.find("call 1: "), std::string::npos) << done.error().message;
    });
  }
}

TEST_P(Calls, ADisagreementIsFoundAtTheFirstCallAndPrintsBothCalls) {
  const CallArguments usual{CollectiveKind::all_reduce, nullptr, nullptr, 100, ElementType::float32,
                            ReduceOperation::sum,       1};
  struct Wrong {
    const char* what;
    CallArguments first;
    CallArguments second;
    const char* printed;
  };
  std::vector<Wrong> cases;
  const auto add = [&](const char* what, auto change, const char* printed, CollectiveKind kind) {
    CallArguments first = usual;
    first.kind = kind;
    CallArguments second = first;
    change(second);
    cases.push_back({what, first, second, printed});
  };
  add(
      "the count", [](auto& call) { call.count = 150; }, "all_reduce of 150 float, sum", CollectiveKind::all_reduce);
  add(
      "the type", [](auto& call) { call.type = ElementType::int32; }, "all_reduce of 100 int32, sum",
      CollectiveKind::all_reduce);
  add(
      "the operation", [](auto& call) { call.operation = ReduceOperation::max; }, "all_reduce of 100 float, max",
      CollectiveKind::all_reduce);
  add(
      "the root", [](auto& call) { call.root = 0; }, "broadcast of 100 float, root 0", CollectiveKind::broadcast);
  add(
      "the collective", [](auto& call) { call.kind = CollectiveKind::reduce; }, "reduce of 100 float, sum, root 1",
      CollectiveKind::broadcast);
  static constexpr std::array<std::int64_t, 3> shares = {3, 0, 2};
  add(
      "the shares", [](auto& call) { call.shares = shares; }, "all_gather of 100 float, shares ",
      CollectiveKind::all_gather);
  for (const Wrong& wrong : cases) {
    SCOPED_TRACE(wrong.what);
    run(3, [&wrong](Communicator& communicator) {
      std::vector<float> send(200);
      std::vector<float> receive(200);
      CallArguments arguments = communicator.rank() == 2 ? wrong.second : wrong.first;
      arguments.send = send.data();
      arguments.receive = receive.data();
      const auto begun = steady_clock::now();
      auto done = communicator.run(arguments);
      if (done) done = communicator.barrier();  // Who met only ranks that agree is told a moment later.
      ASSERT_FALSE(done);
      EXPECT_LT(steady_clock::now() - begun, milliseconds(5000));
      EXPECT_NE(done.error().message.find(std::string("ranks disagree on ") + wrong.what), std::string::npos)
          << done.error().message;
      EXPECT_NE(done.error().message.find(wrong.printed), std::string::npos) << done.error().message;
      EXPECT_NE(done.error().message.find("call 1: "), std::string::npos) << done.error().message;
    });
  }
}

TEST_P(Calls, SharesThatCannotBeAreRefused) {
  run(2, [](Communicator& communicator) {
    std::vector<float> data(100);
    const std::array<std::int64_t, 3> shares = {3, 0, 2};
    const auto done = communicator.run(
        {CollectiveKind::all_gather, data.data(), data.data(), 100, ElementType::float32, {}, 0, shares});
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("there are 3 shares for 2 ranks"), std::string::npos) << done.error().message;
  });
}

TEST_P(Calls, BuffersAreRegisteredWhereTheyLie) {
  run(1, [](Communicator& communicator) {
    const test::Pages pages(3 * test::Pages::size - 1);
    auto* bytes = static_cast<std::byte*>(pages.data);
    std::memset(bytes, 7, pages.bytes);
    const auto message_of = [](const Result<void>& result) { return result ? "" : result.error().message; };
    EXPECT_NE(message_of(communicator.register_buffer(bytes + 8, pages.bytes)).find("not whole pages"),
              std::string::npos);
    EXPECT_NE(message_of(communicator.register_buffer(bytes, 100)).find("not whole pages"), std::string::npos);
    EXPECT_NE(message_of(communicator.deregister_buffer(bytes)).find("no registered buffer"), std::string::npos);
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(communicator.register_buffer(bytes, pages.bytes));
      EXPECT_NE(message_of(communicator.register_buffer(bytes + 4096, 4096)).find("overlaps"), std::string::npos);
      EXPECT_NE(message_of(communicator.deregister_buffer(bytes + 4096)).find("no registered"), std::string::npos);
      bytes[5000] = std::byte{9};
      ASSERT_TRUE(communicator.deregister_buffer(bytes));
      for (std::size_t i = 0; i < pages.bytes; ++i) ASSERT_EQ(bytes[i], std::byte(i == 5000 ? 9 : 7)) << i;
    }
  });
}

/// The second call of each shape, where nobody asks any more.
TEST_P(Calls, ALaterDisagreementIsFoundToo) {
  run(2, [](Communicator& communicator) {
    std::vector<float> data(100);
    for (const std::size_t count : {100U, 50U, 100U, 50U}) {
      ASSERT_TRUE(communicator.all_reduce(data.data(), data.data(), count, ElementType::float32, ReduceOperation::sum));
    }
    const auto done = communicator.all_reduce(data.data(), data.data(), communicator.rank() == 0 ? 100 : 50,
                                              ElementType::float32, ReduceOperation::sum);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("ranks disagree on the count"), std::string::npos) << done.error().message;
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, Calls, ::testing::Values(TransportChoice::shm, TransportChoice::tcp),
                         [](const auto& transport) { return std::string(to_string(transport.param)); });

}  // namespace
}  // namespace espalier::engine
