// How long a training step of 1,024 GPUs takes to simulate: 175 billion parameters (96 layers of 12,288), tensor 8 x
// pipeline 8 x data 16 on 128 DGX H100, 16 micro-batches. Prints wall time by part, and memory.
//   bench_scenario_step [micro-batches] [chunk-hops in millions]
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/format_units.h"
#include "scenario/run/run_job.h"
#include "scenario/workload/training.h"
#include "topology/yaml/read_topology.h"

namespace espalier::scenario {
namespace {

class Watch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

TrainingModel gpt3(std::int64_t micro_batches) {
  TrainingModel model;
  model.layers = 96;
  model.hidden = 12'288;
  model.heads = 96;
  model.sequence = 2'048;
  model.vocabulary = 51'200;
  model.micro_batch = 1;
  model.batch = 16 * micro_batches;
  model.gradients = ElementType::float32;
  model.rate = {989'000'000'000'000};
  model.utilisation_ppm = 600'000;
  model.tensor = 8;
  model.pipeline = 8;
  model.bucket = {std::int64_t{512} << 20};
  return model;
}

int fail_with(const Error& error) {
  fmt::print(stderr, "bench_scenario_step: {}\n  {}\n", error.message, error.help);
  return 1;
}

int run(std::int64_t micro_batches, std::int64_t max_hops) {
  Watch watch;
  const auto reading = read_topology_file(ESPALIER_SOURCE_DIR "/configs/dgx-h100-x128.yaml");
  if (!reading.topology) return 1;
  const Topology& topology = *reading.topology;
  const double read_time = watch.lap();
  Job job;
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) ranks.emplace_back(i);
  if (const auto added = add_training(job, gpt3(micro_batches), ranks); !added) return fail_with(added.error());
  const double generate_time = watch.lap();
  if (const auto checked = check_job(job, topology); !checked) return fail_with(checked.error());
  const double check_time = watch.lap();
  RunSettings settings;
  settings.max_chunk_hops = max_hops;
  const auto report = run_job(job, topology, {}, settings);
  if (!report) return fail_with(report.error());
  const double run_time = watch.lap();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const RankSummary time = summarize_ranks(job, *report);
  fmt::print("{} ranks, {} tasks, {} calls, {} plans of {} shapes, {:.1f} million services\n", topology.rank_count(),
             job.tasks().size(), job.calls().size(), report->plans, report->shapes,
             static_cast<double>(report->events) / 1e6);
  fmt::print("read {:.2f} s, generate {:.2f} s, check {:.2f} s, run {:.2f} s, together {:.2f} s; {} MiB\n", read_time,
             generate_time, check_time, run_time, read_time + generate_time + check_time + run_time,
             usage.ru_maxrss / 1024);
  fmt::print("step {}: compute {:.1f} %, exposed {:.1f} %, waiting {:.1f} %, idle {:.1f} %\n",
             format_duration(report->elapsed), 100 * time.compute, 100 * time.exposed, 100 * time.waiting,
             100 * time.idle);
  for (const CallSummary& call : summarize_calls(job, *report)) {
    fmt::print("  {:24} {:14} {:7} calls, mean {:9.1f} us, slow-down {:.3f}, worst {:.3f}\n", call.label,
               to_string(call.kind), call.calls, call.mean_seconds * 1e6, call.mean_slowdown, call.worst_slowdown);
  }
  return 0;
}

}  // namespace
}  // namespace espalier::scenario

int main(int count, char** words) {
  const std::int64_t micro_batches = count > 1 ? std::atoll(words[1]) : 16;
  const std::int64_t millions = count > 2 ? std::atoll(words[2]) : 24;
  return espalier::scenario::run(micro_batches, millions * 1'000'000);
}
