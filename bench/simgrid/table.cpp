// Espalier's models against SimGrid's fluid model on the same jobs, in one run; see README.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "bench/simgrid/jobs.h"
#include "bench/simgrid/measure.h"
#include "sim/simulate.h"

namespace espalier::bench {
namespace {

using MakeJob = std::function<Job()>;

Simulated run_espalier(const MakeJob& make, sim::ModelKind model, std::int64_t chunks) {
  const Job job = make();
  sim::Options options;
  options.size = job.size;
  options.chunk = {(job.size.count / job.schedule.units + chunks - 1) / chunks};
  options.element_size = 1;
  options.model = model;
  options.conditions = job.conditions;
  const double before = cpu_seconds();
  const auto report = sim::simulate(job.schedule, job.topology, options);
  if (!report) std::abort();
  return {report->elapsed.seconds(), cpu_seconds() - before};
}

Simulated run_peer(const MakeJob& make, peer::Latency latency) {
  const Job job = make();
  const peer::Platform platform = make_platform(job.topology, job.schedule);
  const double before = cpu_seconds();
  if (job.messages.empty()) {
    const double end = peer::simulate_rings(platform, job.rings, latency);
    return {end, cpu_seconds() - before};
  }
  const std::vector<double> ends = peer::simulate_messages(platform, job.messages, latency);
  return {std::ranges::max(ends), cpu_seconds() - before};
}

void print_row(const std::string& who, const std::optional<Measured>& result, double hops, double reference_s) {
  if (!result) {
    fmt::print("| {} | failed | | | | | |\n", who);
    return;
  }
  fmt::print("| {} | {:.6f} | {:+.1e} | {:.3f} | {:.3f} | {:.2f} | {:.0f} |\n", who, result->simulated_s * 1e6,
             result->simulated_s / reference_s - 1, result->user_s, result->run_s, hops / result->run_s * 1e-6,
             result->peak_mb);
}

void print_header(const std::string& reference) {
  fmt::print("| simulator | simulated µs | against {} | user s | the run alone, CPU s | million hops/s | peak MB |\n",
             reference);
  fmt::print("|---|---|---|---|---|---|---|\n");
}

void print_ratio(const std::optional<Measured>& peer_result, const std::optional<Measured>& link,
                 const std::optional<Measured>& fair) {
  if (!peer_result || !link || !fair) return;
  fmt::print("\nSimGrid's run takes {:.0f} times as long as `link`, {:.0f} times as long as `fair`.\n",
             peer_result->run_s / link->run_s, peer_result->run_s / fair->run_s);
}

/// One job under both models and SimGrid. `reference_s`: the closed form, where there is one; else SimGrid's result.
void compare(const std::string& title, const MakeJob& make, std::optional<double> closed_form_s, peer::Latency latency,
             bool with_peer, const std::vector<std::int64_t>& link_chunks = {1}) {
  fmt::print("\n### {}\n\n", title);
  double hops = 0;
  {
    const auto counted = measure([&] { return Simulated{static_cast<double>(make().hops), 0}; });
    if (counted) hops = counted->simulated_s;
  }
  std::optional<Measured> peer_result;
  if (with_peer) peer_result = measure([&] { return run_peer(make, latency); });
  const auto fair = measure([&] { return run_espalier(make, sim::ModelKind::fair, 1); });
  std::vector<std::optional<Measured>> links;
  for (const std::int64_t chunks : link_chunks) {
    links.push_back(measure([&] { return run_espalier(make, sim::ModelKind::link, chunks); }));
  }
  const double reference_s = closed_form_s ? *closed_form_s : peer_result ? peer_result->simulated_s : 1;
  if (closed_form_s) fmt::print("Closed form: {:.6f} µs. {:.0f} hops.\n\n", *closed_form_s * 1e6, hops);
  print_header(closed_form_s ? "the closed form" : "SimGrid");
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto times = static_cast<double>(link_chunks[i]);
    print_row(fmt::format("`link`, {} chunk{}", link_chunks[i], link_chunks[i] == 1 ? "" : "s"), links[i], hops * times,
              reference_s);
  }
  print_row("`fair`", fair, hops, reference_s);
  if (!with_peer) return;
  print_row("SimGrid", peer_result, hops, reference_s);
  print_ratio(peer_result, links.front(), fair);
}

struct Arguments {
  std::size_t most_ranks = 1024;
  std::size_t peer_ranks = 1024;
  std::size_t uneven_ranks = 1024;
};

int run(const Arguments& arguments) {
  for (std::size_t ranks = 8; ranks <= arguments.most_ranks; ranks *= 2) {
    if (ranks != 8 && ranks != 64 && ranks != 256 && ranks < 1024) continue;
    const double steps = 2 * static_cast<double>(ranks - 1);
    const double closed_form = steps * (1e-6 + (64 << 20) / static_cast<double>(ranks) / 1e11);
    compare(
        fmt::format("Ring all-reduce, {} ranks", ranks), [=] { return make_ring_job(ranks, 1, 0); }, closed_form,
        peer::Latency::network, ranks <= arguments.peer_ranks);
  }
  const std::size_t ranks = arguments.uneven_ranks;
  compare(
      fmt::format("Ring all-reduce, {} ranks, every hop up to 2 % longer", ranks),
      [=] { return make_ring_job(ranks, 1, 20'000); }, std::nullopt, peer::Latency::sender, true);
  compare(
      fmt::format("Ring all-reduce, {} ranks, one link ten times slower", ranks),
      [=] { return make_ring_job(ranks, 10, 0); }, std::nullopt, peer::Latency::sender, true);
  compare("128 hosts, leaf-spine 4:1, all-to-all", make_all_to_all_job, std::nullopt, peer::Latency::network, true,
          {1, 64});
  compare("128 hosts, leaf-spine 4:1, 16 rings at once", make_sixteen_rings_job, std::nullopt, peer::Latency::sender,
          true, {1, 64});
  return 0;
}

}  // namespace
}  // namespace espalier::bench

int main(int count, char** values) {
  espalier::bench::Arguments arguments;
  for (int i = 1; i + 1 < count; i += 2) {
    const auto value = static_cast<std::size_t>(std::strtoul(values[i + 1], nullptr, 10));
    if (std::strcmp(values[i], "--ranks") == 0) arguments.most_ranks = value;
    if (std::strcmp(values[i], "--simgrid-ranks") == 0) arguments.peer_ranks = value;
    if (std::strcmp(values[i], "--uneven-ranks") == 0) arguments.uneven_ranks = value;
  }
  if (count % 2 == 0) {
    fmt::print("usage: bench_simgrid [--ranks MOST] [--simgrid-ranks MOST] [--uneven-ranks RANKS]\n");
    return 2;
  }
  return espalier::bench::run(arguments);
}
