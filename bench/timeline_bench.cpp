#include <benchmark/benchmark.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <streambuf>

#include "base/check.h"
#include "base/random.h"
#include "schedule/timeline/binary_timeline.h"
#include "schedule/timeline/chrome_trace.h"

namespace espalier::bench {
namespace {

/// Takes everything, keeps only how much it was.
class Sink : public std::streambuf {
 public:
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 protected:
  std::streamsize xsputn(const char*, std::streamsize count) override {
    bytes_ += count;
    return count;
  }
  int_type overflow(int_type byte) override {
    ++bytes_;
    return traits_type::not_eof(byte);
  }

 private:
  std::int64_t bytes_ = 0;
};

/// Spans as a simulation of many lanes gives them: a send, its way over a link and its arrival per chunk, the sends of
/// one rank up to four deep.
Timeline make_timeline(std::size_t spans) {
  constexpr std::size_t lanes = 256;
  Timeline timeline;
  timeline.title = "all_reduce, ring, 1 GiB on a ring";
  timeline.origin = "simulation";
  for (std::size_t i = 0; i < lanes; ++i) {
    timeline.rank_names.push_back("gpu" + std::to_string(i));
    timeline.link_names.push_back("gpu" + std::to_string(i) + ">gpu" + std::to_string((i + 1) % lanes));
  }
  Random random(1);
  timeline.spans.reserve(spans);
  for (std::size_t i = 0; timeline.spans.size() < spans; ++i) {
    const auto lane = static_cast<std::uint32_t>(i % lanes);
    const auto begin = static_cast<std::int64_t>(i / lanes) * 81'923 + static_cast<std::int64_t>(random.below(1000));
    const auto chunk = static_cast<std::uint32_t>(i / lanes % 64);
    const TransferId transfer(i / 64);
    timeline.spans.push_back({lane, transfer, chunk, Phase::send, {begin}, {begin + 300'000}});
    timeline.spans.push_back({lane, transfer, chunk, Phase::wire, {begin}, {begin + 80'001}});
    timeline.spans.push_back(
        {static_cast<std::uint32_t>((lane + 1) % lanes), transfer, chunk, Phase::recv, {begin}, {begin + 80'001}});
  }
  timeline.spans.resize(spans);
  return timeline;
}

using Write = Result<void> (*)(std::ostream&, const Timeline&);

/// Into nothing: what the writer itself costs.
void bm_write(benchmark::State& state, Write write) {
  const Timeline timeline = make_timeline(static_cast<std::size_t>(state.range(0)));
  std::int64_t bytes = 0;
  for (auto _ : state) {
    Sink sink;
    std::ostream out(&sink);
    ESPALIER_CHECK(write(out, timeline).has_value(), "a sink takes everything");
    bytes += sink.bytes();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
  state.SetBytesProcessed(bytes);
}

/// Into a file of the temporary folder.
void bm_write_file(benchmark::State& state, Write write) {
  const Timeline timeline = make_timeline(static_cast<std::size_t>(state.range(0)));
  const auto path = std::filesystem::temp_directory_path() / "espalier_timeline_bench";
  for (auto _ : state) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    ESPALIER_CHECK(write(out, timeline).has_value(), "the temporary folder has room");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(std::filesystem::file_size(path)));
  std::filesystem::remove(path);
}

constexpr std::int64_t ten_million = 10'000'000;
BENCHMARK_CAPTURE(bm_write, chrome, write_chrome_trace)->Arg(ten_million)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bm_write, binary, write_binary_timeline)->Arg(ten_million)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bm_write_file, chrome, write_chrome_trace)->Arg(ten_million)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(bm_write_file, binary, write_binary_timeline)->Arg(ten_million)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace espalier::bench

BENCHMARK_MAIN();
