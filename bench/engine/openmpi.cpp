// MPI's collectives; the variants (which transport, which component) are chosen on mpirun's command line.
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <cstdio>
#include <vector>

#include "bench/engine/harness.h"

namespace espalier::bench {
namespace {

/// MPI's counts are ints.
struct Counts {
  std::vector<int> sent, sent_at, received, received_at;

  Counts(const Cell& cell, int rank, int ranks) {
    const BlockTable table = blocks_of(cell, rank, ranks);
    const auto ints = [](const std::vector<std::int64_t>& numbers) {
      return std::vector<int>(numbers.begin(), numbers.end());
    };
    sent = ints(table.sent);
    sent_at = ints(table.sent_at);
    received = ints(table.received);
    received_at = ints(table.received_at);
  }
};

void call(const Cell& cell, int ranks, Buffers& buffers, const Counts& counts) {
  float* data = buffers.data.data();
  const int count = static_cast<int>(cell.bytes / sizeof(float));
  switch (cell.collective) {
    case Collective::all_reduce: MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
    case Collective::broadcast: MPI_Bcast(data, count, MPI_FLOAT, 0, MPI_COMM_WORLD); break;
    case Collective::all_gather:
      MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, count / ranks, MPI_FLOAT, MPI_COMM_WORLD);
      break;
    case Collective::reduce_scatter:
      MPI_Reduce_scatter_block(data, buffers.output.data(), count / ranks, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      break;
    case Collective::all_to_all:
      MPI_Alltoallv(data, counts.sent.data(), counts.sent_at.data(), MPI_FLOAT, buffers.output.data(),
                    counts.received.data(), counts.received_at.data(), MPI_FLOAT, MPI_COMM_WORLD);
      break;
    case Collective::counts: {
      std::array<std::int64_t, max_ranks> sent{};
      std::array<std::int64_t, max_ranks> received{};
      MPI_Alltoall(sent.data(), 1, MPI_INT64_T, received.data(), 1, MPI_INT64_T, MPI_COMM_WORLD);
      break;
    }
  }
}

int run(Options options) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (options.pin) pin_to_core(static_cast<std::size_t>(rank));
  MPI_Comm_size(MPI_COMM_WORLD, &options.ranks);
  Board* board = open_board(options.board);
  if (board == nullptr) {
    std::fprintf(stderr, "bench: cannot map the board '%s'\n", options.board.c_str());
    return 1;
  }
  for (const Cell& cell : options.cells) {
    Buffers buffers = make_buffers(cell, options.ranks);
    const Counts counts(cell, rank, options.ranks);
    measure(*board, rank, "openmpi", options, cell, buffers.data.data(), buffers.output.data(),
            [&] { call(cell, options.ranks, buffers, counts); });
  }
  return 0;
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = espalier::bench::run(espalier::bench::parse_options(argc, argv));
  MPI_Finalize();
  return status;
}
