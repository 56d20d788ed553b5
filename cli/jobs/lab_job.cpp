#include "cli/jobs/lab_job.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "lab/process.h"
#include "schedule/json/schedule_json.h"

namespace espalier::cli {
namespace {

/// Nothing else is in a lab's namespaces, so any port is free.
constexpr int rendezvous_port = 29510;

std::string make_secret() {
  std::array<unsigned char, 32> bytes{};
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t count = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (count > 0) filled += static_cast<std::size_t>(count);
  }
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::string last_lines(const std::string& text) {
  constexpr std::size_t most = 2000;
  return text.size() <= most ? text : "..." + text.substr(text.size() - most);
}

/// How all ranks ended, and which failed first.
struct RanksEnd {
  std::vector<lab::Outcome> outcomes;
  std::optional<std::size_t> first_failed;
};

/// Waits until all ranks have ended. When one fails, the others get some seconds to notice by themselves.
RanksEnd wait_for_all(std::vector<lab::Process> processes) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds grace{5};
  constexpr std::chrono::milliseconds pause{5};
  RanksEnd end{std::vector<lab::Outcome>(processes.size()), {}};
  std::vector<bool> has_ended(processes.size(), false);
  Clock::time_point deadline = Clock::time_point::max();
  for (std::size_t ended = 0; ended < processes.size();) {
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
      if (has_ended[rank]) continue;
      auto outcome = processes[rank].wait_for(pause);
      if (!outcome) continue;
      has_ended[rank] = true;
      ++ended;
      if (outcome->code != 0 && !end.first_failed) {
        end.first_failed = rank;
        deadline = Clock::now() + grace;
      }
      end.outcomes[rank] = std::move(*outcome);
    }
    if (Clock::now() < deadline) continue;
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
      if (!has_ended[rank]) processes[rank].kill();
    }
  }
  return end;
}

/// What rank 0 printed; nothing when that is no result.
std::optional<LabMeasurement> read_measurement(const std::string& text) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("results") || !document["results"].is_array()) return std::nullopt;
  if (document["results"].empty()) return std::nullopt;
  const auto& result = document["results"][0];
  if (!result.is_object() || !result.contains("time") || !result["time"].is_number()) return std::nullopt;
  LabMeasurement measurement{result["time"].get<double>(), std::nullopt};
  const auto add_wrong = [&](const nlohmann::json& placed) {
    if (!placed.is_object() || !placed.contains("wrong") || !placed["wrong"].is_number_integer()) return;
    measurement.wrong = measurement.wrong.value_or(0) + placed["wrong"].get<std::int64_t>();
  };
  add_wrong(result);
  if (result.contains("in_place")) add_wrong(result["in_place"]);
  return measurement;
}

}  // namespace

Result<LabJob> LabJob::make(lab::LabNetwork& network, const planners::Candidate& candidate, const Topology& scaled) {
  std::ostringstream plan;
  if (const auto written = write_schedule(plan, candidate.schedule, scaled); !written) {
    return tl::unexpected(written.error());
  }
  // Routes have no numbers in a plan: a reader numbers them in the order of their first use, and so must we.
  const auto as_read = read_plan(plan.str(), candidate.planner);
  if (!as_read) return tl::unexpected(as_read.error());
  const auto routes = network.add_routes(as_read->schedule);
  if (!routes) return tl::unexpected(routes.error());
  std::ostringstream addresses;
  lab::write_addresses(addresses, *routes);
  auto plan_file = lab::MemoryFile::make(plan.str());
  if (!plan_file) return tl::unexpected(plan_file.error());
  auto addresses_file = lab::MemoryFile::make(addresses.str());
  if (!addresses_file) return tl::unexpected(addresses_file.error());
  return LabJob(network, scaled.rank_count(), std::move(*plan_file), std::move(*addresses_file));
}

Result<LabMeasurement> LabJob::run(Bytes size, const Pacing& pacing, const LabRunOptions& options,
                                   const std::string& trace) const {
  const std::string secret = make_secret();
  const std::string rendezvous = fmt::format("{}:{}", network_->control_address(Rank(0)), rendezvous_port);
  std::vector<lab::Process> processes;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    std::vector<std::string> arguments = {options.program,
                                          "run",
                                          plan_.path(),
                                          "--rank",
                                          std::to_string(rank),
                                          "--world",
                                          std::to_string(ranks_),
                                          "--rendezvous",
                                          rendezvous,
                                          "--transport",
                                          "tcp",
                                          "--addresses",
                                          addresses_.path(),
                                          "-s",
                                          std::to_string(size.count),
                                          "--chunk",
                                          std::to_string(pacing.chunk.count),
                                          "--ahead",
                                          std::to_string(pacing.ahead),
                                          "-d",
                                          options.type,
                                          "-n",
                                          std::to_string(options.iterations),
                                          "-w",
                                          std::to_string(options.warmup),
                                          "-c",
                                          options.check ? "1" : "0",
                                          "--timeout",
                                          std::to_string(options.timeout_s),
                                          "--json"};
    if (!trace.empty()) arguments.insert(arguments.end(), {"--trace", trace});
    // Nothing of a job that this process may itself be set up for.
    auto process = lab::Process::start({.arguments = std::move(arguments),
                                        .environment = {{"ESPALIER_SECRET", secret}},
                                        .dropped_variables = "ESPALIER_",
                                        .name_space = network_->name_space(Rank(rank))});
    if (!process) return tl::unexpected(process.error());
    processes.push_back(std::move(*process));
  }
  const RanksEnd end = wait_for_all(std::move(processes));
  // Ranks whose data are wrong say so by their exit code, too; their figures count all the same.
  if (const auto measured = read_measurement(end.outcomes.front().output)) return *measured;
  const std::size_t to_blame = end.first_failed.value_or(0);
  const lab::Outcome& outcome = end.outcomes[to_blame];
  return fail(ErrorCode::unavailable,
              fmt::format("rank {} ended with code {}: {}", to_blame, outcome.code,
                          outcome.errors.empty() ? "it says nothing" : last_lines(outcome.errors)));
}

}  // namespace espalier::cli
