#include "cli/lab_job.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "lab/process.h"
#include "schedule/schedule_json.h"

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

/// Waits until all ranks have ended. When one fails, the others get some seconds to notice by themselves.
Result<std::string> wait_for_all(std::vector<lab::Process> processes) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds grace{5};
  constexpr std::chrono::milliseconds pause{5};
  std::vector<std::optional<lab::Outcome>> outcomes(processes.size());
  std::optional<std::size_t> first_failed;
  Clock::time_point deadline = Clock::time_point::max();
  for (std::size_t ended = 0; ended < processes.size();) {
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
      if (outcomes[rank]) continue;
      outcomes[rank] = processes[rank].wait_for(pause);
      if (!outcomes[rank]) continue;
      ++ended;
      if (outcomes[rank]->code == 0 || first_failed) continue;
      first_failed = rank;
      deadline = Clock::now() + grace;
    }
    if (Clock::now() < deadline) continue;
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
      if (!outcomes[rank]) processes[rank].kill();
    }
  }
  if (!first_failed) return std::move(outcomes[0]->output);
  const lab::Outcome& outcome = *outcomes[*first_failed];
  return fail(ErrorCode::unavailable,
              fmt::format("rank {} ended with code {}: {}", *first_failed, outcome.code,
                          outcome.errors.empty() ? "it says nothing" : last_lines(outcome.errors)));
}

Result<LabMeasurement> read_measurement(const std::string& text) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object() || !document.contains("results") || document["results"].empty()) {
    return fail(ErrorCode::unavailable, "rank 0 printed no results: " + last_lines(text));
  }
  const auto& result = document["results"][0];
  return LabMeasurement{result.value("time", 0.0), result.value("wrong", std::int64_t{0})};
}

}  // namespace

Result<LabJob> LabJob::make(lab::LabNetwork& network, const Candidate& candidate, const Topology& scaled) {
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

Result<LabMeasurement> LabJob::run(Bytes size, Bytes chunk, const LabRunOptions& options,
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
                                          std::to_string(chunk.count),
                                          "-d",
                                          options.type,
                                          "-n",
                                          std::to_string(options.iterations),
                                          "-w",
                                          std::to_string(options.warmup),
                                          "-c",
                                          options.check ? "1" : "0",
                                          "--timeout",
                                          fmt::format("{}s", options.timeout_s),
                                          "--json"};
    if (!trace.empty()) arguments.insert(arguments.end(), {"--trace", trace});
    auto process =
        lab::run_in_namespace(network_->name_space(Rank(rank)), std::move(arguments), {{"ESPALIER_SECRET", secret}});
    if (!process) return tl::unexpected(process.error());
    processes.push_back(std::move(*process));
  }
  const auto output = wait_for_all(std::move(processes));
  if (!output) return tl::unexpected(output.error());
  return read_measurement(*output);
}

}  // namespace espalier::cli
