#pragma once

// Tested by: tests/unit/engine/cuda/kernels/bulk_copy_test.cpp

#include <cstdint>

#include "engine/cuda/kernels/kernel_call.h"
#include "engine/cuda/kernels/vectors.h"

/// Copies of large ranges in tiles, by bulk copies through a block's shared memory (TMA, sm_90 and later): one thread
/// gives them, and while a tile is written the next ones are read. Which tile is where when, and which phase its
/// barrier has, is here, for hosts as well; the instructions are a mover's.
namespace espalier::engine::cuda {

/// Smaller ranges go by vectors, which need no first tile to come.
inline constexpr std::uint64_t min_bulk_bytes = std::uint64_t{bulk_stages} * bulk_tile_bytes;

/// A tile: where its stage is, and for which phase of the stage's barrier one waits. `number` counts the tiles of a
/// block from the start of its kernel, so that a barrier's phase goes on from one range to the next.
struct BulkTile {
  std::uint32_t stage = 0;
  std::uint32_t phase = 0;
};
ESPALIER_KERNEL_CODE BulkTile bulk_tile(std::uint32_t number) {
  return {number % bulk_stages, number / bulk_stages % 2};
}

/// Where 16-byte multiples of all addresses lie alike; else a range goes by vectors.
ESPALIER_KERNEL_CODE bool takes_bulk(std::uint64_t misalignment, std::uint64_t bytes) {
  return misalignment % 16 == 0 && bytes >= min_bulk_bytes;
}

/// target = source and all others, of whole 16 bytes from addresses that are multiples of 16. One thread's. A mover has
/// `load(stage, from, bytes)`, `await_load(stage, phase)`, `store(stage, to, bytes)`, `commit()`, which makes a group
/// of the stores since the last, `await_reads()` until at most one group still reads its stage, `await_stores()` until
/// all bytes are where they go; and `tiles()`, a count of the tiles so far that `set_tiles` sets, modulo 2^32.
template <class Mover, class Others>
ESPALIER_KERNEL_CODE void copy_tiles(Mover& mover, unsigned char* target, const unsigned char* source,
                                     std::uint64_t bytes, const Others& others, std::uint64_t skip) {
  const std::uint32_t first = mover.tiles();
  const std::uint32_t count = static_cast<std::uint32_t>((bytes + bulk_tile_bytes - 1) / bulk_tile_bytes);
  const auto offset = [](std::uint32_t tile) { return std::uint64_t{tile} * bulk_tile_bytes; };
  const auto length = [&](std::uint32_t tile) {
    const std::uint64_t left = bytes - offset(tile);
    return static_cast<std::uint32_t>(left < bulk_tile_bytes ? left : bulk_tile_bytes);
  };
  const auto load = [&](std::uint32_t tile) {
    mover.load(bulk_tile(first + tile).stage, source + offset(tile), length(tile));
  };
  ESPALIER_ROLLED
  for (std::uint32_t tile = 0; tile < count && tile < bulk_stages; ++tile) load(tile);
  ESPALIER_ROLLED
  for (std::uint32_t tile = 0; tile < count; ++tile) {
    const BulkTile at = bulk_tile(first + tile);
    mover.await_load(at.stage, at.phase);
    mover.store(at.stage, target + offset(tile), length(tile));
    ESPALIER_ROLLED
    for (std::uint32_t d = 0; d < others.count(); ++d) {
      mover.store(at.stage, others.at(d) + skip + offset(tile), length(tile));
    }
    mover.commit();
    if (tile == 0 || tile - 1 + bulk_stages >= count) continue;
    mover.await_reads();  // The tile before has left its stage; this one may be on its way.
    load(tile - 1 + bulk_stages);
  }
  mover.await_stores();
  mover.set_tiles(first + count);
}

/// As `copy_range`, the part that 16-byte accesses reach by bulk copies. Requires: takes_bulk.
template <class T, class Team, class Others>
ESPALIER_KERNEL_CODE void copy_in_bulk(Team& team, unsigned char* target, const unsigned char* source,
                                       std::uint64_t elements, const Others& others) {
  const VectorRange range = vectors_of<T>(target, 0, elements);
  each_loose<T>(team, range, elements, [&](std::uint64_t i) {
    const T value[1] = {load<T>(source, i)};
    store_all(target, others, 0, i, 0, value);
  });
  if (team.index() != 0) return;
  const std::uint64_t head = range.head * sizeof(T);
  copy_tiles(team.mover(), target + head, source + head, range.vectors * 16, others, head);
}

}  // namespace espalier::engine::cuda
