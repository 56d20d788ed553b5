// Gloo over TCP on the loopback: variants ring, bcube, halving_doubling, ring_chunked; direct, for all_to_all alone.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoallv.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "bench/engine/harness.h"

namespace espalier::bench {
namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Call = std::function<void()>;

Context connect(int rank, int ranks, const std::string& directory) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(directory);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  return context;
}

Call all_reduce(const Context& context, const std::string& variant, Array& data) {
  if (variant == "halving_doubling") {
    auto algorithm = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(context, std::vector<float*>{data.data()},
                                                                             static_cast<int>(data.size()));
    return [algorithm] { algorithm->run(); };
  }
  if (variant == "ring_chunked") {
    auto algorithm = std::make_shared<gloo::AllreduceRingChunked<float>>(context, std::vector<float*>{data.data()},
                                                                         static_cast<int>(data.size()));
    return [algorithm] { algorithm->run(); };
  }
  auto options = std::make_shared<gloo::AllreduceOptions>(context);
  options->setAlgorithm(variant == "bcube" ? gloo::AllreduceOptions::Algorithm::BCUBE
                                           : gloo::AllreduceOptions::Algorithm::RING);
  options->setOutput(data.data(), data.size());
  options->setReduceFunction(
      [](void* target, const void* a, const void* b, std::size_t count) { gloo::sum<float>(target, a, b, count); });
  return [options] { gloo::allreduce(*options); };
}

/// Empty where this variant has no such collective.
Call make_call(const Context& context, const Options& settings, const Cell& cell, Buffers& buffers) {
  Array& data = buffers.data;
  const std::size_t share = data.size() / static_cast<std::size_t>(settings.ranks);
  if (cell.collective == Collective::all_reduce) return all_reduce(context, settings.variant, data);
  if (cell.collective == Collective::reduce_scatter && settings.variant == "halving_doubling") {
    auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
        context, std::vector<float*>{data.data()}, static_cast<int>(data.size()),
        std::vector<int>(static_cast<std::size_t>(settings.ranks), static_cast<int>(share)));
    // It leaves the share at the front of the data.
    return [algorithm, &buffers] {
      algorithm->run();
      std::memcpy(buffers.output.data(), buffers.data.data(), buffers.output.size() * sizeof(float));
    };
  }
  if (cell.collective == Collective::all_to_all && settings.variant == "direct") {
    const BlockTable table = blocks_of(cell, context->rank, settings.ranks);
    auto options = std::make_shared<gloo::AlltoallvOptions>(context);
    options->setInput(data.data(), table.sent);
    options->setOutput(buffers.output.data(), table.received);
    return [options] { gloo::alltoallv(*options); };
  }
  if (cell.collective == Collective::broadcast && settings.variant == "ring") {
    auto options = std::make_shared<gloo::BroadcastOptions>(context);
    options->setOutput(data.data(), data.size());
    options->setRoot(0);
    return [options] { gloo::broadcast(*options); };
  }
  if (cell.collective == Collective::all_gather && settings.variant == "ring") {
    auto options = std::make_shared<gloo::AllgatherOptions>(context);
    options->setOutput(data.data(), data.size());
    return [options] { gloo::allgather(*options); };
  }
  return {};
}

void run_rank(Board& board, int rank, const Options& options, const std::string& directory) {
  if (options.pin) pin_to_core(static_cast<std::size_t>(rank));
  const Context context = connect(rank, options.ranks, directory);
  for (const Cell& cell : options.cells) {
    Buffers buffers = make_buffers(cell, options.ranks);
    const Call call = make_call(context, options, cell, buffers);
    if (call) measure(board, rank, "gloo", options, cell, buffers.data.data(), buffers.output.data(), call);
  }
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  using namespace espalier::bench;
  const Options options = parse_options(argc, argv);
  Board* board = make_board();
  std::string directory = (std::filesystem::temp_directory_path() / "espalier-gloo-XXXXXX").string();
  if (board == nullptr || mkdtemp(directory.data()) == nullptr) return 1;
  const bool good = run_ranks(options.ranks, [&](int rank) { run_rank(*board, rank, options, directory); });
  std::filesystem::remove_all(directory);
  return good ? 0 : 1;
}
