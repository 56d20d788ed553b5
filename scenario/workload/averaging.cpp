#include "scenario/workload/averaging.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace espalier::scenario {
namespace {

constexpr std::int64_t scale_bytes = 4;

tl::unexpected<Error> saves_nothing(std::string message, std::string help) {
  return fail(ErrorCode::invalid_input, std::move(message), std::move(help));
}

}  // namespace

void Averager::add_all(const Call& call, CollectiveKind kind, Bytes size, std::uint8_t element, std::uint16_t stream,
                       Ends& ends) {
  Call one = call;
  one.kind = kind;
  one.size = size;
  one.element_size = element;
  const CallId id = job_.add_call(one);
  const std::vector<Rank> ranks(job_.ranks(call.group).begin(), job_.ranks(call.group).end());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ends[i] = {job_.add_task(
        {.rank = ranks[i], .call = id, .label = call.label, .stream = stream, .kind = TaskKind::call}, ends[i])};
  }
}

Result<void> Averager::add_int8(const Call& call, std::uint16_t stream, Ends& ends) {
  if (call.element_size == 1) {
    return saves_nothing("elements of one byte have 8 bits as they are", "leave 'compression' out");
  }
  const auto ranks = static_cast<std::int64_t>(ends.size());
  const std::int64_t part = (call.size.count / call.element_size + ranks - 1) / ranks + scale_bytes;
  add_all(call, CollectiveKind::all_to_all, {ranks * part}, 1, stream, ends);
  add_all(call, CollectiveKind::all_gather, {ranks * part}, 1, stream, ends);
  return {};
}

Result<void> Averager::add_low_rank(const Call& call, std::uint16_t stream, const MatrixSizes& sizes, Ends& ends) {
  const std::int64_t elements = call.size.count / call.element_size;
  MatrixSizes matrix = sizes;
  if (matrix.rows == 0) {
    matrix.rows = std::max<std::int64_t>(std::llround(std::sqrt(static_cast<double>(elements))), 1);
    matrix.columns = (elements + matrix.rows - 1) / matrix.rows;
  }
  const std::int64_t rank = averaging_.low_rank;
  if (static_cast<__int128>(rank) * (matrix.rows + matrix.columns) >= elements) {
    return saves_nothing(
        fmt::format("factors of rank {} have no fewer elements than what they stand for, which has {}", rank, elements),
        "write a smaller 'low_rank', or leave 'compression' out");
  }
  for (const std::int64_t side : {matrix.rows, matrix.columns}) {
    add_all(call, CollectiveKind::all_reduce, {rank * side * call.element_size}, call.element_size, stream, ends);
  }
  return {};
}

/// Each member sends its vector to each neighbour and waits for theirs.
void Averager::add_round(const Call& call, const Mixing& mixing, Ends& ends) {
  const std::vector<Rank> ranks(job_.ranks(call.group).begin(), job_.ranks(call.group).end());
  Ends parts(ranks.size());
  for (const auto& [i, j] : mixing.pairs) {
    const GroupId pair = job_.add_group({ranks[i], ranks[j]});
    for (const std::uint32_t root : {0U, 1U}) {
      const CallId id = job_.add_call({.size = call.size,
                                       .group = pair,
                                       .label = call.label,
                                       .planner = LabelId(),
                                       .chunk = call.chunk,
                                       .root = Rank(root),
                                       .kind = CollectiveKind::broadcast,
                                       .element_size = call.element_size});
      for (const std::uint32_t member : {i, j}) {
        parts[member].push_back(job_.add_task(
            {.rank = ranks[member], .call = id, .label = call.label, .stream = no_stream, .kind = TaskKind::call},
            ends[member]));
      }
    }
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ends[i] = {job_.add_task({.rank = ranks[i], .label = call.label, .stream = no_stream, .kind = TaskKind::wait},
                             parts[i].empty() ? ends[i] : parts[i])};
  }
}

Result<void> Averager::add_gossip(const Call& call, AveragedVector& vector, Ends& ends, std::int64_t times) {
  auto known = mixings_.find(call.group);
  if (known == mixings_.end()) {
    auto mixing = make_mixing(topology_, job_.ranks(call.group), averaging_.graph);
    if (!mixing) return tl::unexpected(mixing.error());
    known = mixings_.emplace(call.group, *std::move(mixing)).first;
  }
  const Mixing& mixing = known->second;
  vector.spectral_gap = mixing.spectral_gap;
  vector.rounds = averaging_.rounds > 0 ? averaging_.rounds : mixing.rounds_to(averaging_.accuracy_ppm / 1e6);
  const __int128 tasks = static_cast<__int128>(vector.rounds) * times * (4 * mixing.pairs.size() + ends.size());
  if (vector.rounds > max_gossip_rounds || tasks + job_.tasks().size() > task_limit_) {
    return fail(
        ErrorCode::too_large,
        fmt::format("gossip of {} ranks with {} pairs of neighbours takes {} rounds{}, which are too many tasks",
                    ends.size(), mixing.pairs.size(), vector.rounds, times > 1 ? fmt::format(", {} times", times) : ""),
        fmt::format("lower {}'rounds', raise 'accuracy', or write 'graph: exponential'",
                    times > 1 ? "'repeat' or " : ""));
  }
  for (std::int64_t round = 0; round < vector.rounds; ++round) add_round(call, mixing, ends);
  return {};
}

Result<std::vector<TaskId>> Averager::add(const Call& call, std::uint16_t stream, const Ends& after,
                                          const MatrixSizes& sizes, std::int64_t times) {
  AveragedVector vector{.label = call.label, .group = call.group, .first = job_.tasks().size()};
  Ends ends = after;
  Result<void> done;
  switch (averaging_.kind) {
    case AveragingKind::all_reduce:
      add_all(call, CollectiveKind::all_reduce, call.size, call.element_size, stream, ends);
      break;
    case AveragingKind::int8: done = add_int8(call, stream, ends); break;
    case AveragingKind::low_rank: done = add_low_rank(call, stream, sizes, ends); break;
    case AveragingKind::gossip: done = add_gossip(call, vector, ends, times); break;
  }
  if (!done) return tl::unexpected(done.error());
  vector.end = job_.tasks().size();
  if (!is_all_reduce()) added_.push_back(vector);
  std::vector<TaskId> last;
  for (const std::vector<TaskId>& of_member : ends) last.push_back(of_member.front());
  return last;
}

std::string describe(const Averaging& averaging) {
  switch (averaging.kind) {
    case AveragingKind::all_reduce: return "all_reduce";
    case AveragingKind::int8: return "int8";
    case AveragingKind::low_rank: return fmt::format("rank {}", averaging.low_rank);
    case AveragingKind::gossip: return "gossip";
  }
  return {};
}

}  // namespace espalier::scenario
