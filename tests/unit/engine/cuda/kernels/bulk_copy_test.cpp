// Bulk copies on the host: which tile is in which stage when, and which phase of its barrier is awaited.
#include "engine/cuda/kernels/bulk_copy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <numeric>
#include <vector>

namespace espalier::engine::cuda {
namespace {

/// Does each copy as late as the rules of bulk copies allow, and notes what breaks them.
struct LateMover {
  struct Store {
    std::uint32_t stage = 0;
    unsigned char* to = nullptr;
    std::uint32_t bytes = 0;
    std::uint32_t group = 0;
  };

  void load(std::uint32_t stage, const unsigned char* from, std::uint32_t bytes) {
    EXPECT_EQ(pending[stage].second, 0U) << "a load before the one before was awaited";
    for (const Store& store : stores) EXPECT_NE(store.stage, stage) << "a load into a stage that is still read";
    EXPECT_EQ(bytes % 16, 0U);
    pending[stage] = {from, bytes};
  }
  void await_load(std::uint32_t stage, std::uint32_t phase) {
    EXPECT_EQ(phase, completed[stage] % 2) << "a phase that another load completes";
    ASSERT_GT(pending[stage].second, 0U) << "nothing was given";
    std::memcpy(stages[stage].data(), pending[stage].first, pending[stage].second);
    pending[stage].second = 0;
    ++completed[stage];
  }
  void store(std::uint32_t stage, unsigned char* to, std::uint32_t bytes) {
    EXPECT_EQ(pending[stage].second, 0U) << "a store of bytes that have not come";
    stores.push_back({stage, to, bytes, groups});
  }
  void commit() { ++groups; }
  void await_reads() { finish(groups - 1); }
  void await_stores() { finish(groups); }
  void finish(std::uint32_t before) {
    while (!stores.empty() && stores.front().group < before) {
      const Store& store = stores.front();
      std::memcpy(store.to, stages[store.stage].data(), store.bytes);
      stores.pop_front();
    }
    max_under_way = std::max(max_under_way, stores.size());
  }

  [[nodiscard]] std::uint32_t tiles() const { return tile_count; }
  void set_tiles(std::uint32_t count) { tile_count = count; }

  std::uint32_t tile_count = 0;
  std::array<std::array<unsigned char, bulk_tile_bytes>, bulk_stages> stages{};
  std::array<std::pair<const unsigned char*, std::uint32_t>, bulk_stages> pending{};
  std::array<std::uint32_t, bulk_stages> completed{};
  std::deque<Store> stores;
  std::uint32_t groups = 0;
  std::size_t max_under_way = 0;
};

/// Other destinations of a copy.
struct OtherPlaces {
  std::vector<unsigned char*> places;
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(places.size()); }
  [[nodiscard]] unsigned char* at(std::uint32_t index) const { return places[index]; }
};

std::vector<unsigned char> counted_bytes(std::size_t bytes) {
  std::vector<unsigned char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 7 + i / 251);
  return data;
}

TEST(BulkCopy, NumbersTilesOverAllRangesOfABlock) {
  // Four stages: tile 5 is the second in stage 1, whose barrier is then in its second phase.
  EXPECT_EQ(bulk_tile(0).stage, 0U);
  EXPECT_EQ(bulk_tile(0).phase, 0U);
  EXPECT_EQ(bulk_tile(5).stage, 1U);
  EXPECT_EQ(bulk_tile(5).phase, 1U);
  EXPECT_EQ(bulk_tile(8).stage, 0U);
  EXPECT_EQ(bulk_tile(8).phase, 0U);
}

/// One range after another, of all numbers of tiles about the number of stages, the last tile short or whole.
TEST(BulkCopy, BringsEveryByteToAllDestinations) {
  LateMover mover;
  std::uint64_t tiles = 0;
  for (std::uint64_t whole = 0; whole <= 3 * bulk_stages; ++whole) {
    for (const std::uint64_t rest : {std::uint64_t{0}, std::uint64_t{16}, std::uint64_t{bulk_tile_bytes - 16}}) {
      const std::uint64_t bytes = whole * bulk_tile_bytes + rest;
      if (bytes == 0) continue;
      const auto source = counted_bytes(bytes);
      std::vector<unsigned char> target(bytes);
      std::vector<unsigned char> other(bytes + 32);
      copy_tiles(mover, target.data(), source.data(), bytes, OtherPlaces{{other.data()}}, 32);
      EXPECT_EQ(target, source);
      EXPECT_EQ(std::memcmp(other.data() + 32, source.data(), bytes), 0);
      EXPECT_TRUE(mover.stores.empty());
      tiles += whole + (rest > 0 ? 1 : 0);
      EXPECT_EQ(mover.tiles(), tiles);
    }
  }
  EXPECT_EQ(std::accumulate(mover.completed.begin(), mover.completed.end(), std::uint64_t{0}), tiles);
  EXPECT_EQ(mover.max_under_way, 2U);  // A tile to two places goes on while the next one is asked for.
}

TEST(BulkCopy, TakesLargeRangesThatLieAlike) {
  EXPECT_TRUE(takes_bulk(0, min_bulk_bytes));
  EXPECT_TRUE(takes_bulk(32, min_bulk_bytes));
  EXPECT_FALSE(takes_bulk(8, min_bulk_bytes));
  EXPECT_FALSE(takes_bulk(0, min_bulk_bytes - 1));
  EXPECT_LE(bulk_shared_bytes, 48U << 10U);  // What a launch has without asking for more.
}

}  // namespace
}  // namespace espalier::engine::cuda
