#include "tests/support/networks/compact_optimum.h"

#include <gtest/gtest.h>

#include <ClpSimplex.hpp>
#include <vector>

namespace espalier::test {
namespace {

struct Term {
  int column;
  double value;
};

/// Rows and columns as they come; all columns are at least zero.
class Program {
 public:
  int add_column() { return columns_++; }
  void add_row(const std::vector<Term>& terms, double least, double most) {
    for (const Term& term : terms) {
      rows_of_.push_back(static_cast<int>(least_.size()));
      columns_of_.push_back(term.column);
      values_.push_back(term.value);
    }
    least_.push_back(least);
    most_.push_back(most);
  }
  void add_equal(const std::vector<Term>& terms) { add_row(terms, 0, 0); }
  void add_at_most(const std::vector<Term>& terms, double most) { add_row(terms, -COIN_DBL_MAX, most); }

  /// The largest value of a column.
  [[nodiscard]] double maximum(int column) const {
    CoinPackedMatrix matrix(false, rows_of_.data(), columns_of_.data(), values_.data(),
                            static_cast<int>(values_.size()));
    matrix.setDimensions(static_cast<int>(least_.size()), columns_);
    const std::vector<double> zero(static_cast<std::size_t>(columns_), 0);
    const std::vector<double> infinite(static_cast<std::size_t>(columns_), COIN_DBL_MAX);
    std::vector<double> objective = zero;
    objective[static_cast<std::size_t>(column)] = 1;
    ClpSimplex clp;
    clp.setLogLevel(0);
    clp.loadProblem(matrix, zero.data(), infinite.data(), objective.data(), least_.data(), most_.data());
    clp.setOptimizationDirection(-1);
    clp.primal();
    EXPECT_EQ(clp.status(), 0);
    return clp.objectiveValue();
  }

 private:
  int columns_ = 0;
  std::vector<int> rows_of_, columns_of_;
  std::vector<double> values_, least_, most_;
};

/// Bytes per second in the program's unit.
constexpr double rate_unit = 1e9;

/// One collective's program on one topology. A flow is a column per link.
class CompactProgram {
 public:
  CompactProgram(const Topology& topology, const Collective& collective)
      : topology_(topology), collective_(collective), over_(topology.link_count()) {}

  double time_per_byte() {
    const int rate = program_.add_column();
    const bool inward = reduces(collective_.kind) || collective_.kind == CollectiveKind::scatter;
    if (collective_.kind == CollectiveKind::all_reduce) {
      const std::vector<int> roots = add_roots(rate);
      add_trees(roots, false);
      add_trees(roots, true);
    } else if (collective_.kind == CollectiveKind::gather || collective_.kind == CollectiveKind::scatter) {
      add_flow_to_root(rate, inward);
    } else {
      add_trees(std::vector<int>(rank_count(), rate), inward);
    }
    add_capacities();
    const bool is_whole = collective_.kind == CollectiveKind::all_reduce || !has_shards(collective_.kind);
    const double bytes = program_.maximum(rate) * rate_unit;
    return 1 / (is_whole ? bytes : bytes * static_cast<double>(collective_.share_sum()));
  }

 private:
  [[nodiscard]] std::size_t rank_count() const { return topology_.rank_count(); }
  /// What a rank roots of one unit of its rate.
  [[nodiscard]] double share_of(std::size_t rank) const {
    if (collective_.kind == CollectiveKind::all_reduce) return 1;
    if (!has_shards(collective_.kind)) return Rank(rank) == collective_.root ? 1 : 0;
    return static_cast<double>(collective_.share_of(Rank(rank)));
  }
  [[nodiscard]] std::size_t tail(std::size_t link, bool inward) const {
    const Link& of = topology_.link(LinkId(link));
    return (inward ? of.head : of.tail).index();
  }
  [[nodiscard]] std::size_t head(std::size_t link, bool inward) const { return tail(link, !inward); }
  [[nodiscard]] Rank rank_at(std::size_t node) const { return topology_.rank_of(NodeId(node)); }

  /// A column per rank, what it roots; together they are the rate.
  std::vector<int> add_roots(int rate) {
    std::vector<int> roots;
    std::vector<Term> sum = {{rate, -1}};
    for (std::size_t rank = 0; rank < rank_count(); ++rank) {
      roots.push_back(program_.add_column());
      sum.push_back({roots.back(), 1});
    }
    program_.add_equal(sum);
    return roots;
  }

  /// A column per link that a flow from `source` may use: links out of other ranks and into itself are none.
  std::vector<int> add_flow_from(std::size_t source, bool inward) {
    std::vector<int> columns(topology_.link_count(), -1);
    std::vector<std::vector<Term>> at(topology_.node_count());
    for (std::size_t link = 0; link < columns.size(); ++link) {
      const Rank from = rank_at(tail(link, inward));
      if (!from.is_none() && from != Rank(source)) continue;
      if (rank_at(head(link, inward)) == Rank(source)) continue;
      columns[link] = program_.add_column();
      over_[link].push_back({columns[link], 1});
      at[tail(link, inward)].push_back({columns[link], -1});
      at[head(link, inward)].push_back({columns[link], 1});
    }
    for (std::size_t node = 0; node < at.size(); ++node) {
      if (rank_at(NodeId(node).index()).is_none()) program_.add_equal(at[node]);
    }
    return columns;
  }

  /// Trees of every rank's weight, by Edmonds' theorem on what goes from rank to rank.
  void add_trees(const std::vector<int>& weights, bool inward) {
    const std::size_t n = rank_count();
    std::vector<std::vector<std::vector<Term>>> room(n, std::vector<std::vector<Term>>(n));
    for (std::size_t u = 0; u < n; ++u) {
      const std::vector<int> columns = add_flow_from(u, inward);
      for (std::size_t link = 0; link < columns.size(); ++link) {
        const Rank to = rank_at(head(link, inward));
        if (columns[link] >= 0 && !to.is_none()) room[u][to.index()].push_back({columns[link], 1});
      }
    }
    for (std::size_t target = 0; target < n; ++target) {
      std::vector<std::vector<Term>> at(n);
      for (std::size_t u = 0; u < n; ++u) {
        at[u].push_back({weights[u], share_of(u)});
        for (std::size_t v = 0; v < n; ++v) {
          if (u == v || u == target) continue;
          const int column = program_.add_column();
          at[u].push_back({column, -1});
          at[v].push_back({column, 1});
          std::vector<Term> within = room[u][v];
          for (Term& term : within) term.value = -1;
          within.push_back({column, 1});
          program_.add_at_most(within, 0);
        }
      }
      for (std::size_t v = 0; v < n; ++v) {
        if (v != target) program_.add_equal(at[v]);
      }
    }
  }

  /// All shards to the root, which any rank passes on.
  void add_flow_to_root(int rate, bool inward) {
    std::vector<std::vector<Term>> at(topology_.node_count());
    for (std::size_t link = 0; link < topology_.link_count(); ++link) {
      const int column = program_.add_column();
      over_[link].push_back({column, 1});
      at[tail(link, inward)].push_back({column, -1});
      at[head(link, inward)].push_back({column, 1});
    }
    for (std::size_t node = 0; node < at.size(); ++node) {
      const Rank rank = rank_at(node);
      if (rank == collective_.root) continue;
      if (!rank.is_none()) at[node].push_back({rate, share_of(rank.index())});
      program_.add_equal(at[node]);
    }
  }

  void add_capacities() {
    const auto add = [&](const std::vector<Term>& terms, std::int64_t rate) {
      program_.add_at_most(terms, static_cast<double>(rate) / rate_unit);
    };
    for (std::size_t link = 0; link < over_.size(); ++link) {
      add(over_[link], topology_.link(LinkId(link)).bandwidth().bytes_per_second);
    }
    for (std::size_t node = 0; node < topology_.node_count(); ++node) {
      const std::int64_t backplane = topology_.node(NodeId(node)).bandwidth.bytes_per_second;
      if (backplane == 0) continue;
      std::vector<Term> terms;
      for (std::size_t link = 0; link < over_.size(); ++link) {
        const bool counts = head(link, false) == node || (tail(link, false) == node && !rank_at(node).is_none());
        if (counts) terms.insert(terms.end(), over_[link].begin(), over_[link].end());
      }
      add(terms, backplane);
    }
  }

  const Topology& topology_;
  const Collective& collective_;
  Program program_;
  std::vector<std::vector<Term>> over_;  ///< By link: all that passes it.
};

}  // namespace

double compact_optimum(const Topology& topology, const Collective& collective) {
  return CompactProgram(topology, collective).time_per_byte();
}

}  // namespace espalier::test
