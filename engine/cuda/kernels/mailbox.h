#pragma once

// Tested by: tests/unit/engine/cuda/elements_test.cpp

#include <cstdint>
#include <cstring>

#include "engine/cuda/elements.h"
#include "engine/cuda/kernels/kernel_call.h"
#include "engine/cuda/kernels/vectors.h"

/// Mailboxes: data that says by itself that it is there. A word is 8 bytes that are read and written as one: 4 bytes of
/// data below, the number of the call above. Who reads a word with its call's number has the data, whatever the order
/// of other accesses; two words are a packet of 8 bytes of data, so that the largest element lies in one. Of the team:
/// `load_word` and `store_word`, relaxed at system scope.
namespace espalier::engine::cuda {

inline constexpr std::uint64_t packet_data = 8;

template <std::size_t bytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using Type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using Type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using Type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using Type = std::uint64_t;
};

/// Up to 8 bytes of elements from `index` on; those behind the end are 0.
template <class T>
ESPALIER_KERNEL_CODE std::uint64_t load_packet(const unsigned char* from, std::uint64_t packet,
                                               std::uint64_t elements) {
  using Bits = typename UnsignedOf<sizeof(T)>::Type;
  constexpr std::uint64_t lanes = packet_data / sizeof(T);
  std::uint64_t data = 0;
  ESPALIER_UNROLL
  for (std::uint64_t lane = 0; lane < lanes; ++lane) {
    const std::uint64_t at = packet * lanes + lane;
    if (at < elements) data |= std::uint64_t{load<Bits>(from, at)} << (8 * sizeof(T) * lane);
  }
  return data;
}

template <class T>
ESPALIER_KERNEL_CODE void store_packet(unsigned char* to, std::uint64_t packet, std::uint64_t elements,
                                       std::uint64_t data) {
  using Bits = typename UnsignedOf<sizeof(T)>::Type;
  constexpr std::uint64_t lanes = packet_data / sizeof(T);
  ESPALIER_UNROLL
  for (std::uint64_t lane = 0; lane < lanes; ++lane) {
    const std::uint64_t at = packet * lanes + lane;
    if (at < elements) store(to, at, static_cast<Bits>(data >> (8 * sizeof(T) * lane)));
  }
}

template <class T, class Operation>
ESPALIER_KERNEL_CODE std::uint64_t combine_packets(std::uint64_t a, std::uint64_t b) {
  constexpr std::size_t lanes = packet_data / sizeof(T);
  T left[lanes];
  T right[lanes];
  memcpy(left, &a, packet_data);
  memcpy(right, &b, packet_data);
  ESPALIER_UNROLL
  for (std::size_t lane = 0; lane < lanes; ++lane) left[lane] = combine<Operation>(left[lane], right[lane]);
  std::uint64_t result;
  memcpy(&result, left, packet_data);
  return result;
}

template <class Team>
ESPALIER_KERNEL_CODE void fill_packet(std::uint64_t* mailbox, std::uint64_t packet, std::uint32_t flag,
                                      std::uint64_t data, const Team& team) {
  const std::uint64_t above = std::uint64_t{flag} << 32;
  team.store_word(mailbox + 2 * packet, above | (data & 0xFFFFFFFF));
  team.store_word(mailbox + 2 * packet + 1, above | data >> 32);
}

/// Whether a packet has come with this flag; then its data is what it brought.
template <class Team>
ESPALIER_KERNEL_CODE bool read_packet(const std::uint64_t* mailbox, std::uint64_t packet, std::uint32_t flag,
                                      std::uint64_t& data, const Team& team) {
  const std::uint64_t low = team.load_word(mailbox + 2 * packet);
  const std::uint64_t high = team.load_word(mailbox + 2 * packet + 1);
  data = (low & 0xFFFFFFFF) | high << 32;
  return low >> 32 == flag && high >> 32 == flag;
}

}  // namespace espalier::engine::cuda
