#include "lab/addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <ostream>

namespace espalier::lab {
namespace {

constexpr std::uint32_t first_data_address = 10U << 24U;
constexpr std::uint32_t first_control_address = (172U << 24U) | (16U << 16U);
constexpr unsigned data_bits = 24;
constexpr std::size_t max_ranks = 65536;

std::string dotted(std::uint32_t address) {
  constexpr std::uint32_t byte = 0xFF;
  return fmt::format("{}.{}.{}.{}", address >> 24U, (address >> 16U) & byte, (address >> 8U) & byte, address & byte);
}

}  // namespace

Result<AddressPlan> AddressPlan::make(std::size_t rank_count) {
  if (rank_count > max_ranks) {
    return fail(ErrorCode::too_large, fmt::format("a lab has at most {} ranks, not {}", max_ranks, rank_count));
  }
  return AddressPlan(rank_count);
}

AddressPlan::AddressPlan(std::size_t rank_count)
    : end_bits_(data_bits - static_cast<unsigned>(std::bit_width(rank_count - 1))), used_(rank_count, 0) {}

std::string AddressPlan::range_of(Rank rank) const {
  constexpr unsigned address_bits = 32;
  return fmt::format("{}/{}", dotted(first_data_address + (rank.value() << end_bits_)), address_bits - end_bits_);
}

std::string AddressPlan::control_address(Rank rank) const { return dotted(first_control_address + 2 + rank.value()); }

std::string AddressPlan::hub_address() { return dotted(first_control_address + 1); }

Result<std::string> AddressPlan::next(Rank rank) {
  std::uint32_t& used = used_[rank.index()];
  // The last address of a range stays free: as that of 10.0.0.0/8 it would be a broadcast.
  if (used + 2 >= (1U << end_bits_)) {
    return fail(ErrorCode::too_large, fmt::format("rank {} has more than {} ends of routes, which is what a lab of {} "
                                                  "ranks has addresses for",
                                                  rank.value(), used, used_.size()));
  }
  return dotted(first_data_address + (rank.value() << end_bits_) + ++used);
}

void write_addresses(std::ostream& out, std::span<const RouteAddresses> routes) {
  out << "[";
  for (std::size_t id = 0; id < routes.size(); ++id) {
    const RouteAddresses& route = routes[id];
    out << fmt::format(R"({}{{"route": {}, "src_rank": {}, "dst_rank": {}, "bind": "{}", "connect": "{}"}})",
                       id == 0 ? "\n" : ",\n", id, route.src.value(), route.dst.value(), route.bind, route.connect);
  }
  out << "\n]\n";
}

}  // namespace espalier::lab
