#pragma once

// Tested by: tests/unit/cli/calibration/profile_calibration_test.cpp

#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "cli/flags/inputs.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/stop.h"
#include "cli/output/console.h"
#include "compare/fit/fit_values.h"
#include "compare/read/measurements.h"
#include "planners/chooser.h"
#include "profile/profile.h"

namespace espalier::cli {

/// A table to calibrate a profile from, as the command line names it: "x2.txt", of the verb's machine, or
/// "x2.txt@my/boxes.yaml,launch=one-process,algorithm=nccl/ring,protocol=simple,version=2.4,ranks=gpu[0-11]".
struct TableSource {
  std::string file;
  std::string machine;                    ///< Empty: the verb's.
  std::string launch;                     ///< Empty: the profile's first.
  std::string algorithm = "nccl";         ///< Which of NCCL's was forced; "nccl": its own choice.
  std::optional<sim::Protocol> protocol;  ///< Which was forced.
  std::uint32_t version = 0;              ///< Of NCCL, without what came later (version_number); 0: the latest.
  std::string ranks;
};

/// Errors: invalid_input for an option that is not known.
Result<TableSource> parse_table_source(const std::string& text);

/// One row of a table, with what runs there under the profile.
struct ProfileRow {
  std::size_t table = 0;
  std::string collective;
  Bytes size;  ///< As measured.
  Bytes near;  ///< As predicted: whole elements for every rank.
  std::string planner;
  profile::Shape shape = profile::Shape::ring;  ///< Whose costs it has.
  sim::Protocol protocol = sim::Protocol::simple;
  Bytes chunk;  ///< As the row says; zero: as the software picks.
  double seconds = 0;
  bool is_launch_bound = false;  ///< Takes as long as the smallest message: tells of launch, base and hops alone.
};

/// Tables on their machines, planned once, and predicted under changing values of one profile. What runs at each size
/// is the algorithm that the row names, with its chunk; where it names none, what NCCL picks. The protocol, and NCCL's
/// pick, are found with the given profile and held: its tuner does not know the values that are fitted.
class ProfileCalibration {
 public:
  /// Adds a table with its rows. Errors: those of reading, planning and predicting it; rows of another number of ranks;
  /// an algorithm of a row that is not planned there.
  OrStop<void> add(const Console& console, const TableSource& source, const TopologyFlags& machine,
                   const std::string& collective, const profile::Profile& given);

  [[nodiscard]] const std::vector<ProfileRow>& rows() const { return rows_; }
  /// The table's file and its machine's name.
  [[nodiscard]] const std::string& file_of(std::size_t table) const { return files_[table]; }
  [[nodiscard]] std::vector<compare::HoldOutPart> parts_by_table() const;
  [[nodiscard]] std::vector<compare::HoldOutPart> parts_by_machine() const;
  /// Rows that are launch-bound say the same many times over; together they count as this many.
  static constexpr double counted_launch_bound = 4;
  [[nodiscard]] std::vector<double> importance() const;
  [[nodiscard]] std::vector<double> measured() const;

  /// Seconds of rows under a profile. Rows whose costs have not changed are not simulated again.
  Result<std::vector<double>> predict(const profile::Profile& profile, std::span<const std::size_t> which);

 private:
  struct Planned {
    Topology topology;
    planners::Candidates candidates;
    std::size_t machines = 1;
  };
  struct Table {
    TableSource source;
    std::string machine;
    std::map<std::string, Planned> planned;  ///< By collective.
  };

  /// The rows of one collective, with what they take under the given profile.
  OrStop<std::vector<double>> add_rows(const Console& console, Planned& planned, const TableSource& source,
                                       const compare::Measurements& measured, const std::string& collective,
                                       const profile::Profile& given, const profile::Profile& as_of);
  void mark_launch_bound(std::size_t first, const std::vector<double>& predicted);

  std::list<Table> tables_;
  std::vector<std::string> files_;
  std::vector<ProfileRow> rows_;
  std::vector<std::map<std::string, double>> known_;  ///< By row: seconds after launch and base, by what they hang on.
};

}  // namespace espalier::cli
