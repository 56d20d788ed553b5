#include "engine/check/data_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

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
  [[nodiscard]] std::uint32_t owner(std::size_t element) const {
    return static_cast<std::uint32_t>(std::ranges::upper_bound(begins_, element) - begins_.begin() - 1);
  }

 private:
  std::vector<std::size_t> begins_;  ///< Ranks + 1.
};

/// What a rank brings for element `index` of the message.
std::int64_t value_of(const DataCase& data, std::uint32_t rank, std::size_t index) {
  const std::uint64_t at = index + data.seed;
  if (reduces(data.kind) && data.operation == ReduceOperation::prod) {
    // One rank brings a factor 2 and one a factor 3.
    const std::uint64_t turn = at % data.ranks;
    return std::int64_t{turn == rank ? 2 : 1} * (turn == (rank + 1) % data.ranks ? 3 : 1);
  }
  return static_cast<std::int64_t>((at * 2654435761U + std::uint64_t{rank} * 40503U) >> 7U & 3U);
}

/// What all ranks' values for an element make together, before an average is divided.
std::int64_t combine(const DataCase& data, std::size_t index) {
  if (data.operation == ReduceOperation::prod) return 6;
  std::int64_t result = value_of(data, 0, index);
  for (std::uint32_t rank = 1; rank < data.ranks; ++rank) {
    const std::int64_t value = value_of(data, rank, index);
    switch (data.operation) {
      case ReduceOperation::min: result = std::min(result, value); break;
      case ReduceOperation::max: result = std::max(result, value); break;
      default: result += value;
    }
  }
  return result;
}

/// What element `index` of a rank's receive buffer has to be; `is_average`: divided by the ranks.
std::int64_t expected_value(const DataCase& data, const Shards& shards, std::uint32_t rank, std::size_t index) {
  switch (data.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce: return combine(data, index);
    case CollectiveKind::reduce_scatter: return combine(data, shards.begin(rank) + index);
    case CollectiveKind::broadcast: return value_of(data, data.root, index);
    case CollectiveKind::scatter: return value_of(data, data.root, shards.begin(rank) + index);
    case CollectiveKind::all_gather:
    case CollectiveKind::gather: return value_of(data, shards.owner(index), index);
    case CollectiveKind::all_to_all: {
      const std::size_t block = shards.length(rank);
      return value_of(data, static_cast<std::uint32_t>(index / block), shards.begin(rank) + index % block);
    }
    case CollectiveKind::send_recv: return value_of(data, (rank + data.ranks - 1) % data.ranks, index);
  }
  return 0;
}

/// 16-bit floats as numbers and back; only whole numbers up to 256 are encoded.
double decode_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int mantissa = bits & 0x3FF;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1F) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 1024, exponent - 25);
}

std::uint16_t encode_half(std::int64_t value) {
  if (value == 0) return 0;
  const int exponent = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(value))) - 1;
  return static_cast<std::uint16_t>((exponent + 15) << 10 | ((value << (10 - exponent)) & 0x3FF));
}

double decode_bfloat(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }

std::uint16_t encode_bfloat(std::int64_t value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16U);
}

/// How one element type is written and read.
template <class Stored>
struct Plain {
  using Type = Stored;
  static Stored encode(std::int64_t value) { return static_cast<Stored>(value); }
  static double decode(Stored value) { return static_cast<double>(value); }
  static constexpr double rounding = std::is_same_v<Stored, float> ? 0x1p-23 : 0x1p-52;
};
struct Half {
  using Type = std::uint16_t;
  static Type encode(std::int64_t value) { return encode_half(value); }
  static double decode(Type value) { return decode_half(value); }
  static constexpr double rounding = 0x1p-10;
};
struct Bfloat {
  using Type = std::uint16_t;
  static Type encode(std::int64_t value) { return encode_bfloat(value); }
  static double decode(Type value) { return decode_bfloat(value); }
  static constexpr double rounding = 0x1p-7;
};

/// Calls with the codec of the type.
template <class Use>
void with_codec(ElementType type, const Use& use) {
  switch (type) {
    case ElementType::int8: return use(Plain<std::int8_t>());
    case ElementType::uint8: return use(Plain<std::uint8_t>());
    case ElementType::int32: return use(Plain<std::int32_t>());
    case ElementType::uint32: return use(Plain<std::uint32_t>());
    case ElementType::int64: return use(Plain<std::int64_t>());
    case ElementType::uint64: return use(Plain<std::uint64_t>());
    case ElementType::float16: return use(Half());
    case ElementType::bfloat16: return use(Bfloat());
    case ElementType::float32: return use(Plain<float>());
    case ElementType::float64: return use(Plain<double>());
  }
}

bool is_float(ElementType type) { return type >= ElementType::float16; }

}  // namespace

std::size_t DataCase::send_count(std::uint32_t rank) const {
  switch (kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::gather: return Shards(*this).length(rank);
    case CollectiveKind::broadcast:
    case CollectiveKind::scatter: return rank == root ? count : 0;
    default: return count;
  }
}

std::size_t DataCase::receive_count(std::uint32_t rank) const {
  switch (kind) {
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter: return Shards(*this).length(rank);
    case CollectiveKind::reduce:
    case CollectiveKind::gather: return rank == root ? count : 0;
    case CollectiveKind::all_to_all: return Shards(*this).length(rank) * ranks;
    default: return count;
  }
}

std::optional<std::ptrdiff_t> DataCase::in_place_shift(std::uint32_t rank) const {
  const Shards shards(*this);
  const auto begin = shards.length(rank) == 0 ? 0 : static_cast<std::ptrdiff_t>(shards.begin(rank));
  switch (kind) {
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv: return std::nullopt;
    case CollectiveKind::all_gather:
    case CollectiveKind::gather: return begin;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::scatter: return -begin;
    default: return 0;
  }
}

void fill_send_buffer(const DataCase& data, std::uint32_t rank, void* send) {
  const bool sends_shard = data.kind == CollectiveKind::all_gather || data.kind == CollectiveKind::gather;
  const std::size_t first = sends_shard ? Shards(data).begin(rank) : 0;
  with_codec(data.type, [&](auto codec) {
    auto* elements = static_cast<typename decltype(codec)::Type*>(send);
    const std::size_t count = data.send_count(rank);
    for (std::size_t i = 0; i < count; ++i) elements[i] = codec.encode(value_of(data, rank, first + i));
  });
}

CheckResult check_receive_buffer(const DataCase& data, std::uint32_t rank, const void* receive) {
  CheckResult result;
  const Shards shards(data);
  const bool averages = reduces(data.kind) && data.operation == ReduceOperation::avg;
  with_codec(data.type, [&](auto codec) {
    const auto* elements = static_cast<const typename decltype(codec)::Type*>(receive);
    const std::size_t count = data.receive_count(rank);
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t whole = expected_value(data, shards, rank, i);
      bool is_right = false;
      double expected = 0;
      if (averages && is_float(data.type)) {
        expected = static_cast<double>(whole) / data.ranks;
        is_right = std::abs(codec.decode(elements[i]) - expected) <= expected * codec.rounding;
      } else {
        if (averages) whole /= data.ranks;
        const auto encoded = codec.encode(whole);
        expected = codec.decode(encoded);
        is_right = elements[i] == encoded;
      }
      if (is_right) continue;
      if (result.wrong == 0) result.first = {i, expected, codec.decode(elements[i])};
      ++result.wrong;
    }
  });
  return result;
}

}  // namespace espalier::engine
