// The least that an engine in shared memory can do on two cores: two pinned threads with every rank's buffer in reach
// make one pass in blocks that stay in the first cache, reading each input once and writing each output once. No rank
// waits for another, nothing is staged.
#include <pthread.h>
#include <sched.h>

#include <cstdio>
#include <cstring>
#include <thread>

#include "bench/engine/harness.h"
#include "engine/reduction/reduce.h"

namespace espalier::bench {
namespace {

constexpr std::size_t threads = 2;
constexpr std::size_t block = 1024;  // elements: 4 KiB of each rank

using Pointers = std::vector<float*>;

void pin(std::size_t core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);  // where there is one core, both run on it
}

void copy(const Pointers& data, std::size_t from, std::size_t begin, std::size_t count) {
  for (std::size_t rank = 0; rank < data.size(); ++rank) {
    if (rank != from) std::memcpy(data[rank] + begin, data[from] + begin, count * sizeof(float));
  }
}

void reduce(float* target, const Pointers& data, std::size_t begin, std::size_t count) {
  static const ReduceFunction add = find_reduce(ElementType::float32, ReduceOperation::sum);
  std::array<const void*, most_ranks> sources{};
  for (std::size_t rank = 1; rank < data.size(); ++rank) sources[rank - 1] = data[rank] + begin;
  add(target, data[0] + begin, sources.data(), data.size() - 1, count);
}

/// The collective on elements [begin, end) of the whole array.
void run_range(Collective collective, const Pointers& data, const Pointers& output, std::size_t share,
               std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; at < end;) {
    const std::size_t owner = at / share;
    const bool by_owner = collective == Collective::all_gather || collective == Collective::reduce_scatter;
    const std::size_t count = std::min({block, end - at, by_owner ? (owner + 1) * share - at : block});
    switch (collective) {
      case Collective::all_reduce:
        reduce(data[0] + at, data, at, count);
        copy(data, 0, at, count);
        break;
      case Collective::broadcast: copy(data, 0, at, count); break;
      case Collective::all_gather: copy(data, owner, at, count); break;
      case Collective::reduce_scatter: reduce(output[owner] + at - owner * share, data, at, count); break;
    }
    at += count;
  }
}

void run_cell(Board& board, const Options& options, const Cell& cell) {
  const auto ranks = static_cast<std::size_t>(options.ranks);
  std::vector<Buffers> buffers(ranks);
  Pointers data;
  Pointers output;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    buffers[rank] = make_buffers(cell, options.ranks);
    data.push_back(buffers[rank].data.data());
    output.push_back(buffers[rank].output.data());
    fill(cell, static_cast<int>(rank), options.ranks, data.back());
  }
  const std::size_t elements = cell.bytes / sizeof(float);
  const auto run_part = [&](std::size_t part) {
    run_range(cell.collective, data, output, elements / ranks, elements * part / threads,
              elements * (part + 1) / threads);
  };
  for (std::size_t part = 0; part < threads; ++part) run_part(part);
  board.wrong = 0;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    board.wrong += static_cast<std::uint32_t>(count_wrong(cell, rank, options.ranks, data[i], output[i]));
    std::fill(buffers[i].data.begin(), buffers[i].data.end(), 0.0F);
  }
  const auto time_part = [&](std::size_t part) {
    pin(part);
    time_calls(board, part, threads, cell, options.seconds, [&] { run_part(part); });
  };
  std::thread other(time_part, 1);
  time_part(0);
  other.join();
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
