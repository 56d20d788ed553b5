#include <algorithm>
#include <vector>

#include "planners/classic/classic.h"
#include "planners/classic/partners.h"

namespace espalier::planners {

namespace {

struct Message {
  Rank from;
  Rank to;
  PlaceRun shards;
};

/// In step k the rank at place p holds the shards of 2^k places from p on, and sends them to place p - 2^k.
std::vector<Message> gather_messages(const std::vector<Rank>& order) {
  const std::size_t n = order.size();
  std::vector<Message> messages;
  for (std::size_t distance = 1; distance < n; distance *= 2) {
    const std::size_t count = std::min(distance, n - distance);
    for (std::size_t place = 0; place < n; ++place) {
      messages.push_back({order[place], order[(place + n - distance) % n], {place, count}});
    }
  }
  return messages;
}

}  // namespace

Result<Schedule> plan_bruck(const PlanningProblem& problem, const Collective& collective) {
  const CollectiveKind kind = collective.kind;
  const bool scatters = kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter;
  const bool gathers = kind == CollectiveKind::all_reduce || kind == CollectiveKind::all_gather;
  if (!scatters && !gathers) {
    return fail(ErrorCode::unsupported, "bruck does not plan " + std::string(to_string(kind)),
                slices_have_destination(kind) ? "use pairwise" : "use binomial, flat, tree or packing");
  }
  if (auto equal = check_equal_shards(collective, "bruck"); !equal) return tl::unexpected(equal.error());
  const Topology& topology = problem.topology();
  const Partners partners(problem, "bruck");
  ExchangeWriter writer(topology, collective, partners, "bruck", partners.order().size());
  const std::vector<Message> messages = gather_messages(partners.order());
  if (scatters) {
    // Run backwards, every copy becomes the addition of a partial sum.
    for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
      if (auto sent = writer.send(message->to, message->from, message->shards, Action::reduce); !sent) {
        return tl::unexpected(sent.error());
      }
    }
  }
  if (gathers) {
    for (const Message& message : messages) {
      if (auto sent = writer.send(message.from, message.to, message.shards, Action::copy); !sent) {
        return tl::unexpected(sent.error());
      }
    }
  }
  return writer.take();
}

}  // namespace espalier::planners
