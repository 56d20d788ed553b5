#pragma once

// Tested by: tests/unit/compare/read/nccl_tests_test.cpp

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace espalier::compare {

/// Numbers of ranks that a file allows; zeros where it says nothing of them.
struct RankRange {
  std::uint32_t least = 0;
  std::uint32_t most = 0;

  [[nodiscard]] bool allows(std::size_t ranks) const { return most == 0 || (least <= ranks && ranks <= most); }
  friend bool operator==(const RankRange&, const RankRange&) = default;
};

/// One time of one collective at one size, measured or predicted: a row of a results document or of nccl-tests.
struct Measurement {
  std::string collective;                   ///< "all_reduce", ...; empty where neither the file nor its name says.
  std::uint32_t ranks = 0;                  ///< 0 where the file does not say.
  RankRange implied_ranks;                  ///< What its bandwidths allow, for where it does not.
  std::vector<std::uint32_t> members = {};  ///< The ranks that took part, by number, where the file says; empty: all.
  std::string root;                         ///< A rank's name or number; empty where there is none.
  Bytes size;                               ///< Message size S.
  std::string type;                         ///< Element type, as written; may be empty.
  std::string algorithm;                    ///< As asked for: "ring", "auto"; empty for nccl-tests, which does not say.
  std::string planner;                      ///< What ran, where `algorithm` is "auto"; may be empty.
  std::string plan;                         ///< The plan file that ran, where one was named; may be empty.
  Bytes chunk;                              ///< Largest chunk; 0 where the file does not say.
  double seconds = 0;  ///< The time; of nccl-tests the out-of-place one, or the in-place one where it is alone.
  std::optional<double> min_seconds;
  std::optional<double> p99_seconds;
  std::optional<double> in_place_seconds;
  std::optional<double> busbw;        ///< Bytes per second, as nccl-tests prints it: a file may not say its ranks.
  std::optional<std::int64_t> wrong;  ///< Wrong elements; nothing where the data was not checked.
  std::uint32_t run = 0;              ///< Which of the runs in one file, from 0.
  std::size_t line = 0;               ///< Where in the file, from 1.

  friend bool operator==(const Measurement&, const Measurement&) = default;
};

/// Whether a row may be of so many ranks, by what its file says or its bandwidths allow.
bool may_be_of(const Measurement& row, std::size_t ranks);
/// "24", "22 to 26", "at least 500"; empty where nothing is known.
std::string describe_ranks(const Measurement& row);

/// The rows of one file.
struct Measurements {
  std::string file;                   ///< As named by the caller.
  std::string origin;                 ///< "simulation", "run", "nccl-tests", "osu" ...
  std::string topology;               ///< Name of the topology; may be empty.
  std::vector<std::int64_t> shares;   ///< Of unequal shards, or a traffic matrix row by row; empty: equal.
  std::vector<Measurement> rows;      ///< In file order.
  std::vector<std::string> warnings;  ///< What a reader should know before trusting the rows, with file:line.
};

}  // namespace espalier::compare
