// Runs an all_reduce with other processes. Start one of these per rank:
//   ESPALIER_SECRET=something-long run_all_reduce RANK WORLD HOST PORT
#include <espalier/communicator.h>
#include <espalier/topology.h>
#include <fmt/format.h>

#include <cstdlib>

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto number = [&](int i) { return static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)); };
  espalier::JobOptions options;
  options.rendezvous.rank = number(1);
  options.rendezvous.world = number(2);
  options.rendezvous.host = argv[3];
  options.rendezvous.port = static_cast<std::uint16_t>(number(4));
  const auto secret = espalier::engine::rendezvous::find_secret(espalier::engine::rendezvous::process_environment());
  const auto network = espalier::generate_fully_connected({.ranks = number(2)});
  if (!secret || !network) return 1;
  options.rendezvous.secret = *secret;
  auto advisor = std::make_shared<espalier::forecast::Advisor>(
      *network, espalier::forecast::AdvisorOptions{.algorithm = "auto", .leaves_chunk_to_engine = true});
  auto joined = espalier::Communicator::join(std::move(options), espalier::forecast::Advisor::source(advisor));
  if (!joined) return fmt::print(stderr, "{}\n", joined.error().message), 1;
  espalier::Communicator& ranks = **joined;

  constexpr std::size_t count = 1'000'000;
  auto* data = static_cast<float*>(ranks.allocate(count * sizeof(float)).value());
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<float>(ranks.rank());
  const auto done = ranks.all_reduce(data, data, count, espalier::ElementType::float32, espalier::ReduceOperation::sum);
  if (!done) return fmt::print(stderr, "{}\n", done.error().message), 1;
  fmt::print("rank {}: {} (the sum of all ranks)\n", ranks.rank(), data[0]);
  return 0;
}
