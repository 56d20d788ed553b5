#include "sweep/shard.h"

#include <charconv>
#include <string>

namespace espalier::sweep {
namespace {

bool is_of_same_plan(const Key& a, const Key& b) { return a.algorithm == b.algorithm; }

std::size_t count_plans(const std::vector<Unit>& units) {
  std::size_t count = 0;
  for (const Unit& unit : units) {
    for (std::size_t i = 0; i < unit.keys.size(); ++i) {
      if (i == 0 || !is_of_same_plan(unit.keys[i - 1], unit.keys[i])) ++count;
    }
  }
  return count;
}

}  // namespace

Result<Shard> parse_shard(std::string_view text) {
  Shard shard;
  const char* const end = text.data() + text.size();
  const auto number = std::from_chars(text.data(), end, shard.number);
  const bool has_slash = number.ec == std::errc() && number.ptr != end && *number.ptr == '/';
  const auto count = std::from_chars(has_slash ? number.ptr + 1 : end, end, shard.count);
  if (!has_slash || count.ec != std::errc() || count.ptr != end) {
    return espalier::fail(ErrorCode::invalid_input, "--shard: '" + std::string(text) + "' is not of the form i/n",
                          "write --shard 3/8 for the third of eight parts");
  }
  if (shard.number < 1 || shard.number > shard.count) {
    return espalier::fail(
        ErrorCode::invalid_input,
        "--shard: there is no part " + std::to_string(shard.number) + " of " + std::to_string(shard.count),
        "parts count from 1");
  }
  return shard;
}

void keep_shard(std::vector<Unit>& units, const Shard& shard) {
  if (shard.count == 1) return;
  constexpr std::size_t enough_plans = 4;  // per shard, so that none has much more to do than another
  const bool by_plan = count_plans(units) >= enough_plans * shard.count;
  std::size_t dealt = 0;
  for (Unit& unit : units) {
    std::vector<Key> kept;
    for (std::size_t i = 0; i < unit.keys.size(); ++i) {
      const bool joins = by_plan && i > 0 && is_of_same_plan(unit.keys[i - 1], unit.keys[i]);
      if (!joins) ++dealt;
      if ((dealt - 1) % shard.count == shard.number - 1) kept.push_back(unit.keys[i]);
    }
    unit.keys = std::move(kept);
  }
  std::erase_if(units, [](const Unit& unit) { return unit.keys.empty(); });
}

}  // namespace espalier::sweep
