#pragma once

// Tested by: tests/unit/scenario/workload/averaging_test.cpp

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "scenario/workload/job.h"
#include "scenario/workload/mixing.h"

namespace espalier::scenario {

/// How the ranks of a group average their vectors.
enum class AveragingKind : std::uint8_t {
  all_reduce,
  /// Numbers of 8 bits with a scale for each part: all_to_all of the parts, which their ranks add up, and all_gather.
  /// Source: H. Tang et al., "1-bit Adam", ICML 2021 (compressed all-reduce).
  int8,
  /// The vector as a matrix is sent as P (rows x r) and Q (columns x r): two all_reduces, one behind the other.
  /// Source: T. Vogels et al., "PowerSGD", NeurIPS 2019.
  low_rank,
  gossip,  ///< Rounds of messages between neighbours (mixing.h).
};

struct Averaging {
  AveragingKind kind = AveragingKind::all_reduce;
  std::int64_t low_rank = 0;  ///< r.
  MixingGraph graph = MixingGraph::network;
  std::int64_t rounds = 0;        ///< Of gossip; 0: as many as `accuracy_ppm` needs.
  std::int32_t accuracy_ppm = 0;  ///< The part of the distance to the mean that may be left, in millionths.
};

/// The most rounds of one gossip.
inline constexpr std::int64_t max_gossip_rounds = 1'000'000;

/// Rows and columns of the matrices that a vector consists of, each added up. Zero: the vector is one matrix, as square
/// as may be.
struct MatrixSizes {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

/// One averaging of one group, as it was added to a job: the tasks [first, end).
struct AveragedVector {
  LabelId label;
  GroupId group;
  std::size_t first = 0;
  std::size_t end = 0;
  std::int64_t rounds = 0;  ///< Of gossip.
  double spectral_gap = 0;  ///< Of gossip.
};

/// Adds averagings of one kind to a job.
class Averager {
 public:
  /// Job and topology must outlive it.
  Averager(Job& job, const Topology& topology, const Averaging& averaging, std::size_t task_limit = max_tasks)
      : job_(job), topology_(topology), averaging_(averaging), task_limit_(task_limit) {}

  [[nodiscard]] bool is_all_reduce() const { return averaging_.kind == AveragingKind::all_reduce; }

  /// What an all_reduce call would do, by this kind's calls. Each member's first tasks wait for `after` (by rank of the
  /// group); gives each member's last one. Compressed calls are on `stream`, messages on none. `times`: how many such
  /// calls are to be added, this one included.
  /// Errors: infeasible when neighbours do not reach each other; invalid_input when nothing would be saved; too_large,
  /// also where only all `times` together are.
  Result<std::vector<TaskId>> add(const Call& call, std::uint16_t stream, const std::vector<std::vector<TaskId>>& after,
                                  const MatrixSizes& sizes = {}, std::int64_t times = 1);

  [[nodiscard]] const std::vector<AveragedVector>& added() const { return added_; }

 private:
  using Ends = std::vector<std::vector<TaskId>>;

  void add_all(const Call& call, CollectiveKind kind, Bytes size, std::uint8_t element, std::uint16_t stream,
               Ends& ends);
  Result<void> add_int8(const Call& call, std::uint16_t stream, Ends& ends);
  Result<void> add_low_rank(const Call& call, std::uint16_t stream, const MatrixSizes& sizes, Ends& ends);
  Result<void> add_gossip(const Call& call, AveragedVector& vector, Ends& ends, std::int64_t times);
  void add_round(const Call& call, const Mixing& mixing, Ends& ends);

  Job& job_;
  const Topology& topology_;
  Averaging averaging_;
  std::size_t task_limit_;
  std::map<GroupId, Mixing> mixings_;
  std::vector<AveragedVector> added_;
};

/// An entry of a scenario that averages otherwise than by all_reduce, with all that it added.
struct AveragedUse {
  Averaging averaging;
  std::vector<AveragedVector> vectors;
};

/// "int8", "rank 4", "gossip".
std::string describe(const Averaging& averaging);

}  // namespace espalier::scenario
