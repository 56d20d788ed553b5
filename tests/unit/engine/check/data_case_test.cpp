// Known data of collectives: what ranks have to receive follows from what they send, and a check notices whatever is
// not so, also whole blocks in each other's places.
#include "engine/check/data_case.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "engine/check/element_codec.h"
#include "schedule/collective.h"

namespace espalier::engine {
namespace {

constexpr std::size_t count = 5000;

std::vector<std::int32_t> sent_by(const DataCase& data, std::uint32_t rank) {
  std::vector<std::int32_t> sent(data.send_count(rank));
  fill_send_buffer(data, rank, sent.data());
  return sent;
}

/// The begin of a rank's shard; the first ones have one element more.
std::size_t shard_begin(const DataCase& data, std::uint32_t rank) {
  return rank * (data.count / data.ranks) + std::min<std::size_t>(rank, data.count % data.ranks);
}

/// All contributions to an element of the message.
std::int32_t combined(const DataCase& data, const std::vector<std::vector<std::int32_t>>& sent, std::size_t at) {
  std::int32_t result = sent[0][at];
  for (std::uint32_t rank = 1; rank < data.ranks; ++rank) {
    const std::int32_t value = sent[rank][at];
    switch (data.operation) {
      case ReduceOperation::prod: result *= value; break;
      case ReduceOperation::min: result = std::min(result, value); break;
      case ReduceOperation::max: result = std::max(result, value); break;
      default: result += value;
    }
  }
  const auto ranks = static_cast<std::int32_t>(data.ranks);
  return data.operation == ReduceOperation::avg ? result / ranks : result;
}

/// What a rank has to receive, from what all send and the definition of each collective.
std::vector<std::int32_t> received_by(const DataCase& data, std::uint32_t rank) {
  std::vector<std::vector<std::int32_t>> sent;
  for (std::uint32_t from = 0; from < data.ranks; ++from) sent.push_back(sent_by(data, from));
  std::vector<std::int32_t> received;
  const std::size_t begin = shard_begin(data, rank);
  const std::size_t end = shard_begin(data, rank + 1);
  const auto append = [&](const std::vector<std::int32_t>& from, std::size_t first, std::size_t last) {
    received.insert(received.end(), from.begin() + static_cast<std::ptrdiff_t>(first),
                    from.begin() + static_cast<std::ptrdiff_t>(last));
  };
  switch (data.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce:
      for (std::size_t at = 0; at < data.receive_count(rank); ++at) received.push_back(combined(data, sent, at));
      break;
    case CollectiveKind::reduce_scatter:
      for (std::size_t at = begin; at < end; ++at) received.push_back(combined(data, sent, at));
      break;
    case CollectiveKind::broadcast: append(sent[data.root], 0, data.count); break;
    case CollectiveKind::scatter: append(sent[data.root], begin, end); break;
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      for (std::uint32_t from = 0; data.receive_count(rank) > 0 && from < data.ranks; ++from) {
        append(sent[from], 0, sent[from].size());
      }
      break;
    case CollectiveKind::all_to_all:
      for (std::uint32_t from = 0; from < data.ranks; ++from) append(sent[from], begin, end);
      break;
    case CollectiveKind::send_recv: append(sent[(rank + data.ranks - 1) % data.ranks], 0, data.count); break;
  }
  return received;
}

std::vector<DataCase> all_cases() {
  std::vector<DataCase> cases;
  for (const CollectiveKind kind : all_collective_kinds) {
    for (const ReduceOperation operation : all_reduce_operations) {
      if (!reduces(kind) && operation != ReduceOperation::sum) continue;
      for (const std::uint32_t ranks : {1U, 2U, 5U}) {
        const std::size_t whole = kind == CollectiveKind::all_to_all ? count / ranks * ranks : count;
        cases.push_back({kind, ElementType::int32, operation, ranks, has_root(kind) ? ranks - 1 : 0, whole, 7});
      }
    }
  }
  return cases;
}

TEST(DataCase, WhatRanksReceiveFollowsFromWhatTheySend) {
  for (const DataCase& data : all_cases()) {
    for (std::uint32_t rank = 0; rank < data.ranks; ++rank) {
      const auto right = received_by(data, rank);
      ASSERT_EQ(right.size(), data.receive_count(rank));
      EXPECT_EQ(check_receive_buffer(data, rank, right.data()).wrong, 0U)
          << to_string(data.kind) << " " << to_string(data.operation) << " rank " << rank << " of " << data.ranks;
    }
  }
}

TEST(DataCase, OneWrongElementIsCountedAndNamed) {
  Random random(1);
  for (const DataCase& data : all_cases()) {
    for (std::uint32_t rank = 0; rank < data.ranks; ++rank) {
      auto received = received_by(data, rank);
      if (received.empty()) continue;
      const std::size_t at = random.below(received.size());
      received[at] ^= 0x40;
      const CheckResult checked = check_receive_buffer(data, rank, received.data());
      EXPECT_EQ(checked.wrong, 1U);
      EXPECT_EQ(checked.first.index, at);
      EXPECT_EQ(static_cast<std::int32_t>(checked.first.expected) ^ 0x40, static_cast<int>(checked.first.actual));
    }
  }
}

/// Chunks are powers of two, as a rule, and go astray as wholes.
TEST(DataCase, ChunksInEachOthersPlacesAreNoticedAtEveryDistance) {
  constexpr std::size_t large = std::size_t{1} << 17;
  const DataCase data{CollectiveKind::all_reduce, ElementType::int32, ReduceOperation::sum, 3, 0, large};
  const auto right = received_by(data, 0);
  for (std::size_t chunk = 64; chunk <= large / 2; chunk *= 2) {
    for (std::size_t first = 0; first + 2 * chunk <= std::min(large, 16 * chunk); first += chunk) {
      auto received = right;
      std::swap_ranges(received.begin() + static_cast<std::ptrdiff_t>(first),
                       received.begin() + static_cast<std::ptrdiff_t>(first + chunk),
                       received.end() - static_cast<std::ptrdiff_t>(chunk));
      EXPECT_GT(check_receive_buffer(data, 0, received.data()).wrong, chunk / 4)
          << "chunks of " << chunk << " from " << first;
    }
  }
}

/// A contribution that is left out, or added twice in the place of another.
TEST(DataCase, EveryContributionCounts) {
  const DataCase data{CollectiveKind::all_reduce, ElementType::int32, ReduceOperation::sum, 40, 0, 1000};
  const auto right = received_by(data, 0);
  for (std::uint32_t left_out = 0; left_out < data.ranks; ++left_out) {
    auto received = right;
    const auto missing = sent_by(data, left_out);
    const auto doubled = sent_by(data, (left_out + 4) % data.ranks);
    for (std::size_t at = 0; at < received.size(); ++at) received[at] += doubled[at] - missing[at];
    EXPECT_GT(check_receive_buffer(data, 0, received.data()).wrong, received.size() / 4) << left_out;
  }
}

/// 16-bit floats that are written are the nearest ones: halves of the last place go to the even one.
TEST(ElementCodec, RoundsToTheNearest) {
  EXPECT_EQ(HalfCodec::decode(HalfCodec::encode(2.0 / 3)), 0x555 * 0x1p-11);    // 0.666..: 1365.33 of 2^-11.
  EXPECT_EQ(HalfCodec::decode(HalfCodec::encode(2047.5)), 2048);                // 2047 and 2048: the even one.
  EXPECT_EQ(HalfCodec::decode(HalfCodec::encode(0.1)), 0x666 * 0x1p-14);        // 1638.4 of 2^-14.
  EXPECT_EQ(BfloatCodec::decode(BfloatCodec::encode(2.0 / 3)), 0xAB * 0x1p-8);  // 170.67 of 2^-8.
  for (std::uint16_t bits = 0x0400; bits < 0x7C00; ++bits) ASSERT_EQ(HalfCodec::encode(HalfCodec::decode(bits)), bits);
}

}  // namespace
}  // namespace espalier::engine
