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
#include "sim/contention_free/walk_ring.h"
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

Simulated run_walked(const Ring& ring) {
  const WalkedRing job = make_walked_ring(ring);
  sim::Options options;
  options.size = job.size;
  options.chunk = job.size;
  options.element_size = 1;
  options.conditions = job.conditions;
  const double before = cpu_seconds();
  const auto walked = sim::simulate_ring(job.walk, job.topology, options);
  if (!walked) std::abort();
  return {walked->report.elapsed.seconds(), cpu_seconds() - before};
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

/// A row of a table: who simulated how many hops.
struct Row {
  std::string who;
  double hops = 0;
  std::optional<Measured> result;
};

/// Prints the rows and how much longer SimGrid, where given, ran than each.
void print_table(const std::vector<Row>& rows, const std::optional<Row>& peer_row,
                 std::optional<double> closed_form_s) {
  const double reference_s = closed_form_s                  ? *closed_form_s
                             : peer_row && peer_row->result ? peer_row->result->simulated_s
                                                            : 1;
  if (closed_form_s) fmt::print("Closed form: {:.6f} µs. {:.0f} hops.\n\n", *closed_form_s * 1e6, rows.front().hops);
  print_header(closed_form_s ? "the closed form" : "SimGrid");
  for (const Row& row : rows) print_row(row.who, row.result, row.hops, reference_s);
  if (!peer_row) return;
  print_row(peer_row->who, peer_row->result, peer_row->hops, reference_s);
  fmt::print("\nSimGrid's run takes as long as");
  for (const Row& row : rows) {
    if (row.result && peer_row->result) {
      fmt::print("{} {:.0f} runs of {}", row.who == rows.front().who ? "" : ",",
                 peer_row->result->run_s / row.result->run_s, row.who);
    }
  }
  fmt::print(".\n");
}

/// One job under both models and SimGrid.
void compare(const std::string& title, const MakeJob& make, peer::Latency latency) {
  fmt::print("\n### {}\n\n", title);
  const auto hops = static_cast<double>(make().hops);
  std::vector<Row> rows;
  for (const std::int64_t chunks : {1, 64}) {
    rows.push_back({fmt::format("`link`, {} chunk{}", chunks, chunks == 1 ? "" : "s"),
                    hops * static_cast<double>(chunks),
                    measure([&] { return run_espalier(make, sim::ModelKind::link, chunks); })});
  }
  rows.push_back({"`fair`", hops, measure([&] { return run_espalier(make, sim::ModelKind::fair, 1); })});
  print_table(rows, Row{"SimGrid", hops, measure([&] { return run_peer(make, latency); })}, std::nullopt);
}

/// The most ranks of a ring that is stored as a schedule; larger ones are only walked.
constexpr std::size_t max_stored_ranks = 4096;

/// A ring walked and stored, under both models and SimGrid.
void compare_ring(const std::string& title, const Ring& ring, std::optional<double> closed_form_s,
                  peer::Latency latency, bool with_peer) {
  fmt::print("\n### {}\n\n", title);
  const MakeJob make = [&] { return make_ring_job(ring); };
  const double hops = 2 * static_cast<double>(ring.ranks - 1) * static_cast<double>(ring.ranks);
  std::vector<Row> rows{{"`link`, walked", hops, measure([&] { return run_walked(ring); })}};
  if (ring.ranks <= max_stored_ranks) {
    rows.push_back({"`link`", hops, measure([&] { return run_espalier(make, sim::ModelKind::link, 1); })});
    rows.push_back({"`fair`", hops, measure([&] { return run_espalier(make, sim::ModelKind::fair, 1); })});
  }
  std::optional<Row> peer_row;
  if (with_peer) peer_row = Row{"SimGrid", hops, measure([&] { return run_peer(make, latency); })};
  print_table(rows, peer_row, closed_form_s);
}

struct Arguments {
  std::size_t max_ranks = 1024;
  std::size_t peer_ranks = 1024;
  std::size_t uneven_ranks = 1024;
};

int run(const Arguments& arguments) {
  for (std::size_t ranks = 8; ranks <= arguments.max_ranks; ranks *= 2) {
    if (ranks != 8 && ranks != 64 && ranks != 256 && ranks < 1024) continue;
    const double steps = 2 * static_cast<double>(ranks - 1);
    const double closed_form = steps * (1e-6 + (64 << 20) / static_cast<double>(ranks) / 1e11);
    compare_ring(fmt::format("Ring all-reduce, {} ranks", ranks), {.ranks = ranks}, closed_form, peer::Latency::network,
                 ranks <= arguments.peer_ranks);
  }
  const std::size_t ranks = arguments.uneven_ranks;
  compare_ring(fmt::format("Ring all-reduce, {} ranks, every hop up to 2 % longer", ranks),
               {.ranks = ranks, .jitter_ppm = 20'000}, std::nullopt, peer::Latency::sender, true);
  compare_ring(fmt::format("Ring all-reduce, {} ranks, one link ten times slower", ranks), {.ranks = ranks, .slow = 10},
               std::nullopt, peer::Latency::sender, true);
  compare("128 hosts, leaf-spine 4:1, all-to-all", make_all_to_all_job, peer::Latency::network);
  compare("128 hosts, leaf-spine 4:1, 16 rings at once", make_sixteen_rings_job, peer::Latency::sender);
  return 0;
}

}  // namespace
}  // namespace espalier::bench

int main(int count, char** values) {
  espalier::bench::Arguments arguments;
  for (int i = 1; i + 1 < count; i += 2) {
    const auto value = static_cast<std::size_t>(std::strtoul(values[i + 1], nullptr, 10));
    if (std::strcmp(values[i], "--ranks") == 0) arguments.max_ranks = value;
    if (std::strcmp(values[i], "--simgrid-ranks") == 0) arguments.peer_ranks = value;
    if (std::strcmp(values[i], "--uneven-ranks") == 0) arguments.uneven_ranks = value;
  }
  if (count % 2 == 0) {
    fmt::print("usage: bench_simgrid [--ranks MOST] [--simgrid-ranks MOST] [--uneven-ranks RANKS]\n");
    return 2;
  }
  return espalier::bench::run(arguments);
}
