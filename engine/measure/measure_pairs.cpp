#include "engine/measure/measure_pairs.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "engine/executor/clock.h"

namespace espalier::engine {
namespace {

constexpr std::uint32_t round_trips = 20;
constexpr std::uint32_t unmeasured_round_trips = 4;
constexpr std::uint8_t go_on = 1, enough = 0;
constexpr std::chrono::minutes patience{2};  ///< Of ranks without a pair, beside what a limit makes pairs take.

std::int64_t middle_of(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

PairMeter::PairMeter(Communicator& communicator, const PairOptions& options)
    : communicator_(communicator), options_(options), members_(communicator.size()), start_ns_(now_ns()) {
  std::iota(members_.begin(), members_.end(), 0U);
}

Result<std::unique_ptr<PairMeter>> PairMeter::make(Communicator& communicator, const PairOptions& options) {
  std::unique_ptr<PairMeter> meter(new PairMeter(communicator, options));
  auto buffer = communicator.allocate(static_cast<std::size_t>(options.bytes), options.space);
  if (!buffer) return tl::unexpected(buffer.error());
  meter->buffer_ = *buffer;
  constexpr int any_byte = 0x5a;  // Pages that nobody wrote may all be one.
  if (options.space == MemorySpace::host) std::memset(*buffer, any_byte, static_cast<std::size_t>(options.bytes));
  const MemorySpace space = options.space == MemorySpace::host ? MemorySpace::host : MemorySpace::pinned;
  auto token = communicator.allocate(1, space);
  if (!token) return tl::unexpected(token.error());
  meter->token_ = *token;
  return meter;
}

PairMeter::~PairMeter() {
  communicator_.free(token_);
  communicator_.free(buffer_);
}

Result<void> PairMeter::send_token(std::uint32_t peer, std::uint8_t value) {
  *static_cast<std::uint8_t*>(token_) = value;
  return communicator_.send(token_, 1, ElementType::uint8, peer);
}

Result<std::uint8_t> PairMeter::receive_token(std::uint32_t peer) {
  if (auto done = communicator_.receive(token_, 1, ElementType::uint8, peer); !done) {
    return tl::unexpected(done.error());
  }
  return *static_cast<std::uint8_t*>(token_);
}

/// Nanoseconds of the median; the receiver begins.
Result<std::int64_t> PairMeter::measure_round_trip(const RankPair& pair, bool sends) {
  std::vector<std::int64_t> times;
  for (std::uint32_t i = 0; i < round_trips + unmeasured_round_trips; ++i) {
    const std::int64_t begin = now_ns();
    if (!sends) {
      if (auto sent = send_token(pair.from, go_on); !sent) return tl::unexpected(sent.error());
    }
    if (auto got = receive_token(sends ? pair.to : pair.from); !got) return tl::unexpected(got.error());
    if (sends) {
      if (auto sent = send_token(pair.to, go_on); !sent) return tl::unexpected(sent.error());
    }
    if (i >= unmeasured_round_trips) times.push_back(now_ns() - begin);
  }
  return middle_of(std::move(times));
}

Result<std::vector<std::int64_t>> PairMeter::receive_from(std::uint32_t peer) {
  const auto round_trip = measure_round_trip({peer, communicator_.rank()}, false);
  if (!round_trip) return tl::unexpected(round_trip.error());
  std::vector<std::int64_t> times = {*round_trip};
  const std::int64_t first = now_ns();
  const std::int64_t max_ns = std::chrono::nanoseconds(options_.max_time).count();
  const std::int64_t interval =
      options_.max_rate > 0 ? static_cast<std::int64_t>(static_cast<double>(options_.bytes) / options_.max_rate * 1e9)
                            : 0;
  for (std::uint32_t i = 0; i <= options_.transfers; ++i) {
    const bool is_past = now_ns() - first > max_ns && times.size() > 1;
    if (is_past) break;
    const std::int64_t wait = first + static_cast<std::int64_t>(i) * interval - now_ns();
    if (wait > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(wait));
    const std::int64_t begin = now_ns();
    if (auto sent = send_token(peer, go_on); !sent) return tl::unexpected(sent.error());
    if (auto got = communicator_.receive(buffer_, static_cast<std::size_t>(options_.bytes), ElementType::uint8, peer);
        !got) {
      return tl::unexpected(got.error());
    }
    // The first one makes connections; asking takes half a round trip.
    if (i > 0) times.push_back(std::max<std::int64_t>(1, now_ns() - begin - *round_trip / 2));
  }
  if (auto sent = send_token(peer, enough); !sent) return tl::unexpected(sent.error());
  return times;
}

Result<void> PairMeter::send_to(std::uint32_t peer) {
  if (auto measured = measure_round_trip({communicator_.rank(), peer}, true); !measured) {
    return tl::unexpected(measured.error());
  }
  while (true) {
    const auto asked = receive_token(peer);
    if (!asked) return tl::unexpected(asked.error());
    if (*asked == enough) return {};
    if (auto sent = communicator_.send(buffer_, static_cast<std::size_t>(options_.bytes), ElementType::uint8, peer);
        !sent) {
      return sent;
    }
  }
}

Result<PairRound> PairMeter::measure(std::span<const RankPair> pairs) {
  auto& control = communicator_.control();
  const auto limited =
      options_.max_rate > 0 ? static_cast<double>(options_.bytes) * (options_.transfers + 1) / options_.max_rate : 0.0;
  const auto longest = patience + std::chrono::milliseconds(static_cast<std::int64_t>(limited * 1000));
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(longest);
  if (auto met = control.barrier("pairs/begin", members_, wait); !met) return tl::unexpected(met.error());
  std::vector<std::int64_t> own;
  for (const RankPair& pair : pairs) {
    if (pair.from == communicator_.rank()) {
      if (auto sent = send_to(pair.to); !sent) return tl::unexpected(sent.error());
    } else if (pair.to == communicator_.rank()) {
      auto times = receive_from(pair.from);
      if (!times) return tl::unexpected(times.error());
      own = std::move(*times);
    }
  }
  own.insert(own.begin(), now_ns() - start_ns_);
  const auto all = control.exchange(
      "pairs/times", members_, {reinterpret_cast<const char*>(own.data()), own.size() * sizeof(std::int64_t)}, wait);
  if (!all) return tl::unexpected(all.error());
  std::vector<std::vector<std::int64_t>> told;
  for (const std::string& bytes : *all) {
    told.emplace_back(bytes.size() / sizeof(std::int64_t));
    std::memcpy(told.back().data(), bytes.data(), told.back().size() * sizeof(std::int64_t));
  }
  PairRound round;
  round.elapsed = static_cast<double>(told.front().front()) * 1e-9;
  for (const RankPair& pair : pairs) {
    const std::vector<std::int64_t>& times = told[pair.to];  // elapsed, round trip, transfers
    constexpr std::size_t min_times = 3;
    if (times.size() < min_times) {
      return fail(ErrorCode::unavailable, "rank " + std::to_string(pair.to) + " told no times of its pair");
    }
    PairTimes& measured = round.pairs.emplace_back();
    measured.latency = static_cast<double>(times[1]) * 0.5e-9;
    for (std::size_t i = 2; i < times.size(); ++i) measured.seconds.push_back(static_cast<double>(times[i]) * 1e-9);
  }
  return round;
}

}  // namespace espalier::engine
