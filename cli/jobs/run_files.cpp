#include "cli/jobs/run_files.h"

#include <algorithm>

#include "cli/flags/inputs.h"

namespace espalier::cli {
namespace {

/// Whether rows of a table do not name their collective, or it is this one, which bandwidths may have told.
bool takes_collective(const compare::RunFile& run, const std::string& collective) {
  const auto* const measured = std::get_if<compare::Measurements>(&run);
  return measured != nullptr && std::ranges::any_of(measured->rows, [&](const compare::Measurement& row) {
           return row.collective.empty() || row.collective == collective;
         });
}

/// Whether it is of alltoallv_perf.
bool takes_traffic(const compare::RunFile& run) {
  const auto* const measured = std::get_if<compare::Measurements>(&run);
  return measured != nullptr && measured->origin == "nccl-tests" && !measured->shares.empty();
}

}  // namespace

OrStop<NamedRuns> load_runs(const Console& console, const std::vector<std::string>& paths,
                            const std::string& collective, const std::string& traffic) {
  if (!collective.empty()) {
    if (const auto known = parse_collective(collective); !known) return usage(known.error());
  }
  NamedRuns files;
  bool is_needed = collective.empty();
  for (const std::string& path : paths) {
    const auto text = read_whole(console, path);
    if (!text) return stop(text.error());
    const std::string name = path == "-" ? "<stdin>" : path;
    auto run = compare::read_run(*text, name, compare::NcclTestsHints{{}, traffic});
    if (run && !collective.empty() && takes_collective(*run, collective)) {
      is_needed = true;
      run = compare::read_run(*text, name, compare::NcclTestsHints{collective, traffic});
    }
    if (!run) return stop(run.error());
    files.emplace_back(path, *std::move(run));
  }
  if (!traffic.empty() && std::ranges::none_of(files, takes_traffic, &NamedRuns::value_type::second)) {
    return usage({ErrorCode::invalid_input,
                  "--matrix does not apply: no file is of alltoallv_perf, or all blocks are equal",
                  "leave --matrix out"});
  }
  if (is_needed) return files;
  return usage({ErrorCode::invalid_input, "--collective does not apply: every file says itself what was measured",
                "leave --collective out"});
}

}  // namespace espalier::cli
