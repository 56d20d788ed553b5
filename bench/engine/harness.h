#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// What the drivers of all engines share, so that their figures may be compared: the same cells, data, checks, barrier,
// clock and statistics.

namespace espalier::bench {

enum class Collective : std::uint8_t { all_reduce, broadcast, all_gather, reduce_scatter, all_to_all, counts };

/// One measurement: float32, sum, root 0. `bytes` is the whole array, of which all_gather contributes and
/// reduce_scatter keeps one rank's share. An all_to_all is uneven: `bytes` is what the hottest rank receives.
/// In `counts` each rank tells each other one 64-bit number; what comes is not checked here.
struct Cell {
  Collective collective = Collective::all_reduce;
  std::size_t bytes = 0;
  std::size_t iterations = 0;
};

struct Options {
  std::string variant;
  int ranks = 2;
  std::vector<Cell> cells;
  double seconds = 3;     ///< a cell ends after this time even if iterations are left
  double warm_up = 0.05;  ///< seconds; long enough for cores that were idle to be at their usual speed
  bool pin = false;       ///< each rank to one core, in turn
  std::string board;      ///< the file that ranks map as their board, where they are not forked by the driver
};

/// --variant NAME --ranks N --cells collective:bytes:iterations,... --seconds S --warm-up S --pin yes|no --board
/// FILE. Ends the process on misuse.
Options parse_options(int argc, char** argv);

inline constexpr std::size_t max_ranks = 8;
inline constexpr std::size_t max_iterations = 4096;

/// Shared by all participants of a measurement; starts as zeros.
struct Board {
  std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint32_t> generation;
  std::atomic<std::uint32_t> sleepers;
  std::atomic<std::uint32_t> wrong;
  std::atomic<std::uint32_t> stop_before;  ///< iterations that run
  std::array<std::array<double, max_iterations>, max_ranks> microseconds;
};

/// Ties this thread, and those that it starts from now on, to the core of that number, modulo the cores there are.
void pin_to_core(std::size_t number);

/// Memory of this process and its children; nullptr when there is none.
Board* make_board();
/// The board of a file, which is made as long as needed.
Board* open_board(const std::string& path);

/// Waits for all participants. Where each has a core they look on and leave together, so that calls begin at one time;
/// else, or when it takes long, the core is yielded to who is missing. Where other programs compute a yield gives them
/// a time slice, of which the calls would be measured; then who waits sleeps.
void wait_for_all(Board& board, std::size_t participants);

/// Zeros that start at a page, as device memory and tensors do; what malloc gives would cut every vector in two.
class Array {
 public:
  explicit Array(std::size_t elements);
  float* data() { return data_.get(); }
  std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  std::unique_ptr<float[], Free> data_;
  std::size_t size_;
};

/// One rank's arrays of a cell, every page touched.
struct Buffers {
  Array data;    ///< the whole array: input, and output but for reduce_scatter and all_to_all
  Array output;  ///< one share for reduce_scatter, room for what the hottest rank receives for all_to_all
};

/// Elements of a rank's blocks in an all_to_all, by peer, and where they begin. All ranks send as much as each other;
/// one receives 2.5 times the mean, the others by a Zipf law of 0.7.
struct BlockTable {
  std::vector<std::int64_t> sent;
  std::vector<std::int64_t> sent_at;
  std::vector<std::int64_t> received;
  std::vector<std::int64_t> received_at;
};
BlockTable blocks_of(const Cell& cell, int rank, int ranks);

Buffers make_buffers(const Cell& cell, int ranks);
void fill(const Cell& cell, int rank, int ranks, float* data);
/// Elements that are not what the collective gives on `fill`'s data; the sums are exact.
std::size_t count_wrong(const Cell& cell, int rank, int ranks, const float* data, const float* output);

/// Runs `call` once for each iteration behind a barrier and writes its times to the board.
void time_calls(Board& board, std::size_t participant, std::size_t participants, const Cell& cell,
                const Options& options, const std::function<void()>& call);

/// One line of JSON: minimum, median and mean over the iterations of the slowest participant's time.
void print_result(Board& board, std::size_t participants, const std::string& engine, const Options& options,
                  const Cell& cell);

/// A rank's whole part: fill, call once and check, then zeros (so that repeated sums stay finite) and time the calls.
void measure(Board& board, int rank, const std::string& engine, const Options& options, const Cell& cell, float* data,
             float* output, const std::function<void()>& call);

/// Runs `rank_main` in one forked process per rank; false when one of them failed.
bool run_ranks(int ranks, const std::function<void(int rank)>& rank_main);

}  // namespace espalier::bench
