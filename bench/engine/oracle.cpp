// The least that an engine in shared memory can do on two cores: two pinned threads with every rank's buffer in reach
// make one pass in blocks that stay in the first cache, reading each input once and writing each output once. No rank
// waits for another, nothing is staged. Variant `blocked` writes the other targets by copies of 4 KiB
// blocks, as an engine must that combines and distributes in two steps.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "bench/engine/harness.h"
#include "engine/reduction/reduce.h"

namespace espalier::bench {
namespace {

constexpr std::size_t threads = 2;

using Pointers = std::vector<float*>;

/// The sum of the sources, or a copy of the one, to all targets.
void combine(const Pointers& targets, const Pointers& sources, std::size_t begin, std::size_t count) {
  static const engine::reduction::ReduceToManyFunction add =
      engine::reduction::find_reduce_to_many(ElementType::float32, ReduceOperation::sum);
  std::array<void*, max_ranks> to{};
  std::array<const void*, max_ranks> from{};
  for (std::size_t i = 0; i < targets.size(); ++i) to[i] = targets[i] + begin;
  for (std::size_t i = 0; i < sources.size(); ++i) from[i] = sources[i] + begin;
  add(to.data(), targets.size(), from[0], from.data() + 1, sources.size() - 1, count);
}

Pointers all_but(const Pointers& pointers, std::size_t excluded) {
  Pointers others = pointers;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(excluded));
  return others;
}

/// The same by a pass of the kernel and copies of what it left in the first cache.
void combine_blocked(const Pointers& targets, const Pointers& sources, std::size_t begin, std::size_t count) {
  constexpr std::size_t block = 1024;
  for (std::size_t at = begin; at < begin + count; at += block) {
    const std::size_t part = std::min(block, begin + count - at);
    combine({targets[0]}, sources, at, part);
    for (std::size_t i = 1; i < targets.size(); ++i) {
      std::memcpy(targets[i] + at, targets[0] + at, part * sizeof(float));
    }
  }
}

using Combine = void (*)(const Pointers& targets, const Pointers& sources, std::size_t begin, std::size_t count);

/// The collective on elements [begin, end) of the whole array, of which every rank owns `share`.
void run_range(Collective collective, Combine combine, const Pointers& data, const Pointers& output, std::size_t share,
               std::size_t begin, std::size_t end) {
  if (collective == Collective::all_reduce) return combine(data, data, begin, end - begin);
  if (collective == Collective::broadcast) return combine(all_but(data, 0), {data[0]}, begin, end - begin);
  for (std::size_t at = begin; at < end;) {
    const std::size_t owner = at / share;
    const std::size_t count = std::min(end, (owner + 1) * share) - at;
    if (collective == Collective::all_gather) {
      combine(all_but(data, owner), {data[owner]}, at, count);
    } else {
      Pointers sources = data;
      for (float*& source : sources) source += owner * share;
      combine({output[owner]}, sources, at - owner * share, count);
    }
    at += count;
  }
}

void run_cell(Board& board, const Options& options, const Cell& cell) {
  const auto ranks = static_cast<std::size_t>(options.ranks);
  std::vector<Buffers> buffers;
  Pointers data;
  Pointers output;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    buffers.push_back(make_buffers(cell, options.ranks));
    data.push_back(buffers[rank].data.data());
    output.push_back(buffers[rank].output.data());
    fill(cell, static_cast<int>(rank), options.ranks, data.back());
  }
  const std::size_t elements = cell.bytes / sizeof(float);
  const Combine combine_all = options.variant == "blocked" ? combine_blocked : combine;
  const auto run_part = [&](std::size_t part) {
    run_range(cell.collective, combine_all, data, output, elements / ranks, elements * part / threads,
              elements * (part + 1) / threads);
  };
  for (std::size_t part = 0; part < threads; ++part) run_part(part);
  board.wrong = 0;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    board.wrong += static_cast<std::uint32_t>(count_wrong(cell, rank, options.ranks, data[i], output[i]));
    std::fill_n(data[i], buffers[i].data.size(), 0.0F);
  }
  const auto time_part = [&](std::size_t part) {
    pin_to_core(part);
    time_calls(board, part, threads, cell, options, [&] { run_part(part); });
  };
  std::vector<std::thread> parts;
  for (std::size_t part = 0; part < threads; ++part) parts.emplace_back(time_part, part);
  for (std::thread& part : parts) part.join();
  print_result(board, threads, "oracle", options, cell);
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier::bench;
  const Options options = parse_options(argc, argv);
  Board* board = make_board();
  if (board == nullptr) return 1;
  for (const Cell& cell : options.cells) run_cell(*board, options, cell);
  return 0;
}
