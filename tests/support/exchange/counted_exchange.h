#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/support/device_case.h"
#include "tests/support/engine_cases.h"

namespace espalier::test {

/// An all_to_all with counts per peer, of bytes that say where they come from and where they go: the same on all ranks.
struct CountedExchange {
  std::uint32_t ranks = 0;
  std::vector<std::int64_t> counts;  ///< In elements: row i has what rank i sends to each.
  ElementType type = ElementType::uint8;
  std::uint64_t seed = 0;
  bool is_scattered = false;  ///< Blocks lie in an order of their own on each rank, with room between them.

  /// Many blocks are empty, few are large: up to `most` elements.
  static CountedExchange random(std::uint32_t ranks, std::int64_t most, std::uint64_t seed) {
    CountedExchange exchange{ranks, {}, {}, seed, seed % 2 == 1};
    Random random(seed);
    exchange.type = all_element_types[random.below(all_element_types.size())];
    for (std::uint32_t i = 0; i < ranks * ranks; ++i) {
      const std::array<std::int64_t, 4> limits = {0, 3, most / 20, most};
      exchange.counts.push_back(random.between(0, limits[random.below(limits.size())]));
    }
    return exchange;
  }

  [[nodiscard]] std::int64_t count(std::uint32_t from, std::uint32_t to) const { return counts[from * ranks + to]; }
  [[nodiscard]] std::vector<std::int64_t> sent_by(std::uint32_t rank) const {
    return {counts.begin() + rank * ranks, counts.begin() + (rank + 1) * ranks};
  }
  [[nodiscard]] std::vector<std::int64_t> received_by(std::uint32_t rank) const {
    std::vector<std::int64_t> received;
    for (std::uint32_t from = 0; from < ranks; ++from) received.push_back(count(from, rank));
    return received;
  }
  [[nodiscard]] std::byte value(std::uint32_t from, std::uint32_t to, std::int64_t index) const {
    return static_cast<std::byte>(seed * 31 + from * 57 + to * 101 + static_cast<std::uint64_t>(index) * 7 + 3);
  }
};

/// A rank's side of one: where its blocks lie.
struct CountedBuffer {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> displacements;
  std::int64_t bytes = 0;

  CountedBuffer(std::vector<std::int64_t> given, const CountedExchange& exchange, std::uint64_t seed)
      : counts(std::move(given)), displacements(counts.size()) {
    std::vector<std::size_t> order(counts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random random(seed);
    std::int64_t end = 0;
    if (exchange.is_scattered) {
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    }
    for (const std::size_t peer : order) {
      if (exchange.is_scattered) end += random.between(0, 5);
      displacements[peer] = end;
      end += counts[peer];
    }
    bytes = end * size_of(exchange.type);
  }
  [[nodiscard]] BlockCounts blocks(bool are_packed) const {
    return are_packed ? BlockCounts{counts, {}} : BlockCounts{counts, displacements};
  }
};

/// One rank's data of an exchange, filled in and checked.
class CountedSide {
 public:
  CountedSide(const CountedExchange& exchange, std::uint32_t rank)
      : exchange_(exchange),
        rank_(rank),
        sent_(exchange.sent_by(rank), exchange, exchange.seed * 1000 + rank),
        received_(exchange.received_by(rank), exchange, exchange.seed * 2000 + rank) {}

  [[nodiscard]] std::size_t send_bytes() const { return static_cast<std::size_t>(sent_.bytes); }
  [[nodiscard]] std::size_t receive_bytes() const { return static_cast<std::size_t>(received_.bytes); }
  [[nodiscard]] BlockCounts sent() const { return sent_.blocks(!exchange_.is_scattered); }
  [[nodiscard]] BlockCounts received() const { return received_.blocks(!exchange_.is_scattered); }

  void fill(std::byte* send) const {
    std::fill_n(send, send_bytes(), std::byte{0xEE});
    for (std::uint32_t to = 0; to < exchange_.ranks; ++to) {
      visit(sent_, to, [&](std::int64_t at, std::int64_t i) { send[at] = exchange_.value(rank_, to, i); });
    }
  }
  void check(const std::byte* receive) const {
    for (std::uint32_t from = 0; from < exchange_.ranks; ++from) {
      std::int64_t wrong = 0;
      visit(received_, from,
            [&](std::int64_t at, std::int64_t i) { wrong += receive[at] != exchange_.value(from, rank_, i) ? 1 : 0; });
      EXPECT_EQ(wrong, 0) << "bytes from rank " << from << " to " << rank_ << ", seed " << exchange_.seed;
    }
  }
  /// What lies between the blocks is as it was.
  void check_gaps(std::byte* receive, std::byte before) const {
    for (std::uint32_t from = 0; from < exchange_.ranks; ++from) {
      visit(received_, from, [&](std::int64_t at, std::int64_t) { receive[at] = before; });
    }
    EXPECT_TRUE(std::all_of(receive, receive + receive_bytes(), [&](std::byte one) { return one == before; }));
  }

 private:
  template <class Visit>
  void visit(const CountedBuffer& buffer, std::uint32_t peer, Visit visit) const {
    const std::int64_t element = size_of(exchange_.type);
    for (std::int64_t i = 0; i < buffer.counts[peer] * element; ++i) visit(buffer.displacements[peer] * element + i, i);
  }

  const CountedExchange& exchange_;
  std::uint32_t rank_;
  CountedBuffer sent_;
  CountedBuffer received_;
};

/// Runs one and checks what comes. `in_place`: what is received overlaps what is sent.
inline void run_exchange(Communicator& communicator, const CountedExchange& exchange, Memory memory, bool in_place) {
  const CountedSide side(exchange, communicator.rank());
  const Pages pages(side.send_bytes() + side.receive_bytes());
  void* registered = nullptr;
  auto* base = static_cast<std::byte*>(pages.data);
  if (memory == Memory::registered) {
    auto allocated = communicator.allocate(pages.bytes);
    ASSERT_TRUE(allocated) << allocated.error().message;
    registered = *allocated;
    base = static_cast<std::byte*>(registered);
  }
  constexpr std::byte before{0x5A};
  std::byte* receive = base;
  std::byte* send = in_place ? base : base + side.receive_bytes();
  std::fill_n(receive, side.receive_bytes(), before);
  side.fill(send);
  if (memory == Memory::adopted) {
    ASSERT_TRUE(communicator.register_buffer(pages.data, pages.bytes));
  }
  const auto done = communicator.all_to_all(send, side.sent(), receive, side.received(), exchange.type);
  ASSERT_TRUE(done) << done.error().message;
  if (memory == Memory::adopted) {
    ASSERT_TRUE(communicator.deregister_buffer(pages.data));
  }
  side.check(receive);
  if (!in_place) {
    side.check_gaps(receive, before);
    std::vector<std::byte> untouched(side.send_bytes());
    side.fill(untouched.data());
    EXPECT_TRUE(untouched.empty() || std::memcmp(untouched.data(), send, untouched.size()) == 0);
  }
  communicator.free(registered);
}

/// The same on memory of the rank's device, which a queue of the caller's fills just before and empties just after.
inline void run_exchange_on_device(Communicator& communicator, const CountedExchange& exchange, bool in_place) {
  const CountedSide side(exchange, communicator.rank());
  std::vector<std::byte> sent(side.send_bytes());
  std::vector<std::byte> received(side.receive_bytes());
  side.fill(sent.data());
  auto queue = communicator.make_queue();
  ASSERT_TRUE(queue) << queue.error().message;
  const DeviceMemory one(communicator, std::max(sent.size(), received.size()));
  const DeviceMemory other(communicator, received.size());
  std::byte* const receive = in_place ? one.data() : other.data();
  (*queue)->copy(one.data(), sent.data(), sent.size());
  CallArguments arguments{CollectiveKind::all_to_all, one.data(), receive, 0, exchange.type};
  arguments.send_blocks = side.sent();
  arguments.receive_blocks = side.received();
  arguments.queue = queue->get();
  const auto done = communicator.run(arguments);
  ASSERT_TRUE(done) << done.error().message;
  (*queue)->copy(received.data(), receive, received.size());
  await_all(**queue);
  side.check(received.data());
}

}  // namespace espalier::test
