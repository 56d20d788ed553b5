#pragma once

// Tested by: tests/options/options_test.py

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "forecast/measured_errors.h"
#include "forecast/software.h"
#include "topology/topology.h"

namespace espalier::cli {

/// The classes that ship with the command; none where their file is missing. Errors: as MeasuredErrors::read.
Result<std::shared_ptr<const forecast::MeasuredErrors>> shipped_errors();

/// What is known of errors of NCCL's predictions for one collective, size by size; nothing without a profile.
struct CallErrors {
  std::shared_ptr<const forecast::MeasuredErrors> classes;
  std::string profile;
  std::vector<Bytes> sizes;
  std::vector<forecast::ErrorRange> by_size;  ///< They point into `classes`.

  /// Of what ran at the size of this number under that name.
  [[nodiscard]] forecast::ErrorRange at(std::size_t size, const std::string& algorithm) const;
};

/// Where measurements of NCCL lie beside predictions, as its profile's classes say; `software` may be null, `version`
/// is of NCCL, where one is named, `gpu` the machine's (Machine::gpu).
Result<CallErrors> find_errors(const Topology& topology, const Collective& collective, std::span<const Bytes> sizes,
                               const forecast::Software* software, const std::string& version, const std::string& gpu);

/// "nccl from 1 MiB to 64 MiB: nine in ten measurements at 0.84 to 1.29 of it (20 points)", one for each class, and
/// where none of the algorithms is NCCL's before it that these are not measured. None without a profile.
std::vector<std::string> errors_sentences(const CallErrors& errors, std::span<const std::string> algorithms);
/// The same as lines under a table.
std::string errors_text(const CallErrors& errors, std::span<const std::string> algorithms);

/// {"low", "high", "part", "points", "systems", "held", "outside"} of a predicted time; {"outside"} where nothing like
/// it was measured.
nlohmann::ordered_json range_json(const forecast::ErrorRange& range, double seconds);

/// Columns "low (us)", "high (us)" and "outside", and their cells for a predicted time.
void add_range_columns(Table& table, const std::string& of = {});
void add_range_cells(std::vector<std::string>& cells, const forecast::ErrorRange& range, double seconds);

}  // namespace espalier::cli
