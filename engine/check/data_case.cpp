#include "engine/check/data_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "engine/check/element_codec.h"
#include "schedule/parts.h"

namespace espalier::engine {
namespace {

/// The shards of a message: by their shares, or equal ones, of which the first ones have one element more.
class Shards {
 public:
  explicit Shards(const DataCase& data) {
    std::vector<std::int64_t> lengths(data.ranks);
    if (data.shares.empty()) {
      for (std::size_t rank = 0; rank < data.ranks; ++rank) {
        lengths[rank] = static_cast<std::int64_t>(data.count / data.ranks + (rank < data.count % data.ranks ? 1 : 0));
      }
    } else {
      lengths =
          deal_elements({data.kind, data.ranks, Rank(data.root), data.shares}, static_cast<std::int64_t>(data.count));
    }
    begins_.push_back(0);
    for (const std::int64_t length : lengths) begins_.push_back(begins_.back() + static_cast<std::size_t>(length));
  }
  [[nodiscard]] std::size_t begin(std::size_t rank) const { return begins_[rank]; }
  [[nodiscard]] std::size_t length(std::size_t rank) const { return begins_[rank + 1] - begins_[rank]; }

 private:
  std::vector<std::size_t> begins_;  ///< Ranks + 1.
};

/// The blocks of an all_to_all by a traffic matrix, each as long as layouts make it.
class Blocks {
 public:
  explicit Blocks(const DataCase& data)
      : ranks_(data.ranks),
        lengths_(block_elements({data.kind, data.ranks, {}, data.shares}, static_cast<std::int64_t>(data.count))) {}
  [[nodiscard]] std::size_t length(std::size_t from, std::size_t to) const {
    return static_cast<std::size_t>(lengths_[from * ranks_ + to]);
  }
  /// Where a block begins in its sender's buffer; for to == ranks the whole buffer.
  [[nodiscard]] std::size_t begin(std::size_t from, std::size_t to) const {
    std::size_t sum = 0;
    for (std::size_t before = 0; before < to; ++before) sum += length(from, before);
    return sum;
  }
  [[nodiscard]] std::size_t received(std::size_t to) const {
    std::size_t sum = 0;
    for (std::size_t from = 0; from < ranks_; ++from) sum += length(from, to);
    return sum;
  }

 private:
  std::size_t ranks_;
  std::vector<std::int64_t> lengths_;
};

bool has_matrix(const DataCase& data) { return data.kind == CollectiveKind::all_to_all && !data.shares.empty(); }

/// Whether contributions are multiplied.
bool multiplies(const DataCase& data) { return reduces(data.kind) && data.operation == ReduceOperation::prod; }

/// The ranks' data are one table, shifted for each.
std::uint64_t shift_of(std::uint32_t rank) {
  constexpr std::uint64_t apart = 1237;  // Odd: no two of `pattern_places` ranks alike.
  return rank * apart % pattern_places;
}

/// What a rank brings where the table's place is so many: of what is multiplied, one rank brings a factor 2 and one a
/// factor 3.
std::int64_t value_of(const DataCase& data, std::uint32_t rank, std::uint64_t place) {
  if (multiplies(data)) {
    const std::uint64_t turn = Random(place % pattern_places).below(data.ranks);
    return std::int64_t{turn == rank ? 2 : 1} * (turn == (rank + 1) % data.ranks ? 3 : 1);
  }
  return static_cast<std::int64_t>(Random((place + shift_of(rank)) % pattern_places).next() >> 62U);
}

/// What all ranks' values make together, before an average is divided.
std::int64_t combine(const DataCase& data, std::uint64_t place) {
  if (data.operation == ReduceOperation::prod) return 6;
  std::int64_t result = value_of(data, 0, place);
  for (std::uint32_t rank = 1; rank < data.ranks; ++rank) {
    const std::int64_t value = value_of(data, rank, place);
    switch (data.operation) {
      case ReduceOperation::min: result = std::min(result, value); break;
      case ReduceOperation::max: result = std::max(result, value); break;
      default: result += value;
    }
  }
  return result;
}

/// A table of numbers, which `number_at` gives by place.
template <class NumberAt>
KnownData make_known(const DataCase& data, std::vector<PatternRange> ranges, const NumberAt& number_at) {
  constexpr std::uint64_t apart = 0x9E3779B97F4A7C15U;
  KnownData known{{}, {}, std::move(ranges), data.seed * apart};
  std::erase_if(known.ranges, [](const PatternRange& range) { return range.length == 0; });
  if (known.ranges.empty()) return known;
  known.numbers.resize(pattern_table);
  for (std::uint32_t place = 0; place < pattern_places; ++place) known.numbers[place] = number_at(place);
  std::copy_n(known.numbers.begin(), pattern_block, known.numbers.begin() + pattern_places);
  with_codec(data.type, [&](auto codec) {
    using Type = typename decltype(codec)::Type;
    known.table.resize(pattern_table * sizeof(Type));
    for (std::uint32_t place = 0; place < pattern_table; ++place) {
      const Type element = codec.encode(known.numbers[place]);
      std::memcpy(known.table.data() + place * sizeof(Type), &element, sizeof(Type));
    }
  });
  return known;
}

/// Calls with every window of a range: its first element in the buffer, the table's, and how many.
template <class Use>
void each_window(const PatternRange& range, std::uint64_t salt, const Use& use) {
  for (std::uint64_t done = 0; done < range.length;) {
    const std::uint64_t at = range.first + done;
    const std::uint64_t length = std::min<std::uint64_t>(pattern_block - at % pattern_block, range.length - done);
    use(range.begin + done, pattern_element(at, salt, range.shift), length);
    done += length;
  }
}

/// What a rank receives by a matrix: the blocks of rank 0, 1, ... one after the other.
std::vector<PatternRange> received_blocks(const DataCase& data, std::uint32_t rank) {
  const Blocks blocks(data);
  std::vector<PatternRange> ranges;
  std::size_t begin = 0;
  for (std::uint32_t from = 0; from < data.ranks; ++from) {
    const std::size_t length = blocks.length(from, rank);
    ranges.push_back({begin, length, blocks.begin(from, rank), shift_of(from)});
    begin += length;
  }
  return ranges;
}

}  // namespace

std::size_t DataCase::send_count(std::uint32_t rank) const {
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::gather: return Shards(*this).length(rank);
    case CollectiveKind::broadcast:
    case CollectiveKind::scatter: return rank == root ? count : 0;
    case CollectiveKind::all_to_all: return has_matrix(*this) ? Blocks(*this).begin(rank, ranks) : count;
    default: return count;
  }
}

std::size_t DataCase::receive_count(std::uint32_t rank) const {
  switch (kind) {
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter: return Shards(*this).length(rank);
    case CollectiveKind::reduce:
    case CollectiveKind::gather: return rank == root ? count : 0;
    case CollectiveKind::all_to_all:
      return has_matrix(*this) ? Blocks(*this).received(rank) : Shards(*this).length(rank) * ranks;
    default: return count;
  }
}

std::optional<std::ptrdiff_t> DataCase::in_place_shift(std::uint32_t rank) const {
  if (kind == CollectiveKind::all_to_all) return std::nullopt;
  const Shards shards(*this);
  const auto begin = shards.length(rank) == 0 ? 0 : static_cast<std::ptrdiff_t>(shards.begin(rank));
  switch (kind) {
    case CollectiveKind::send_recv: return std::nullopt;
    case CollectiveKind::all_gather:
    case CollectiveKind::gather: return begin;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter: return -begin;
    default: return 0;
  }
}

KnownData sent_data(const DataCase& data, std::uint32_t rank) {
  const bool sends_shard = data.kind == CollectiveKind::all_gather || data.kind == CollectiveKind::gather;
  const std::uint64_t first = sends_shard ? Shards(data).begin(rank) : 0;
  if (multiplies(data)) {
    return make_known(data, {{0, data.send_count(rank), first, 0}},
                      [&](std::uint64_t place) { return static_cast<double>(value_of(data, rank, place)); });
  }
  return make_known(data, {{0, data.send_count(rank), first, shift_of(rank)}},
                    [&](std::uint64_t place) { return static_cast<double>(value_of(data, 0, place)); });
}

KnownData expected_data(const DataCase& data, std::uint32_t rank) {
  if (has_matrix(data)) {
    return make_known(data, received_blocks(data, rank),
                      [&](std::uint64_t place) { return static_cast<double>(value_of(data, 0, place)); });
  }
  const Shards shards(data);
  const std::uint64_t count = data.receive_count(rank);
  if (reduces(data.kind)) {
    const std::uint64_t first = data.kind == CollectiveKind::reduce_scatter ? shards.begin(rank) : 0;
    const bool averages = data.operation == ReduceOperation::avg;
    return make_known(data, {{0, count, first, 0}}, [&](std::uint64_t place) {
      const std::int64_t whole = combine(data, place);
      if (!averages) return static_cast<double>(whole);
      return is_float(data.type) ? static_cast<double>(whole) / data.ranks : static_cast<double>(whole / data.ranks);
    });
  }
  std::vector<PatternRange> ranges;
  switch (data.kind) {
    case CollectiveKind::scatter: ranges.push_back({0, count, shards.begin(rank), shift_of(data.root)}); break;
    case CollectiveKind::all_gather:
    case CollectiveKind::gather:
      for (std::uint32_t from = 0; count > 0 && from < data.ranks; ++from) {
        ranges.push_back({shards.begin(from), shards.length(from), shards.begin(from), shift_of(from)});
      }
      break;
    case CollectiveKind::all_to_all:
      for (std::uint32_t from = 0; from < data.ranks; ++from) {
        const std::uint64_t block = shards.length(rank);
        ranges.push_back({from * block, block, shards.begin(rank), shift_of(from)});
      }
      break;
    case CollectiveKind::send_recv:
      ranges.push_back({0, count, 0, shift_of((rank + data.ranks - 1) % data.ranks)});
      break;
    default: ranges.push_back({0, count, 0, shift_of(data.root)});
  }
  return make_known(data, std::move(ranges),
                    [&](std::uint64_t place) { return static_cast<double>(value_of(data, 0, place)); });
}

void fill_send_buffer(const DataCase& data, std::uint32_t rank, void* send) {
  const KnownData known = sent_data(data, rank);
  const auto size = static_cast<std::size_t>(size_of(data.type));
  auto* const bytes = static_cast<std::byte*>(send);
  for (const PatternRange& range : known.ranges) {
    each_window(range, known.salt, [&](std::uint64_t to, std::uint64_t from, std::uint64_t length) {
      std::memcpy(bytes + to * size, known.table.data() + from * size, length * size);
    });
  }
}

CheckResult check_receive_buffer(const DataCase& data, std::uint32_t rank, const void* receive) {
  CheckResult result;
  const KnownData known = expected_data(data, rank);
  const bool rounds = reduces(data.kind) && data.operation == ReduceOperation::avg && is_float(data.type);
  const auto* const bytes = static_cast<const std::byte*>(receive);
  with_codec(data.type, [&](auto codec) {
    using Type = typename decltype(codec)::Type;
    const auto check_one = [&](std::uint64_t index, std::uint64_t place) {
      Type element;
      Type right;
      std::memcpy(&element, bytes + index * sizeof(Type), sizeof(Type));
      std::memcpy(&right, known.table.data() + place * sizeof(Type), sizeof(Type));
      const double expected = rounds ? known.numbers[place] : codec.decode(right);
      const double actual = codec.decode(element);
      if (rounds ? std::abs(actual - expected) <= expected * codec.rounding : element == right) return;
      if (result.wrong == 0) result.first = {index, expected, actual};
      ++result.wrong;
    };
    for (const PatternRange& range : known.ranges) {
      each_window(range, known.salt, [&](std::uint64_t index, std::uint64_t place, std::uint64_t length) {
        const std::size_t compared = length * sizeof(Type);
        if (std::memcmp(bytes + index * sizeof(Type), known.table.data() + place * sizeof(Type), compared) == 0) return;
        for (std::uint64_t i = 0; i < length; ++i) check_one(index + i, place + i);
      });
    }
  });
  return result;
}

}  // namespace espalier::engine
