#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "engine/check/data_case.h"
#include "engine/cuda/device_program.h"
#include "engine/cuda/run_on_threads.h"
#include "engine/cuda/verify_program.h"

namespace espalier::test {

/// The buffers of one rank of a device program, each of just the bytes that it has to have.
struct DeviceRank {
  DeviceRank(const engine::cuda::MemorySizes& sizes, const engine::DataCase& data, std::uint32_t rank, bool in_place)
      : is_in_place(in_place && sizes.in_place_shift.has_value()), scratch(bytes(sizes.scratch)) {
    const std::int64_t shift = is_in_place ? *sizes.in_place_shift : sizes.receive;
    const std::int64_t receive_at = shift < 0 ? -shift : 0;
    caller.resize(bytes(std::max(receive_at + sizes.receive, receive_at + shift + sizes.send)));
    receive = caller.data() + receive_at;
    send = receive + shift;
    engine::fill_send_buffer(data, rank, send);
    sent.assign(send, send + sizes.send);
  }
  static std::size_t bytes(std::int64_t count) { return static_cast<std::size_t>(count); }

  bool is_in_place;
  std::vector<std::byte> caller;
  std::vector<std::byte> scratch;
  std::vector<std::byte> sent;
  std::byte* receive = nullptr;
  std::byte* send = nullptr;
};

/// The buffers of all ranks.
struct DeviceRanks {
  DeviceRanks(const engine::cuda::DeviceProgram& program, const engine::DataCase& data, bool in_place) {
    for (std::uint32_t rank = 0; rank < data.ranks; ++rank) {
      ranks.emplace_back(program.memories[rank], data, rank, in_place);
      buffers.push_back({ranks[rank].send, ranks[rank].receive, ranks[rank].scratch.data()});
    }
  }

  std::vector<DeviceRank> ranks;
  std::vector<engine::cuda::RankBuffers> buffers;
};

/// Compiles, verifies and runs a schedule on known data, and checks every element of every rank.
inline void run_device_case(const Schedule& schedule, const engine::DataCase& data, Bytes chunk,
                            const engine::cuda::BlockOptions& options, bool in_place) {
  const std::int64_t element = size_of(data.type);
  const auto layout = Layout::make(schedule, Bytes{static_cast<std::int64_t>(data.count) * element}, element);
  ASSERT_TRUE(layout) << layout.error().message;
  const auto program = engine::cuda::compile_for_device(schedule, *layout, {chunk}, options);
  ASSERT_TRUE(program) << program.error().message;
  const auto verified = engine::cuda::verify(*program, in_place);
  ASSERT_TRUE(verified) << schedule.algorithm << ": " << verified.error().message;
  const DeviceRanks made(*program, data, in_place);
  const std::vector<DeviceRank>& ranks = made.ranks;
  // Two calls, of which ranks may be in different ones, unless the first changes what the second sends.
  const std::uint32_t runs = in_place ? 1 : 2;
  const auto done = engine::cuda::run_on_threads(*program, made.buffers, {data.type, data.operation}, runs);
  ASSERT_TRUE(done) << done.error().message;
  for (std::uint32_t rank = 0; rank < data.ranks; ++rank) {
    const auto checked = engine::check_receive_buffer(data, rank, ranks[rank].receive);
    EXPECT_EQ(checked.wrong, 0U) << schedule.algorithm << " " << to_string(data.kind) << " " << to_string(data.type)
                                 << " " << to_string(data.operation) << " count " << data.count << " rank " << rank
                                 << " in place " << in_place << ": element " << checked.first.index << " is "
                                 << checked.first.actual << ", not " << checked.first.expected;
    if (ranks[rank].is_in_place || ranks[rank].sent.empty()) continue;
    EXPECT_EQ(std::memcmp(ranks[rank].send, ranks[rank].sent.data(), ranks[rank].sent.size()), 0)
        << "a send buffer changed";
  }
}

}  // namespace espalier::test
