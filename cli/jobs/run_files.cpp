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

}  // namespace

OrStop<NamedRuns> load_runs(const Console& console, const std::vector<std::string>& paths,
                            const std::string& collective) {
  if (!collective.empty()) {
    if (const auto known = parse_collective(collective); !known) return usage(known.error());
  }
  NamedRuns files;
  bool is_needed = collective.empty();
  for (const std::string& path : paths) {
    const auto text = read_whole(console, path);
    if (!text) return stop(text.error());
    const std::string name = path == "-" ? "<stdin>" : path;
    auto run = compare::read_run(*text, name, compare::NcclTestsHints{});
    if (run && !collective.empty() && takes_collective(*run, collective)) {
      is_needed = true;
      run = compare::read_run(*text, name, compare::NcclTestsHints{collective});
    }
    if (!run) return stop(run.error());
    files.emplace_back(path, *std::move(run));
  }
  if (is_needed) return files;
  return usage({ErrorCode::invalid_input, "--collective does not apply: every file says itself what was measured",
                "leave --collective out"});
}

}  // namespace espalier::cli
