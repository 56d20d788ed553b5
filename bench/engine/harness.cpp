#include "bench/engine/harness.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string_view>

#include "base/send_signal.h"

namespace espalier::bench {
namespace {

constexpr std::array<std::string_view, 6> collective_names = {"all_reduce",     "broadcast",  "all_gather",
                                                              "reduce_scatter", "all_to_all", "counts"};
constexpr std::size_t warm_up_calls = 3;
constexpr double slow_yield_us = 300;
constexpr std::uint32_t sleeps_after_slow_yield = 256;
constexpr std::uint32_t barrier_looks = 20'000;  ///< Some tens of microseconds.

[[noreturn]] void misuse(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(2);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::size_t parse_number(const std::string& text) {
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') misuse("'" + text + "' is no number");
  return static_cast<std::size_t>(number);
}

Cell parse_cell(const std::string& text) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() != 3) misuse("a cell is collective:bytes:iterations, not '" + text + "'");
  const auto name = std::find(collective_names.begin(), collective_names.end(), parts[0]);
  if (name == collective_names.end()) misuse("there is no collective '" + parts[0] + "'");
  return {static_cast<Collective>(name - collective_names.begin()), parse_number(parts[1]),
          std::min(parse_number(parts[2]), max_iterations)};
}

double now_us() {
  using Microseconds = std::chrono::duration<double, std::micro>;
  return Microseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Small integers, so that float32 adds any number of ranks exactly.
float value_of(int rank, std::size_t index) {
  return static_cast<float>(static_cast<int>((index * 31 + static_cast<std::size_t>(rank) * 17) % 61) - 30);
}

float sum_of(int ranks, std::size_t index) {
  float sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += value_of(rank, index);
  return sum;
}

std::size_t elements_of(const Cell& cell) { return cell.bytes / sizeof(float); }
std::size_t share_of(const Cell& cell, int ranks) { return elements_of(cell) / static_cast<std::size_t>(ranks); }

Board* map_board(int file, int flags) {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | flags, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<Board*>(memory);
}

/// Yields; where that took long lately, sleeps until the last participant has come.
void leave_core(Board& board, std::uint32_t generation) {
  static std::uint32_t sleeps_left = 0;
  if (sleeps_left > 0) {
    --sleeps_left;
    ++board.sleepers;
    syscall(SYS_futex, &board.generation, FUTEX_WAIT, generation, nullptr, nullptr, 0);
    --board.sleepers;
    return;
  }
  const double begin = now_us();
  sched_yield();
  if (now_us() - begin > slow_yield_us) sleeps_left = sleeps_after_slow_yield;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) misuse(std::string(name) + " needs a value");
    const std::string value = argv[i + 1];
    if (name == "--variant") {
      options.variant = value;
    } else if (name == "--ranks") {
      options.ranks = static_cast<int>(parse_number(value));
    } else if (name == "--cells") {
      for (const std::string& cell : split(value, ',')) options.cells.push_back(parse_cell(cell));
    } else if (name == "--seconds") {
      options.seconds = std::atof(value.c_str());
    } else if (name == "--warm-up") {
      options.warm_up = std::atof(value.c_str());
    } else if (name == "--pin") {
      options.pin = value == "yes";
    } else if (name == "--board") {
      options.board = value;
    } else {
      misuse("there is no option " + std::string(name));
    }
  }
  if (options.ranks < 1 || options.ranks > static_cast<int>(max_ranks)) misuse("1 to 8 ranks");
  return options;
}

void pin_to_core(std::size_t number) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  std::size_t left = number % static_cast<std::size_t>(CPU_COUNT(&allowed));
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

Board* make_board() { return map_board(-1, MAP_ANONYMOUS); }

Board* open_board(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return nullptr;
  Board* board = ftruncate(file, sizeof(Board)) == 0 ? map_board(file, 0) : nullptr;
  close(file);
  return board;
}

void wait_for_all(Board& board, std::size_t participants) {
  const std::uint32_t generation = board.generation.load();
  if (board.arrived.fetch_add(1) + 1 == participants) {
    board.arrived.store(0);
    board.generation.store(generation + 1);
    if (board.sleepers.load() > 0) syscall(SYS_futex, &board.generation, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    return;
  }
  static const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  std::uint32_t looks = participants <= static_cast<std::size_t>(cores) ? barrier_looks : 0;
  while (board.generation.load() == generation) {
    if (looks == 0) {
      leave_core(board, generation);
    } else {
      --looks;
    }
  }
}

Array::Array(std::size_t elements) : size_(elements) {
  constexpr std::size_t page = 4096;
  const std::size_t bytes = (elements * sizeof(float) / page + 1) * page;
  data_.reset(static_cast<float*>(std::aligned_alloc(page, bytes)));
  if (data_ == nullptr) misuse("no memory for " + std::to_string(bytes) + " bytes");
  std::memset(data_.get(), 0, bytes);
}

void Array::Free::operator()(float* memory) const { std::free(memory); }

Buffers make_buffers(const Cell& cell, int ranks) {
  const std::size_t output = cell.collective == Collective::reduce_scatter ? share_of(cell, ranks)
                             : cell.collective == Collective::all_to_all   ? elements_of(cell)
                                                                           : 0;
  return {Array(elements_of(cell)), Array(output)};
}

BlockTable blocks_of(const Cell& cell, int rank, int ranks) {
  constexpr double hottest = 2.5;
  const auto size = static_cast<std::size_t>(ranks);
  const std::size_t hot = size / 3;
  std::vector<double> weights(size);
  double others = 0;
  for (std::size_t to = 0; to < size; ++to) {
    weights[to] = to == hot ? 0 : std::pow(static_cast<double>((to + size - hot) % size + 1), -0.7);
    others += weights[to];
  }
  // The hottest gets as much from each rank as an equal share of all that it receives.
  const double most = static_cast<double>(elements_of(cell)) / static_cast<double>(ranks);
  const double share = std::min(hottest / static_cast<double>(ranks), 0.9);
  BlockTable table;
  std::int64_t received_at = 0;
  std::int64_t sent_at = 0;
  for (std::size_t peer = 0; peer < size; ++peer) {
    const auto block = [&](std::size_t to) {
      return static_cast<std::int64_t>(to == hot ? most : most / share * (1 - share) * weights[to] / others);
    };
    table.sent.push_back(block(peer));
    table.sent_at.push_back(sent_at);
    table.received.push_back(block(static_cast<std::size_t>(rank)));
    table.received_at.push_back(received_at);
    sent_at += table.sent.back();
    received_at += table.received.back();
  }
  return table;
}

void fill(const Cell& cell, int rank, int ranks, float* data) {
  const std::size_t share = share_of(cell, ranks);
  const std::size_t own = static_cast<std::size_t>(rank) * share;
  for (std::size_t i = 0; i < elements_of(cell); ++i) {
    const bool given = cell.collective == Collective::broadcast    ? rank == 0
                       : cell.collective == Collective::all_gather ? i >= own && i < own + share
                                                                   : true;
    data[i] = given ? value_of(rank, i) : -1;
  }
}

std::size_t count_wrong(const Cell& cell, int rank, int ranks, const float* data, const float* output) {
  const std::size_t share = share_of(cell, ranks);
  std::size_t wrong = 0;
  if (cell.collective == Collective::counts) return 0;
  if (cell.collective == Collective::all_to_all) {
    const BlockTable own = blocks_of(cell, rank, ranks);
    for (int from = 0; from < ranks; ++from) {
      const auto at = static_cast<std::size_t>(own.received_at[static_cast<std::size_t>(from)]);
      const auto first = blocks_of(cell, from, ranks).sent_at[static_cast<std::size_t>(rank)];
      const auto count = static_cast<std::size_t>(own.received[static_cast<std::size_t>(from)]);
      for (std::size_t i = 0; i < count; ++i) {
        wrong += output[at + i] != value_of(from, static_cast<std::size_t>(first) + i) ? 1U : 0U;
      }
    }
    return wrong;
  }
  if (cell.collective == Collective::reduce_scatter) {
    for (std::size_t i = 0; i < share; ++i) {
      wrong += output[i] != sum_of(ranks, static_cast<std::size_t>(rank) * share + i) ? 1U : 0U;
    }
    return wrong;
  }
  for (std::size_t i = 0; i < elements_of(cell); ++i) {
    const float expected = cell.collective == Collective::all_reduce  ? sum_of(ranks, i)
                           : cell.collective == Collective::broadcast ? value_of(0, i)
                                                                      : value_of(static_cast<int>(i / share), i);
    wrong += data[i] != expected ? 1U : 0U;
  }
  return wrong;
}

void time_calls(Board& board, std::size_t participant, std::size_t participants, const Cell& cell,
                const Options& options, const std::function<void()>& call) {
  if (participant == 0) board.stop_before = UINT32_MAX;
  const double woken = now_us();
  for (std::uint32_t i = 0;; ++i) {
    const bool is_warm = i >= warm_up_calls && now_us() - woken > options.warm_up * 1e6;
    if (participant == 0 && is_warm) board.stop_before = i;
    wait_for_all(board, participants);
    if (i >= board.stop_before) break;
    call();
  }
  wait_for_all(board, participants);
  if (participant == 0) board.stop_before = static_cast<std::uint32_t>(cell.iterations);
  wait_for_all(board, participants);
  const double begin = now_us();
  for (std::uint32_t i = 0; i < cell.iterations; ++i) {
    // A participant that still looks at the last iteration's limit finds it above that iteration.
    if (participant == 0 && now_us() - begin > options.seconds * 1e6) board.stop_before = i;
    wait_for_all(board, participants);
    if (i >= board.stop_before) break;
    const double start = now_us();
    call();
    board.microseconds[participant][i] = now_us() - start;
  }
  wait_for_all(board, participants);
}

void print_result(Board& board, std::size_t participants, const std::string& engine, const Options& options,
                  const Cell& cell) {
  std::vector<double> slowest(board.stop_before);
  for (std::size_t i = 0; i < slowest.size(); ++i) {
    for (std::size_t p = 0; p < participants; ++p) slowest[i] = std::max(slowest[i], board.microseconds[p][i]);
  }
  if (slowest.empty()) return;
  std::sort(slowest.begin(), slowest.end());
  const double mean = std::accumulate(slowest.begin(), slowest.end(), 0.0) / static_cast<double>(slowest.size());
  std::printf(
      "{\"engine\": \"%s\", \"variant\": \"%s\", \"collective\": \"%s\", \"ranks\": %d, \"bytes\": %zu, "
      "\"iterations\": %zu, \"min_us\": %.3f, \"median_us\": %.3f, \"mean_us\": %.3f, \"wrong\": %u}\n",
      engine.c_str(), options.variant.c_str(),
      std::string(collective_names[static_cast<std::size_t>(cell.collective)]).c_str(), options.ranks, cell.bytes,
      slowest.size(), slowest.front(), slowest[slowest.size() / 2], mean, board.wrong.load());
  std::fflush(stdout);
}

void measure(Board& board, int rank, const std::string& engine, const Options& options, const Cell& cell, float* data,
             float* output, const std::function<void()>& call) {
  const auto participants = static_cast<std::size_t>(options.ranks);
  fill(cell, rank, options.ranks, data);
  if (rank == 0) board.wrong = 0;
  wait_for_all(board, participants);
  call();
  const std::size_t wrong = count_wrong(cell, rank, options.ranks, data, output);
  board.wrong += static_cast<std::uint32_t>(std::min<std::size_t>(wrong, UINT32_MAX));
  std::fill_n(data, elements_of(cell), 0.0F);
  time_calls(board, static_cast<std::size_t>(rank), participants, cell, options, call);
  if (rank == 0) print_result(board, participants, engine, options, cell);
  wait_for_all(board, participants);
}

bool run_ranks(int ranks, const std::function<void(int rank)>& rank_main) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      rank_main(rank);
      std::fflush(stdout);
      _exit(0);
    }
    if (child > 0) children.push_back(child);
  }
  bool good = children.size() == static_cast<std::size_t>(ranks);
  for (std::size_t left = children.size(); left > 0; --left) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    std::erase(children, ended);
    if (failed && good) {
      for (pid_t child : children) espalier::send_signal(child, SIGKILL);  // they would wait for it for ever
    }
    good = good && !failed;
  }
  return good;
}

}  // namespace espalier::bench
