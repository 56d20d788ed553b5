#include "planners/pacing_search.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/parallel.h"

namespace espalier::planners {
namespace {

/// Chunks times links: of the first run, which take a tenth of a second or two to simulate; of all runs together where
/// no more than half a percent is left of what loads and latencies explain; usually; and where there is more than a
/// hundredth to gain, or so many times the run of whole transfers if that is more; so many where there is a lot to
/// gain; and at least so many where the last hundredth of the bound is short of what loads and latencies allow.
constexpr double first_hops = 500'000;
constexpr double few_hops = 1'000'000;
constexpr double usual_hops = 3'000'000;
constexpr double max_hops = 16'000'000;
constexpr double short_hops = 6'000'000;
/// From so many ranks on, rounds are tried again with smaller chunks; of more, people wait longer for a plan.
constexpr std::size_t many_ranks = 64;
constexpr double max_hops_of_more = 28'000'000;
constexpr double short_hops_of_more = 72'000'000;
constexpr double max_wholes = 8;
constexpr double max_wholes_far_off = 16;

/// A run of more takes seconds.
constexpr double slow_hops = 20'000'000;

/// What is only likely to be asked for next, or to gain, is run where it is no more than this.
constexpr double guessed_hops = 2'000'000;

/// Parts of the least time: nothing better is looked for, and nothing that costs much.
constexpr double close = 1.005;
constexpr double far = 1.01;
constexpr double very_far = 1.03;

/// Faster by more than this is a gain; by more than the second where the last hundredth of the bound is missing.
constexpr double gain = 0.998;
constexpr double small_gain = 0.9995;

/// Seconds from which on a call is long.
constexpr double long_call = 0.001;

/// Latencies of the longest chain may take so much less, beside the loads.
constexpr double gain_of_latency = 1.006;

/// What the first chunk's path explains of a time is lost to the chunk's size, not to chunks out of step.
constexpr double explained = 1.003;

class Search {
 public:
  Search(const ChunkModel& chunks, Bytes size, const FixedPacing& fixed, const EvaluatePacing& evaluate)
      : chunks_(chunks),
        size_(size),
        wire_{static_cast<std::int64_t>(static_cast<double>(size.count) / fixed.payload)},
        fixed_(fixed),
        evaluate_(evaluate) {}

  /// Nothing where the first run is given up.
  Result<std::optional<RunReport>> run(std::optional<Picoseconds> best_of_others) {
    if (best_of_others) of_others_ = (*best_of_others - fixed_.launch).seconds();
    Pacing pacing = first_pacing(chunks_, size_, fixed_);
    const bool is_fine = exceeds_hop_budget(chunks_, size_) && !fixed_.chunk;
    if (is_fine) pacing.chunk = expect_fine_enough(pacing.chunk);
    auto first = evaluate(pacing, best_of_others ? latest_beside(*best_of_others) : no_deadline);
    if (!first || !*first) return first;
    best_ = **std::move(first);
    const Bytes cheap = chunks_.smallest_within(size_, first_hops);
    const bool is_coarse = !fixed_.chunk && cheap > chunks_.choose(size_);
    // What is coarse has few rounds to keep to; in a long call that takes long to see.
    const bool is_first_of_many = is_coarse && seconds() >= long_call && chunks_.rank_count() <= many_ranks &&
                                  is_affordable(scaled(best_.chunk, -2));
    if (!is_explained()) {
      if (is_first_of_many) {
        has_left_steps_ = true;
      } else {
        try_in_step();
      }
    }
    if (fixed_.chunk) return best_;
    const bool was_in_step = has_tried_steps_;
    if (is_fine || is_coarse || !climb(2)) refine(!is_fine);
    if (!was_in_step) try_finer_in_step();
    return best_;
  }

 private:
  /// What the best takes.
  [[nodiscard]] double seconds() const { return (best_.elapsed - fixed_.launch).seconds(); }

  /// Whether the best is within a factor of the least time, or takes no more than loads and latencies explain.
  [[nodiscard]] bool is_within(double factor) const {
    return seconds() <= std::max(factor * chunks_.min_time(wire_), chunks_.pipelined_time(wire_));
  }

  /// Whether only smaller chunks would make it faster.
  [[nodiscard]] bool is_explained() const { return seconds() <= explained * chunks_.filled_time(wire_, best_.chunk); }

  [[nodiscard]] bool is_affordable(Bytes chunk) const { return hops_ + hops_of(chunk) <= allowed_hops(); }

  /// Whether the chunk twice as large, which costs half as much, may be run as well.
  [[nodiscard]] bool leaves_room(Bytes chunk) const { return hops_ + 1.5 * hops_of(chunk) <= allowed_hops(); }

  [[nodiscard]] double allowed_hops() const {
    constexpr Bytes whole{std::numeric_limits<std::int64_t>::max()};
    const double wholes = is_within(very_far) ? max_wholes : max_wholes_far_off;
    const bool is_large = chunks_.rank_count() > many_ranks;
    const double hops = is_large ? max_hops_of_more : max_hops;
    const double most = std::max(hops, wholes * hops_of(whole));
    const bool is_good = seconds() <= close * chunks_.pipelined_time(wire_);
    // What is gained on the best of other schedules counts, too.
    const bool is_near = is_within(far) || of_others_ <= far * chunks_.min_time(wire_);
    const double allowed = is_good ? few_hops : is_near ? usual_hops : most;
    const double last_hundredth = is_short() ? (is_large ? short_hops_of_more : short_hops) : 0;
    return std::max(allowed, last_hundredth);
  }

  /// Whether more than the last hundredth of the bound is missing in a long call, and latencies may allow it.
  [[nodiscard]] bool is_short() const {
    const double enough = far * chunks_.min_time(wire_);
    return enough >= long_call && seconds() > enough && seconds() <= very_far * chunks_.min_time(wire_) &&
           chunks_.pipelined_time(wire_) <= gain_of_latency * enough;
  }

  /// Chunks times links that a run simulates.
  [[nodiscard]] double hops_of(Bytes chunk) const { return chunks_.chunk_hops(size_, chunk) / fixed_.parts; }

  /// Chunks of two sizes that are as many are the same chunks.
  [[nodiscard]] bool was_run(const Pacing& pacing) const {
    return std::ranges::any_of(runs_, [&](const Pacing& run) {
      return run.ahead == pacing.ahead &&
             chunks_.chunk_hops(size_, run.chunk) == chunks_.chunk_hops(size_, pacing.chunk);
    });
  }

  Result<std::optional<RunReport>> evaluate(const Pacing& pacing, Picoseconds deadline) {
    hops_ += hops_of(pacing.chunk);
    runs_.push_back(pacing);
    const auto found = std::ranges::find(guesses_, pacing, &Guess::pacing);
    if (found != guesses_.end()) return *std::move(found->report);
    return evaluate_(pacing, deadline);
  }

  /// Runs two cuts that are likely to be tried next side by side. Their deadline is no earlier than when they are
  /// tried, so that they turn out as they would then.
  void guess(Pacing one, Pacing other) {
    guesses_.clear();
    for (Pacing pacing : {one, other}) {
      pacing.chunk = std::max(pacing.chunk, fixed_.min_chunk);
      const bool is_over_budget = !is_affordable(pacing.chunk) || hops_of(pacing.chunk) > guessed_hops;
      if (!was_run(pacing) && !is_over_budget) guesses_.push_back({pacing, std::nullopt});
    }
    if (fixed_.threads < 2 || guesses_.size() < 2) return guesses_.clear();
    const Picoseconds deadline = deadline_of_tries();
    run_parallel(guesses_.size(), fixed_.threads,
                 [&](std::size_t i) { guesses_[i].report = evaluate_(guesses_[i].pacing, deadline); });
  }

  /// By when a cut has to be over to be a gain.
  [[nodiscard]] Picoseconds deadline_of_tries() const {
    const auto before = static_cast<double>((best_.elapsed - fixed_.launch).count);
    return fixed_.launch + Picoseconds{static_cast<std::int64_t>((is_short() ? small_gain : gain) * before)};
  }

  /// Whether it is faster than all before; what cannot be run or would take too long is not.
  bool try_pacing(Pacing pacing) {
    pacing.chunk = std::max(pacing.chunk, fixed_.min_chunk);
    if (was_run(pacing) || !is_affordable(pacing.chunk)) return false;
    const Picoseconds deadline = deadline_of_tries();
    return take_earlier_than(deadline, pacing);
  }

  /// Whether a run is over earlier; then it is the best.
  bool take_earlier_than(Picoseconds deadline, const Pacing& pacing) {
    auto report = evaluate(pacing, deadline);
    if (!report || !*report || (*report)->elapsed >= deadline) return false;
    best_ = **std::move(report);
    return true;
  }

  void try_in_step() {
    const Bytes chunk = best_.chunk;
    // Two more measures where a hundredth is still to gain.
    for (const std::uint32_t factor : {1U, 4U, 2U, 8U}) {
      const std::uint32_t ahead = factor * chunks_.rounds_ahead(size_, chunk);
      const bool is_more = factor == 2 || factor == 8;
      if (fixed_.ahead || ahead == 0 || is_within(is_more ? far : close)) return;
      has_tried_steps_ = true;
      if (factor < 4) guess({chunk, ahead}, {chunk, 4 * ahead});
      if (try_pacing({chunk, ahead})) ahead_quarters_ = 4 * factor;
    }
  }

  /// So many rounds as were best before, in the model's measure; 0 where that has none.
  [[nodiscard]] std::uint32_t measured_ahead(Bytes chunk) const {
    const std::uint32_t ahead = chunks_.rounds_ahead(size_, chunk);
    return ahead == 0 ? 0 : std::max(1U, ahead_quarters_ * ahead / 4);
  }

  /// With coarse chunks long windows may be no worse than the model's measure; with finer ones, as many rounds let far
  /// more drift apart. Past 64 ranks the measure itself is tried again, then.
  void try_measure_again() {
    const bool is_large = chunks_.rank_count() > many_ranks;
    if (!is_large || fixed_.ahead || best_.ahead == 0 || ahead_quarters_ <= 4 || is_within(far)) return;
    const std::uint32_t before = std::exchange(ahead_quarters_, 4);
    if (!try_pacing({best_.chunk, measured_ahead(best_.chunk)})) ahead_quarters_ = before;
  }

  /// Where the last hundredth is missing in step, and a smaller chunk takes seconds to run, a quarter of the measure is
  /// tried before, once.
  void try_fewer_ahead() {
    if (fixed_.ahead || best_.ahead == 0 || ahead_quarters_ != 4 || !is_short()) return;
    if (hops_of(scaled(best_.chunk, -2)) <= slow_hops) return;
    ahead_quarters_ = 1;
    if (!try_pacing({best_.chunk, measured_ahead(best_.chunk)})) ahead_quarters_ = 4;
  }

  /// Where the first chunk has too few rounds to be in step, smaller ones were tried in short windows only. As long as
  /// that is quick.
  void try_finer_in_step() {
    const Bytes chunk = scaled(best_.chunk, -1);
    if (hops_of(chunk) > guessed_hops) return;
    for (const std::uint32_t factor : {4U, 8U}) {
      const std::uint32_t ahead = factor * chunks_.rounds_ahead(size_, chunk);
      if (fixed_.ahead || ahead == 0 || chunk < ChunkModel::smallest_chunk || is_within(far)) return;
      try_pacing({chunk, ahead});
    }
  }

  /// Whether a chunk of this size is faster than all before, in step or not.
  bool try_chunk(Bytes chunk) {
    if (chunk < ChunkModel::smallest_chunk || chunk > size_ || is_within(close)) return false;
    if (fixed_.ahead) return try_pacing({chunk, *fixed_.ahead});
    const bool is_free = best_.ahead == 0;
    const std::uint32_t ahead = measured_ahead(chunk);
    if (ahead != 0 && !is_within(far)) guess({chunk, is_free ? 0 : ahead}, {chunk, is_free ? ahead : 0});
    const bool gains = try_pacing({chunk, is_free ? 0 : ahead});
    if (ahead == 0 || is_within(far)) return gains;
    if (gains && chunks_.rank_count() >= many_ranks && (has_tried_steps_ || has_left_steps_) && is_free &&
        !is_explained() && !is_within(very_far)) {
      try_steps_again(chunk);
      return true;
    }
    if (gains && (is_explained() || has_tried_steps_)) return gains;
    has_tried_steps_ = true;
    return try_pacing({chunk, is_free ? ahead : 0}) || gains;
  }

  /// Steps were tried with larger chunks, of which fewer can be out of step. As long as that is quick. What is no
  /// slower is taken, as smaller chunks are to come.
  void try_steps_again(Bytes chunk) {
    if (hops_of(chunk) > guessed_hops) return;
    for (const std::uint32_t factor : {1U, 4U}) {
      const Pacing pacing{chunk, factor * chunks_.rounds_ahead(size_, chunk)};
      if (was_run(pacing) || !is_affordable(chunk)) return;
      const Picoseconds latest{best_.elapsed.count + (best_.ahead == 0 ? 1 : 0)};
      if (take_earlier_than(latest, pacing)) ahead_quarters_ = 4 * factor;
    }
  }

  /// Doubles the chunk `step` times, or halves it, as long as that gains. Whether it gained at all.
  bool climb(int step) {
    const Bytes before = best_.chunk;
    while (try_chunk(scaled(best_.chunk, step))) {
    }
    return best_.chunk != before;
  }

  /// To smaller chunks, over one size that does not gain: pipelines get shorter and may drift further apart.
  void refine(bool tries_larger) {
    Bytes chunk = scaled(best_.chunk, -2);
    for (int misses = 0; misses < 2 && is_affordable(chunk); chunk = scaled(chunk, -2)) {
      const Picoseconds before = best_.elapsed;
      const Bytes chunk_before = best_.chunk;
      misses = try_chunk(chunk) ? 0 : misses + 1;
      if (misses > 0) continue;
      try_measure_again();
      try_fewer_ahead();
      const double slope =
          (before - best_.elapsed).seconds() / static_cast<double>(chunk_before.count - best_.chunk.count);
      chunk = scaled(expect_enough(slope), 2);
    }
    // Sizes were skipped on the way; those that cost less may be tried where smaller ones may not.
    const bool may_halve = is_affordable(scaled(best_.chunk, -1));
    if (tries_larger && (may_halve || !is_within(far)) && climb(1)) return;
    if (may_halve) climb(-1);
  }

  /// The largest chunk from this one down that costs no more than a hundredth, by the model, or a third of that where
  /// runs are of a part; at least a quarter of it.
  [[nodiscard]] Bytes expect_fine_enough(Bytes chunk) const {
    const double enough = fixed_.parts > 1 && !fixed_.ahead ? explained : far;
    const Bytes least = std::max({scaled(chunk, -2), ChunkModel::smallest_chunk, fixed_.min_chunk});
    while (scaled(chunk, -1) >= least && chunks_.filled_time(wire_, chunk) > enough * chunks_.pipelined_time(wire_)) {
      chunk = scaled(chunk, -1);
    }
    return chunk;
  }

  /// The chunk with which the time is expected to be short enough, if every byte less saves `slope` seconds; the
  /// smallest that is affordable where none is, and at least half as large as the best so far.
  [[nodiscard]] Bytes expect_enough(double slope) const {
    Bytes chunk = scaled(best_.chunk, -1);
    for (int step = 2; step <= 4; ++step) {
      const double saved = slope * static_cast<double>(best_.chunk.count - chunk.count);
      const double factor = hops_of(chunk) + hops_ > usual_hops ? far : close;
      const double wanted = std::max(factor * chunks_.min_time(wire_), chunks_.pipelined_time(wire_));
      if (seconds() - saved <= wanted || !leaves_room(scaled(best_.chunk, -step))) break;
      chunk = scaled(best_.chunk, -step);
    }
    return chunk;
  }

  [[nodiscard]] static Bytes scaled(Bytes chunk, int step) {
    return {step > 0 ? chunk.count << step : chunk.count >> -step};
  }

  const ChunkModel& chunks_;
  Bytes size_;
  Bytes wire_;  // what goes over links for it
  const FixedPacing& fixed_;
  const EvaluatePacing& evaluate_;
  RunReport best_;
  std::vector<Pacing> runs_;
  struct Guess {
    Pacing pacing;
    std::optional<Result<std::optional<RunReport>>> report;
  };
  std::vector<Guess> guesses_;
  double hops_ = 0;                                             // of all runs so far
  double of_others_ = std::numeric_limits<double>::infinity();  // what the best of other schedules takes
  std::uint32_t ahead_quarters_ = 4;                            // of the model's measure
  bool has_tried_steps_ = false;
  bool has_left_steps_ = false;  // for smaller chunks
};

}  // namespace

FixedPacing fixed_pacing(const Schedule& schedule, Bytes size, const FixedPacing& given) {
  if (given.chunk || given.ahead || !schedule.pacing || schedule.pacing->size != size) return given;
  FixedPacing fixed = given;
  fixed.chunk = schedule.pacing->chunk;
  fixed.ahead = schedule.pacing->ahead;
  return fixed;
}

bool exceeds_hop_budget(const ChunkModel& chunks, Bytes size) { return chunks.chunk_hops(size, size) > dear_hops; }

Pacing first_pacing(const ChunkModel& chunks, Bytes size, const FixedPacing& fixed) {
  const Bytes cheap = chunks.smallest_within(size, first_hops);
  const Bytes chosen = fixed.chunk.value_or(std::max(chunks.choose(size), cheap));
  return {std::max(chosen, fixed.min_chunk), fixed.ahead.value_or(0)};
}

Result<RunReport> find_best_pacing(const ChunkModel& chunks, Bytes size, const FixedPacing& fixed,
                                   const EvaluatePacing& evaluate) {
  auto best = Search(chunks, size, fixed, evaluate).run(std::nullopt);
  if (!best) return tl::unexpected(best.error());
  ESPALIER_CHECK(best->has_value(), "without a deadline nothing is given up");
  return **std::move(best);
}

Picoseconds latest_beside(Picoseconds best_of_others) { return {2 * best_of_others.count}; }

Result<std::optional<RunReport>> find_best_pacing_beside(Picoseconds best_of_others, const ChunkModel& chunks,
                                                         Bytes size, const FixedPacing& fixed,
                                                         const EvaluatePacing& evaluate) {
  return Search(chunks, size, fixed, evaluate).run(best_of_others);
}

}  // namespace espalier::planners
