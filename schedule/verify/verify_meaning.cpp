#include <fmt/format.h>

#include <bit>
#include <optional>
#include <vector>

#include "schedule/relays.h"
#include "schedule/slice_moves.h"
#include "schedule/verify/breach_list.h"

namespace espalier {
namespace {

/// Remembers which transfers a rule was reported for, so that a run of slices gives one breach.
class ReportedTransfers {
 public:
  explicit ReportedTransfers(std::size_t count) : count_(count) {}
  /// True the first time.
  bool note(TransferId transfer) {
    if (seen_.empty()) seen_.resize(count_);
    const bool is_new = !seen_[transfer.index()];
    seen_[transfer.index()] = true;
    return is_new;
  }

 private:
  std::size_t count_;
  std::vector<bool> seen_;
};

/// What the messages of S5 to S7 need.
struct Replay {
  const Schedule& schedule;
  const Topology& topology;
  BreachList& breaches;
  SliceMoves moves;
  ReportedTransfers reported;
  ReportedTransfers reported_relays;  ///< By S9.

  [[nodiscard]] const Collective& collective() const { return schedule.collective; }
  [[nodiscard]] std::size_t rank_count() const { return collective().rank_count; }
  [[nodiscard]] const std::string& name(std::size_t end) const { return end_name(schedule, topology, Rank(end)); }
  [[nodiscard]] bool must_not_relay(std::size_t end) const {
    return end < rank_count() && !topology.may_relay(Rank(end));
  }
  void report_relaying(TransferId id, std::size_t slice, std::size_t src, std::size_t bringer) {
    if (!reported_relays.note(id)) return;
    breaches.add(Rule::S9, id, [&] {
      return fmt::format("{} must not relay and sends on what {} brought to slice {}", name(src), name(bringer), slice);
    });
  }
};

/// Calls check(rank) for every rank that the collective promises a slice.
template <class Check>
void for_each_receiver(const Replay& replay, std::size_t slice, const Check& check) {
  const Rank only = receiver_of(replay.collective(), replay.schedule.slices[slice].ranks());
  if (!only.is_none()) return check(only.index());
  for (std::size_t r = 0; r < replay.rank_count(); ++r) check(r);
}

/// Collectives that only copy: each slice has one value that one rank brings, so a rank holds it or does not.
void replay_copies(Replay& replay) {
  std::vector<std::uint8_t> holds(end_count(replay.schedule));
  for (std::size_t s = 0; s < replay.schedule.slices.size(); ++s) {
    const std::size_t bringer = bringer_of(replay.collective(), replay.schedule.slices[s].ranks()).index();
    holds[bringer] = 1;
    for (const TransferId id : replay.moves.of(s)) {
      const Transfer& transfer = replay.schedule.transfers[id.index()];
      const std::size_t src = replay.schedule.src(transfer).index();
      const std::size_t dst = replay.schedule.dst(transfer).index();
      if (holds[src] == 0 && replay.reported.note(id)) {
        replay.breaches.add(Rule::S5, id,
                            [&] { return fmt::format("{} does not hold slice {} yet", replay.name(src), s); });
      }
      if (src != bringer && replay.must_not_relay(src)) replay.report_relaying(id, s, src, bringer);
      holds[dst] = holds[src];
    }
    for_each_receiver(replay, s, [&](std::size_t r) {
      if (holds[r] != 0) return;
      replay.breaches.add(Rule::S7, TransferId(),
                          [&] { return fmt::format("{} does not end with slice {}", replay.name(r), s); });
    });
    holds[bringer] = 0;
    for (const TransferId id : replay.moves.of(s)) {
      holds[replay.schedule.dst(replay.schedule.transfers[id.index()]).index()] = 0;
    }
  }
}

/// Which ranks' contributions each rank's or relay's value of one slice holds: a bit per pair.
class Contributions {
 public:
  using Word = std::uint64_t;

  Contributions(std::size_t rank_count, std::size_t end_count)
      : rank_count_(rank_count), words_((rank_count + 63) / 64), bits_(end_count * words_) {}

  /// Every rank holds its own, a relay none.
  void reset() {
    std::ranges::fill(bits_, Word{0});
    for (std::size_t r = 0; r < rank_count_; ++r) row(r)[r / 64] |= Word{1} << (r % 64);
  }

  /// Adds what a rank brought, as `reduce` adds what it holds.
  std::size_t reduce_input(std::size_t src, std::size_t dst) {
    Word& into = row(dst)[src / 64];
    const Word bit = Word{1} << (src % 64);
    const bool is_second = (into & bit) != 0;
    into |= bit;
    return is_second ? src : rank_count_;
  }

  void copy(std::size_t src, std::size_t dst) { std::copy_n(row(src), words_, row(dst)); }

  /// Adds; the first rank whose contribution both held, or rank_count when there is none.
  std::size_t reduce(std::size_t src, std::size_t dst) {
    const Word* from = row(src);
    Word* into = row(dst);
    Word both = 0;  // No branch in the loops, so that they work on many words at once.
    for (std::size_t w = 0; w < words_; ++w) both |= from[w] & into[w];
    const std::size_t first_common = both == 0 ? rank_count_ : first_of_both(from, into);
    for (std::size_t w = 0; w < words_; ++w) into[w] |= from[w];
    return first_common;
  }

  /// The first rank but this one whose contribution it holds; rank_count when there is none.
  [[nodiscard]] std::size_t first_other(std::size_t rank) const {
    for (std::size_t w = 0; w < words_; ++w) {
      Word others = row(rank)[w];
      if (w == rank / 64) others &= ~(Word{1} << (rank % 64));
      if (others != 0) return w * 64 + static_cast<std::size_t>(std::countr_zero(others));
    }
    return rank_count_;
  }

  [[nodiscard]] std::size_t count(std::size_t rank) const {
    std::size_t sum = 0;
    for (std::size_t w = 0; w < words_; ++w) sum += static_cast<std::size_t>(std::popcount(row(rank)[w]));
    return sum;
  }

  /// The first rank whose contribution is missing. Requires: there is one.
  [[nodiscard]] std::size_t first_missing(std::size_t rank) const {
    std::size_t w = 0;
    while (row(rank)[w] == ~Word{0}) ++w;
    return w * 64 + static_cast<std::size_t>(std::countr_one(row(rank)[w]));
  }

 private:
  static std::size_t first_of_both(const Word* a, const Word* b) {
    std::size_t w = 0;
    while ((a[w] & b[w]) == 0) ++w;
    return w * 64 + static_cast<std::size_t>(std::countr_zero(a[w] & b[w]));
  }

  [[nodiscard]] Word* row(std::size_t rank) { return bits_.data() + rank * words_; }
  [[nodiscard]] const Word* row(std::size_t rank) const { return bits_.data() + rank * words_; }

  std::size_t rank_count_;
  std::size_t words_;
  std::vector<Word> bits_;
};

/// Slices whose contributions are added up along trees: what a rank holds is added to another one's once, and then at
/// most replaced. So no two that were not added yet hold a contribution in common, and counting them is enough.
class TreeSums {
 public:
  explicit TreeSums(const Replay& replay) : replay_(replay), held_(end_count(replay.schedule)) {
    for (std::size_t end = 0; end < held_.size(); ++end) held_[end] = at_start(end);
  }

  /// Whether the slice is one and keeps its promise. Of all others nothing is known. Cost: its moves and its receivers.
  bool pass(std::size_t slice) {
    bool passes = true;
    for (const TransferId id : replay_.moves.of(slice)) {
      if (!move(replay_.schedule.transfers[id.index()])) {
        passes = false;
        break;
      }
    }
    for_each_receiver(replay_, slice,
                      [&](std::size_t rank) { passes = passes && held_[rank].count == replay_.rank_count(); });
    for (const TransferId id : replay_.moves.of(slice)) {
      const Transfer& transfer = replay_.schedule.transfers[id.index()];
      for (const Rank end : {replay_.schedule.src(transfer), replay_.schedule.dst(transfer)}) {
        held_[end.index()] = at_start(end.index());
      }
    }
    return passes;
  }

 private:
  struct Held {
    std::size_t count = 0;   ///< Contributions.
    bool is_shared = false;  ///< Another one holds them as well, or may.
    bool is_own = true;
  };

  [[nodiscard]] Held at_start(std::size_t end) const { return {end < replay_.rank_count() ? 1U : 0U, false, true}; }

  bool move(const Transfer& transfer) {
    const std::size_t from = replay_.schedule.src(transfer).index();
    Held& src = held_[from];
    Held& dst = held_[replay_.schedule.dst(transfer).index()];
    if (transfer.reads_input != 0 || src.count == 0 || (!src.is_own && replay_.must_not_relay(from))) return false;
    dst.is_own = false;
    if (transfer.action() == Action::copy) {
      dst.count = src.count;
      dst.is_shared = true;
      return true;
    }
    if (src.is_shared || dst.is_shared || &src == &dst) return false;
    dst.count += src.count;
    src.is_shared = true;
    return true;
  }

  const Replay& replay_;
  std::vector<Held> held_;  // by end
};

/// Collectives that reduce: every rank brings a contribution to every slice, so only a relay can hold nothing (S5).
void replay_reductions(Replay& replay) {
  TreeSums trees(replay);
  std::optional<Contributions> all;
  for (std::size_t s = 0; s < replay.schedule.slices.size(); ++s) {
    if (trees.pass(s)) continue;
    if (end_count(replay.schedule) > max_ranks) {
      replay.breaches.add(Rule::S6, TransferId(), [&] {
        return fmt::format("slice {} is not added up along a tree, as sums of more than {} ranks must be", s,
                           max_ranks);
      });
      continue;
    }
    if (!all) all.emplace(replay.rank_count(), end_count(replay.schedule));
    Contributions& held = *all;
    held.reset();
    for (const TransferId id : replay.moves.of(s)) {
      const Transfer& transfer = replay.schedule.transfers[id.index()];
      const std::size_t src = replay.schedule.src(transfer).index();
      const std::size_t dst = replay.schedule.dst(transfer).index();
      const bool reads_input = transfer.reads_input != 0;
      if (src >= replay.rank_count() && !reads_input && held.count(src) == 0 && replay.reported.note(id)) {
        replay.breaches.add(Rule::S5, id,
                            [&] { return fmt::format("{} does not hold slice {} yet", replay.name(src), s); });
      }
      if (reads_input && src >= replay.rank_count()) {
        if (!replay.reported.note(id)) continue;
        replay.breaches.add(Rule::S5, id, [&] { return fmt::format("{} brings nothing", replay.name(src)); });
        continue;
      }
      if (replay.must_not_relay(src) && !reads_input) {
        const std::size_t other = held.first_other(src);
        if (other != replay.rank_count()) replay.report_relaying(id, s, src, other);
      }
      if (transfer.action() == Action::copy) {
        held.copy(src, dst);
        continue;
      }
      const std::size_t twice = reads_input ? held.reduce_input(src, dst) : held.reduce(src, dst);
      if (twice == replay.rank_count() || !replay.reported.note(id)) continue;
      replay.breaches.add(Rule::S6, id, [&] {
        return fmt::format("it adds the contribution of {} to slice {} a second time", replay.name(twice), s);
      });
    }
    for_each_receiver(replay, s, [&](std::size_t r) {
      const std::size_t count = held.count(r);
      if (count == replay.rank_count()) return;
      replay.breaches.add(Rule::S7, TransferId(), [&] {
        return fmt::format("{} ends with {} of {} contributions to slice {}; that of {} is missing", replay.name(r),
                           count, replay.rank_count(), s, replay.name(held.first_missing(r)));
      });
    });
  }
}

}  // namespace

void verify_meaning(const Schedule& schedule, const Topology& topology, BreachList& breaches) {
  Replay replay{schedule,
                topology,
                breaches,
                SliceMoves(schedule),
                ReportedTransfers(schedule.transfers.size()),
                ReportedTransfers(schedule.transfers.size())};
  if (reduces(schedule.collective.kind)) {
    replay_reductions(replay);
  } else {
    replay_copies(replay);
  }
}

}  // namespace espalier
