#include "python/bind/bind_compare.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <variant>

#include "compare/compare_results.h"
#include "compare/compare_timelines.h"
#include "compare/overlay_svg.h"
#include "compare/read/read_run.h"
#include "forecast/candidate_runs.h"
#include "forecast/entrants.h"
#include "forecast/measured_errors.h"
#include "forecast/question.h"
#include "forecast/size_curve.h"
#include "planners/graph/rank_groups.h"
#include "profile/read_profile.h"
#include "schedule/timeline/chrome_trace.h"

namespace espalier::python {
namespace {

compare::RunFile read_run_file(const std::string& path, const std::string& collective) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw ErrorRaised({ErrorCode::unavailable, "cannot read " + path, "name a file of a run"});
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return value_of(compare::read_run(text, path, {collective}));
}

compare::Measurements table_of(compare::RunFile run, const std::string& path) {
  if (const auto* timeline = std::get_if<Timeline>(&run)) return value_of(compare::measurements_of(*timeline, path));
  return std::get<compare::Measurements>(std::move(run));
}

py::dict row_of(const std::string& what, const std::string& name, const compare::Duration& duration) {
  py::dict row;
  row["what"] = what;
  row["name"] = name;
  row["a"] = duration.a.seconds();
  row["b"] = duration.b.seconds();
  row["error"] = duration.error();
  return row;
}

/// (rows, summary of their errors, notes) of two tables.
py::tuple compare_tables(const compare::Measurements& a, const compare::Measurements& b, const std::string& algorithm) {
  const auto comparison = value_of(compare::compare_results(a, b, algorithm));
  py::list rows;
  for (const compare::ComparedSize& size : comparison.sizes) {
    py::dict row;
    row["collective"] = size.collective;
    row["algorithm"] = size.algorithm;
    row["size"] = size.size.count;
    row["a"] = size.a;
    row["b"] = size.b;
    row["error"] = size.error;
    rows.append(row);
  }
  return py::make_tuple(rows, summary_of(comparison.errors), comparison.notes, "");
}

/// The same of two timelines, with a picture of both.
py::tuple compare_both_timelines(const Timeline& a, const Timeline& b) {
  std::ostringstream picture;
  value_of(compare::write_overlay_svg(picture, a, b));
  const compare::TimelineComparison comparison = compare::compare_timelines(a, b);
  py::list rows;
  rows.append(row_of("total", "", comparison.total));
  for (const compare::RankComparison& rank : comparison.ranks) {
    rows.append(row_of("finish", rank.name, rank.finish));
    rows.append(row_of("waiting", rank.name, rank.waiting));
  }
  for (const compare::LinkComparison& link : comparison.links) rows.append(row_of("busy", link.name, link.busy));
  return py::make_tuple(rows, summary_of(comparison.transfers.errors), comparison.notes, picture.str());
}

py::tuple compare_files(const std::string& a, const std::string& b, const std::string& collective,
                        const std::string& algorithm) {
  compare::RunFile first = read_run_file(a, collective);
  compare::RunFile second = read_run_file(b, collective);
  if (std::holds_alternative<Timeline>(first) && std::holds_alternative<Timeline>(second) && algorithm.empty()) {
    return compare_both_timelines(std::get<Timeline>(first), std::get<Timeline>(second));
  }
  return compare_tables(table_of(std::move(first), a), table_of(std::move(second), b), algorithm);
}

void save_trace(const sim::Report& report, const std::string& path) {
  if (!report.timeline) {
    throw ErrorRaised({ErrorCode::invalid_input, "this simulation kept no timeline", "simulate with timeline=True"});
  }
  std::ofstream file(path, std::ios::binary);
  if (!file) throw ErrorRaised({ErrorCode::unavailable, "cannot write " + path, ""});
  value_of(write_chrome_trace(file, *report.timeline));
}

/// A schedule made ready to be simulated under a profile.
class ProfiledSimulation {
 public:
  ProfiledSimulation(const Plan& plan, const std::string& path, const std::string& launch, const std::string& model,
                     const std::string& errors)
      : topology_(plan.topology), gpu_(plan.gpu), errors_(measured_errors(errors)) {
    candidates_ = value_of(forecast::only_candidate(verified(plan), *topology_));
    candidates_.made.front().is_verified = true;
    // What NCCL would run is cut as NCCL cuts it.
    if (forecast::is_nccl_algorithm(plan.planner)) candidates_.made.front().planner = plan.planner;
    const forecast::RunOptions how{.model = value_of(sim::parse_model(model)), .profile = software_of(path, launch)};
    profile_ = how.profile->profile.name;
    machines_ = planners::group_domains(*topology_).groups.size();
    runs_ = std::make_unique<forecast::CandidateRuns>(*topology_, candidates_, how);
    const auto search = [this](Bytes size) {
      return runs_->run(candidate().planner, size).map([](forecast::CandidateRun run) {
        return forecast::SizedRun{std::move(run.report), run.setting, std::move(run.protocol)};
      });
    };
    curve_ = std::make_unique<forecast::SizeCurve>(
        search, [this](const forecast::SizedRun& like, Bytes size, const Pacing& pacing) {
          return runs_->run_in(*like.setting, candidate(), size, pacing);
        });
    search_ = search;
  }

  /// (report, protocol, the factors between which nine in ten measurements lie or nothing, why they may not hold).
  py::tuple run(std::int64_t size) {
    std::optional<Result<forecast::SizedRun>> run;
    {
      const py::gil_scoped_release release;
      run = forecast::is_for_curves(candidate().chunks, Bytes{size}) ? curve_->at({size}) : search_({size});
    }
    auto done = value_of(std::move(*run));
    const forecast::ErrorRange range = errors_.find({.profile = profile_,
                                                     .algorithm = candidate().planner,
                                                     .collective = candidate().collective().kind,
                                                     .machines = machines_,
                                                     .ranks = topology_->rank_count(),
                                                     .version = {},
                                                     .size = {size},
                                                     .gpu = gpu_});
    const py::object factors =
        range.of == nullptr ? py::object(py::none()) : py::object(py::make_tuple(range.of->low, range.of->high));
    return py::make_tuple(std::move(done.report), done.protocol, factors, range.outside);
  }

 private:
  static forecast::MeasuredErrors measured_errors(const std::string& path) {
    std::ifstream file(path);
    if (!file) return {};
    return value_of(forecast::MeasuredErrors::read(
        std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()}));
  }
  [[nodiscard]] const planners::Candidate& candidate() const { return candidates_.made.front(); }

  std::shared_ptr<const Topology> topology_;
  std::string gpu_;
  forecast::MeasuredErrors errors_;
  std::string profile_;
  std::size_t machines_ = 0;
  planners::Candidates candidates_;
  std::unique_ptr<forecast::CandidateRuns> runs_;
  forecast::SizeCurve::Search search_;
  std::unique_ptr<forecast::SizeCurve> curve_;
};

}  // namespace

std::shared_ptr<const forecast::Software> software_of(const std::string& path, const std::string& launch) {
  profile::ProfileReading reading = profile::read_profile_file(path);
  if (!reading.profile) {
    const Diagnostic& first = reading.diagnostics.front();
    throw ErrorRaised({ErrorCode::invalid_input, render(first, false), first.help});
  }
  const profile::Launch start = value_of(reading.profile->launch(launch));
  std::string name = reading.profile->name;
  return std::make_shared<const forecast::Software>(
      forecast::Software{std::move(name), *std::move(reading.profile), start, std::nullopt});
}

py::dict summary_of(const compare::ErrorSummary& errors) {
  py::dict summary;
  summary["count"] = errors.count;
  summary["median"] = errors.median;
  summary["p90"] = errors.p90;
  summary["worst"] = errors.worst;
  summary["bias"] = errors.bias;
  return summary;
}

void bind_compare(py::module_& module) {
  module.def("compare_files", &compare_files);
  module.def("save_trace", &save_trace);
  py::class_<ProfiledSimulation>(module, "ProfiledSimulator")
      .def(py::init<const Plan&, const std::string&, const std::string&, const std::string&, const std::string&>())
      .def("run", &ProfiledSimulation::run);
}

}  // namespace espalier::python
