// Espalier's communicator on one machine. The variant says where the buffers lie and how ranks reach each other
// (registered and private in shared memory; tcp, private; verbs, registered), and after a colon, where it is not the
// usual one, which planner makes the schedules.
#include <cstdio>
#include <map>
#include <tuple>

#include "bench/engine/harness.h"
#include "engine/communicator/communicator.h"
#include "engine/rendezvous/secret.h"
#include "planners/planner.h"
#include "topology/generate/generate.h"

namespace espalier::bench {
namespace {

struct Setting {
  bool registered = false;
  TransportChoice transport = TransportChoice::shm;
  std::string planner;  ///< Empty: the usual one for a message's size.

  /// The smallest all_reduce: the fewest messages, while each costs more than its bytes. Large messages: in memory,
  /// where each reads the others', one hop; over sockets few bytes.
  [[nodiscard]] std::string planner_for(const espalier::Collective& collective, Bytes size) const {
    if (!planner.empty()) return planner;
    if (size.count <= std::int64_t{2} << 10 && collective.kind == CollectiveKind::all_reduce) return "star";
    if (transport == TransportChoice::shm) return "flat";
    if (size.count <= std::int64_t{16} << 10) return "binomial";
    return size.count <= std::int64_t{256} << 10 ? "recursive" : "ring";
  }
};

Setting parse_variant(const std::string& variant) {
  const std::size_t colon = variant.find(':');
  const std::string memory = variant.substr(0, colon);
  Setting setting;
  setting.registered = memory == "registered" || memory == "verbs";
  if (memory == "tcp") setting.transport = TransportChoice::tcp;
  if (memory == "verbs") setting.transport = TransportChoice::verbs;
  if (colon != std::string::npos) setting.planner = variant.substr(colon + 1);
  return setting;
}

/// Every rank reaches every other alike: in memory over a link of its own, over sockets through what all of them share,
/// so that a message is not split over more routes than there are.
Result<Topology> make_machine(const Setting& setting, int ranks) {
  if (setting.transport == TransportChoice::shm) {
    FullyConnectedOptions shape;
    shape.ranks = ranks;
    return generate_fully_connected(shape);
  }
  LeafSpineOptions shape;
  shape.leaves = 1;
  shape.spines = 1;
  shape.ranks_per_leaf = ranks;
  return generate_leaf_spine(shape);
}

/// Schedules on that machine; what the planner cannot do, `flat` does.
ScheduleSource make_source(const Setting& setting, int ranks) {
  return [setting, topology = make_machine(setting, ranks)](const espalier::Collective& collective,
                                                            Bytes size) -> Result<SourcedSchedule> {
    const std::string planner = setting.planner_for(collective, size);
    if (!topology) return tl::unexpected(topology.error());
    Result<planners::Planner> chosen = planners::find_planner(planner);
    if (!chosen) return tl::unexpected(chosen.error());
    Result<Schedule> schedule = planners::plan_unbounded(*topology, collective, *chosen);
    if (!schedule && planner != "flat")
      schedule = planners::plan_unbounded(*topology, collective, *planners::find_planner("flat"));
    if (!schedule) return tl::unexpected(schedule.error());
    // As the advisor's own choice, which leaves small messages to the engine.
    return SourcedSchedule{std::make_shared<const Schedule>(std::move(*schedule)), Bytes{0}, setting.planner.empty()};
  };
}

[[noreturn]] void give_up(const std::string& what, const Error& error) {
  std::fprintf(stderr, "bench: %s: %s\n", what.c_str(), error.message.c_str());
  std::exit(1);
}

CallArguments arguments_of(const Cell& cell, int rank, int ranks, float* data, float* output, const BlockTable& table) {
  CallArguments arguments;
  arguments.send = data;
  arguments.receive = data;
  arguments.count = cell.bytes / sizeof(float);
  switch (cell.collective) {
    case Collective::all_reduce: arguments.kind = CollectiveKind::all_reduce; break;
    case Collective::broadcast: arguments.kind = CollectiveKind::broadcast; break;
    case Collective::all_gather:
      arguments.kind = CollectiveKind::all_gather;
      arguments.send = data + arguments.count / static_cast<std::size_t>(ranks) * static_cast<std::size_t>(rank);
      break;
    case Collective::reduce_scatter:
      arguments.kind = CollectiveKind::reduce_scatter;
      arguments.receive = output;
      break;
    case Collective::all_to_all:
      arguments.kind = CollectiveKind::all_to_all;
      arguments.receive = output;
      arguments.send_blocks = {table.sent, table.sent_at};
      arguments.receive_blocks = {table.received, table.received_at};
      break;
    case Collective::counts: break;
  }
  return arguments;
}

float* allocate(Communicator& communicator, std::size_t elements) {
  Result<void*> memory = communicator.allocate(std::max<std::size_t>(elements, 1) * sizeof(float));
  if (!memory) give_up("registered memory", memory.error());
  return static_cast<float*>(*memory);
}

void run_cell(Board& board, Communicator& communicator, int rank, const Options& options, const Cell& cell,
              bool registered) {
  Buffers own = make_buffers(registered ? Cell{} : cell, options.ranks);
  float* data = own.data.data();
  float* output = own.output.data();
  if (registered) {
    data = allocate(communicator, cell.bytes / sizeof(float));
    const int parts = cell.collective == Collective::all_to_all ? 1 : options.ranks;
    output = allocate(communicator, cell.bytes / sizeof(float) / static_cast<std::size_t>(parts));
  }
  const BlockTable table = blocks_of(cell, rank, options.ranks);
  const CallArguments arguments = arguments_of(cell, rank, options.ranks, data, output, table);
  std::vector<std::int64_t> received(table.sent.size());
  measure(board, rank, "espalier", options, cell, data, output, [&] {
    const bool is_of_counts = cell.collective == Collective::counts;
    const Result<void> done =
        is_of_counts ? communicator.exchange_counts(table.sent, received) : communicator.run(arguments);
    if (!done) give_up("a call", done.error());
  });
  if (registered) {
    communicator.free(data);
    communicator.free(output);
  }
}

void run_rank(Board& board, int rank, const Options& options, engine::rendezvous::Options rendezvous) {
  const Setting setting = parse_variant(options.variant);
  rendezvous.rank = static_cast<std::uint32_t>(rank);
  JobOptions job;
  job.rendezvous = std::move(rendezvous);
  job.transport = setting.transport;
  Result<std::unique_ptr<Communicator>> communicator =
      Communicator::join(std::move(job), make_source(setting, options.ranks));
  if (!communicator) give_up("joining", communicator.error());
  // Not before: a rank that joins tied to one core takes that for all that the job has.
  if (options.pin) pin_to_core(static_cast<std::size_t>(rank));
  for (const Cell& cell : options.cells) {
    run_cell(board, **communicator, rank, options, cell, setting.registered);
  }
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier;
  const bench::Options options = bench::parse_options(argc, argv);
  bench::Board* board = bench::make_board();
  Result<engine::rendezvous::Listener> listener = engine::rendezvous::listen_on("127.0.0.1", 0);
  Result<std::string> secret = engine::rendezvous::random_secret();
  if (board == nullptr || !listener || !secret) return 1;
  const bool good = bench::run_ranks(options.ranks, [&](int rank) {
    engine::rendezvous::Options rendezvous;
    rendezvous.host = "127.0.0.1";
    rendezvous.port = listener->port;
    rendezvous.world = static_cast<std::uint32_t>(options.ranks);
    rendezvous.secret = *secret;
    if (rank == 0) rendezvous.listener = std::move(*listener);
    bench::run_rank(*board, rank, options, std::move(rendezvous));
  });
  return good ? 0 : 1;
}
