#include "planners/ring/disjoint_cycles.h"

#include <algorithm>
#include <bit>

#include "base/random.h"

namespace espalier::planners {

namespace {

using Mask = std::uint64_t;

Mask bit(std::size_t vertex) { return Mask{1} << vertex; }

class CycleSearch {
 public:
  CycleSearch(const ArcCounts& counts, std::size_t count, WorkBudget& work)
      : counts_(counts), vertices_(counts.size()), count_(count), work_(work) {
    all_ = vertices_ == 64 ? ~Mask{0} : bit(vertices_) - 1;
    heads_.assign(vertices_, 0);
    tails_.assign(vertices_, 0);
    for (std::size_t from = 0; from < vertices_; ++from) {
      for (std::size_t to = 0; to < vertices_; ++to) {
        if (from != to && counts_[from][to] > 0) open(from, to);
      }
    }
  }

  std::vector<std::vector<std::uint32_t>> run() {
    if (!enough_arcs()) return {};
    const auto size = static_cast<std::int64_t>(vertices_ * count_);
    for (std::uint64_t seed = 0; work_.left() > 0; ++seed) {
      random_ = Random(seed);
      // Unlucky first choices are cured by starting again; in between come longer attempts.
      attempt_ =
          WorkBudget(std::min(work_.left(), 64 * size * static_cast<std::int64_t>(seed % 8 == 7 ? seed + 1 : 1)));
      const std::int64_t allowed = attempt_.left();
      const bool over = start_cycle();
      work_.spend(allowed - std::max<std::int64_t>(attempt_.left(), 0));
      if (over) return cycles_;
      if (attempt_.left() >= 0) break;  // The whole search space was seen.
    }
    return {};
  }

 private:
  void open(std::size_t from, std::size_t to) {
    heads_[from] |= bit(to);
    tails_[to] |= bit(from);
  }

  void take(std::size_t from, std::size_t to) {
    if (--counts_[from][to] > 0) return;
    heads_[from] &= ~bit(to);
    tails_[to] &= ~bit(from);
  }

  void give_back(std::size_t from, std::size_t to) {
    ++counts_[from][to];
    open(from, to);
  }

  [[nodiscard]] bool enough_arcs() const {
    for (std::size_t v = 0; v < vertices_; ++v) {
      std::size_t out = 0;
      std::size_t in = 0;
      for (std::size_t other = 0; other < vertices_; ++other) {
        if (other == v) continue;
        out += counts_[v][other];
        in += counts_[other][v];
      }
      if (std::min(out, in) < count_) return false;
    }
    return true;
  }

  bool start_cycle() {
    if (cycles_.size() == count_) return true;
    std::vector<std::uint32_t> outer;
    std::swap(outer, path_);
    path_.push_back(0);
    const bool over = extend(0, all_ & ~bit(0));
    if (!over) std::swap(outer, path_);
    return over;
  }

  /// Goes on from `at`; `open` are the vertices that the cycle has not passed yet.
  bool extend(std::size_t at, Mask open) {
    if (!attempt_.spend()) return false;
    if (open == 0) return close(at);
    if (!can_finish(at, open)) return false;
    for (const std::uint32_t to : choices(at, open)) {
      take(at, to);
      path_.push_back(to);
      if (extend(to, open & ~bit(to))) return true;
      path_.pop_back();
      give_back(at, to);
      if (attempt_.left() < 0) return false;
    }
    return false;
  }

  bool close(std::size_t at) {
    if ((heads_[at] & bit(0)) == 0) return false;
    take(at, 0);
    cycles_.push_back(path_);
    if (start_cycle()) return true;
    cycles_.pop_back();
    give_back(at, 0);
    return false;
  }

  /// Every vertex ahead can be entered from where the cycle is or will be, and left for where it will be.
  [[nodiscard]] bool can_finish(std::size_t at, Mask open) const {
    if ((tails_[0] & open) == 0) return false;
    for (Mask left = open; left != 0; left &= left - 1) {
      const auto v = static_cast<std::size_t>(std::countr_zero(left));
      if ((tails_[v] & (open | bit(at))) == 0 || (heads_[v] & (open | bit(0))) == 0) return false;
    }
    return true;
  }

  /// Vertices with few arcs in left come first (Warnsdorff's rule); equal ones in random order.
  [[nodiscard]] std::vector<std::uint32_t> choices(std::size_t at, Mask open) {
    struct Choice {
      int ways_in;
      std::uint64_t random;
      std::uint32_t to;
    };
    std::vector<Choice> choices;
    for (Mask left = heads_[at] & open; left != 0; left &= left - 1) {
      const auto to = static_cast<std::uint32_t>(std::countr_zero(left));
      choices.push_back({std::popcount(tails_[to] & open), random_.next(), to});
    }
    std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return a.ways_in != b.ways_in ? a.ways_in < b.ways_in : a.random < b.random;
    });
    std::vector<std::uint32_t> vertices;
    for (const Choice& choice : choices) vertices.push_back(choice.to);
    return vertices;
  }

  ArcCounts counts_;
  std::size_t vertices_;
  std::size_t count_;
  WorkBudget& work_;
  WorkBudget attempt_;
  Random random_{0};
  Mask all_ = 0;
  std::vector<Mask> heads_;  ///< By vertex, where its arcs that are left lead.
  std::vector<Mask> tails_;
  std::vector<std::uint32_t> path_;
  std::vector<std::vector<std::uint32_t>> cycles_;
};

}  // namespace

std::vector<std::vector<std::uint32_t>> find_disjoint_cycles(const ArcCounts& counts, std::size_t count,
                                                             WorkBudget& work) {
  return CycleSearch(counts, count, work).run();
}

}  // namespace espalier::planners
