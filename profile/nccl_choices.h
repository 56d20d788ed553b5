#pragma once

// Tested by: tests/unit/profile/nccl_choices_test.cpp

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "planners/nccl/search/nccl_communicator.h"
#include "profile/profile.h"
#include "schedule/collective.h"

namespace espalier::profile {

/// One way in which NCCL may run a collective, with what its tuner counts for it: microseconds before the data, bytes
/// of S a microsecond after that, before corrections by size.
struct NcclWay {
  Shape shape = Shape::ring;
  sim::Protocol protocol = sim::Protocol::simple;
  double latency = 0;
  double bandwidth = 0;  ///< GB/s.
};

/// What the tuner takes for a size.
struct NcclChoice {
  NcclWay way;
  double seconds = 0;
  std::uint32_t channels = 1;  ///< That carry the call.
};

/// What NCCL's tuner makes of a communicator (tree, ring, NVLS, NVLSTree, PAT). Its constants are those of the
/// communicator's version.
/// Source: github.com/NVIDIA/nccl (June 2026), src/graph/tuning.cc, src/enqueue.cc, in 2.27.7 and 2.30.7.
class NcclChoices {
 public:
  NcclChoices(const planners::NcclCommunicator& communicator, CollectiveKind collective);

  /// All that are switched on, in the order in which NCCL prefers equals; empty for collectives that NCCL has no
  /// algorithms for (gather, scatter, all_to_all, send_recv).
  [[nodiscard]] const std::vector<NcclWay>& ways() const { return ways_; }
  /// Null where it is switched off.
  [[nodiscard]] const NcclWay* find(Shape shape, sim::Protocol protocol) const;
  [[nodiscard]] double seconds(const NcclWay& way, Bytes size, std::int64_t element_size) const;
  /// All ways at this size, quickest first.
  [[nodiscard]] std::vector<NcclChoice> rank(Bytes size, std::int64_t element_size) const;
  [[nodiscard]] std::uint32_t channels(const NcclWay& way, Bytes size, std::int64_t element_size) const;

 private:
  planners::NcclCommunicator of_;
  CollectiveKind collective_;
  std::vector<NcclWay> ways_;
};

/// Which NCCL a profile's tuner is of, on which GPUs.
planners::NcclEra era_of(const TunerModel& tuner);

/// What NCCL sets up here, by what a profile says of its GPUs; nothing where its rules are not known to hold.
std::optional<planners::NcclCommunicator> communicator_of(const Topology& topology, const TunerModel& tuner);

/// The same for many machines under one tuner, once for all that look alike to software that reads links. Several
/// threads may ask at once.
class KnownCommunicators {
 public:
  std::optional<planners::NcclCommunicator> find(const Topology& topology, const TunerModel& tuner);

 private:
  std::mutex mutex_;
  std::map<std::string, std::optional<planners::NcclCommunicator>> known_;  ///< By seen_text.
};

}  // namespace espalier::profile
