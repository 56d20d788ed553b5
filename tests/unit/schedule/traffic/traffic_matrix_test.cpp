#include "schedule/traffic/traffic_matrix.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <numeric>

#include "schedule/collective.h"

namespace espalier {
namespace {

using Numbers = std::vector<std::int64_t>;

std::string message_of(std::string_view text) {
  const auto read = parse_traffic(text, "m");
  return read ? "none" : read.error().message;
}

TEST(TrafficMatrix, CsvIsReadHoweverItIsParted) {
  for (const char* text :
       {"0,5\n3,1\n", "# bytes\n0, 5,\n3, 1,\n\n", "0;5\n3;1", "0\t5\r\n3\t1\r\n", "  0 5\n3   1  # end",
        "\xEF\xBB\xBF"
        "0,5e0\n3.0,1\n"}) {
    const auto read = parse_traffic(text, "m");
    ASSERT_TRUE(read) << text << read.error().message;
    EXPECT_EQ(read->ranks, 2U);
    EXPECT_EQ(read->blocks, (Numbers{0, 5, 3, 1}));
    EXPECT_TRUE(read->are_bytes);
    EXPECT_EQ(read->largest_line(), 6);  // Rank 1 receives 5 + 1.
  }
}

TEST(TrafficMatrix, JsonIsAListOfListsOrHasOne) {
  for (const char* text : {"[[0, 5], [3, 1]]", " {\"matrix\": [[0, 5], [3, 1.0]]}"}) {
    const auto read = parse_traffic(text, "m");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->blocks, (Numbers{0, 5, 3, 1}));
  }
}

/// 0.5 and 1.5 of 2 are a quarter and three of 2^40; what is not zero is at least 1.
TEST(TrafficMatrix, FractionsAreWeights) {
  const auto read = parse_traffic("0,0.5\n1.5,0\n", "m");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->are_bytes);
  EXPECT_EQ(read->blocks, (Numbers{0, std::int64_t{1} << 38, 3 * (std::int64_t{1} << 38), 0}));
  EXPECT_EQ(parse_traffic("0,1e-30\n1.5,0\n", "m")->blocks[1], 1);
}

TEST(TrafficMatrix, WrongTextsAreRefusedWithTheirPlace) {
  EXPECT_EQ(message_of(""), "m:1:1: there is no matrix");
  EXPECT_EQ(message_of("1,2\n3\n"), "m:2:1: row 1 has 1 numbers, and the first has 2");
  EXPECT_EQ(message_of("1,2\n"), "m:1:1: there are 1 rows of 2 numbers");
  EXPECT_EQ(message_of("1,2\n3,4\n5,6"), "m:3:1: there are more rows than the 2 columns");
  EXPECT_EQ(message_of("1,2\n3,x\n"), "m:2:3: 'x' is not a number");
  EXPECT_EQ(message_of("1,-2\n3,4\n"), "m:1:3: -2: it is below zero");
  EXPECT_EQ(message_of("1,nan\n3,4\n"), "m:1:3: nan: it is not finite");
  EXPECT_EQ(message_of("1,,2\n"), "m:1:3: a number is missing");
  EXPECT_EQ(message_of("1,1e300\n3,4\n"), "m:1:3: 1e300: it is more than 2^52");
  EXPECT_EQ(message_of("0,0\n0,0\n"), "m: all blocks are zero");
  EXPECT_EQ(message_of("[[1, 2], [3]]"), "m:1:10: row 1 has 1 numbers, and the first has 2");
  EXPECT_EQ(message_of("[[1, -2], [3, 4]]"), "m:1:6: -2: it is below zero");
  EXPECT_EQ(message_of("{\"rows\": 3}"), "m:1:2: there is no key 'rows' here");
  EXPECT_EQ(message_of("{}"), "m:1:1: the key \"matrix\" is missing");
  EXPECT_EQ(message_of("[[1, 2], [3, 4]] 5").substr(0, 7), "m:1:18:");
}

std::string npy(std::string header, int version, std::string_view data) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  const std::size_t prefix = version == 1 ? 10 : 12;
  while ((prefix + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  for (std::size_t i = 0; i < prefix - 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + std::string(data);
}

template <class T>
std::string raw(std::vector<T> values, bool swapped = false) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  for (std::size_t i = 0; swapped && i < values.size(); ++i) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i * sizeof(T)),
                 bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * sizeof(T)));
  }
  return bytes;
}

TEST(TrafficMatrix, NpyIsReadInEveryVersionTypeAndOrder) {
  const std::string shape = ", 'shape': (2, 2), }";
  const std::vector<std::string> files = {
      npy("{'descr': '<i8', 'fortran_order': False" + shape, 1, raw<std::int64_t>({0, 5, 3, 1})),
      npy("{'descr': '<i8', 'fortran_order': True" + shape, 2, raw<std::int64_t>({0, 3, 5, 1})),
      npy("{'descr': '>i4', 'fortran_order': False" + shape, 3, raw<std::int32_t>({0, 5, 3, 1}, true)),
      npy("{'descr': '|u1', 'fortran_order': False" + shape, 1, raw<std::uint8_t>({0, 5, 3, 1})),
      npy("{'descr': '<f8', 'fortran_order': False" + shape, 1, raw<double>({0, 5, 3, 1})),
      npy("{'descr': '<f4', 'fortran_order': False" + shape, 1, raw<float>({0, 5, 3, 1}))};
  for (const std::string& file : files) {
    const auto read = parse_traffic(file, "m");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->blocks, (Numbers{0, 5, 3, 1}));
  }
}

TEST(TrafficMatrix, WrongNpyIsRefused) {
  const std::string head = "{'descr': '<i8', 'fortran_order': False, 'shape': ";
  EXPECT_EQ(message_of(npy(head + "(2, 3), }", 1, raw<std::int64_t>({0, 5, 3, 1, 1, 1}))),
            "m: byte 6: the shape is (2, 3), no square matrix");
  EXPECT_EQ(message_of(npy(head + "(2, 2), }", 1, raw<std::int64_t>({0, 5, 3}))),
            "m: byte 152: the data is cut off: 2 x 2 numbers of 8 bytes are to follow");
  EXPECT_EQ(message_of(npy(head + "(2, 2), }", 1, raw<std::int64_t>({0, 5, -3, 1}))),
            "m: byte 144: -3: it is below zero");
  EXPECT_EQ(message_of(npy(head + "(2, 2), }", 9, raw<std::int64_t>({0, 5, 3, 1}))),
            "m: byte 6: version 9 of the format is not known");
  EXPECT_EQ(message_of(npy("{'descr': '<c16', 'fortran_order': False, 'shape': (2, 2), }", 1, "")),
            "m: byte 6: the type '<c16' is not one of numbers");
  EXPECT_EQ(message_of("\x93NUMPY\x01"), "m: byte 7: the header is cut off");
}

/// Every rank sends the same to each rank; the most popular of 4 by a law of 1 gets 1 / (1 + 1/2 + 1/3 + 1/4) = 12/25.
TEST(TrafficMatrix, ZipfIsALawOverRanksInARandomOrder) {
  const TrafficMatrix one = zipf_traffic(4, {.exponent = 1, .seed = 3});
  Numbers row(one.blocks.begin(), one.blocks.begin() + 4);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(one.blocks[i], row[i % 4]);
  std::ranges::sort(row);
  EXPECT_EQ(row, (Numbers{120'000'000, 160'000'000, 240'000'000, 480'000'000}));
  EXPECT_EQ(zipf_traffic(4, {.exponent = 1, .seed = 3}).blocks, one.blocks);
  EXPECT_NE(zipf_traffic(4, {.exponent = 1, .seed = 4}).blocks, one.blocks);
  const auto described = load_traffic("zipf:1,seed=3", 4);
  ASSERT_TRUE(described);
  EXPECT_EQ(described->blocks, one.blocks);
  EXPECT_FALSE(described->are_bytes);
}

/// Six experts on three ranks: expert e on rank e / 2.
TEST(TrafficMatrix, RoutingCountsCopies) {
  const char* text = "token,rank,expert,expert\n0,0,0,1\n1,0,2,5\n2,2,4,-1\n";
  const auto counted = parse_routing(text, "t", 3, {});
  ASSERT_TRUE(counted) << counted.error().message;
  EXPECT_EQ(counted->blocks, (Numbers{2, 1, 1, 0, 0, 0, 0, 0, 1}));
  EXPECT_FALSE(counted->are_bytes);
  const auto once = parse_routing("0,0,1\n0,2,5\n2,4\n", "t", 3, {.bytes_per_token = 100, .deduplicated = true});
  ASSERT_TRUE(once) << once.error().message;
  EXPECT_EQ(once->blocks, (Numbers{100, 100, 100, 0, 0, 0, 0, 0, 100}));
  EXPECT_TRUE(once->are_bytes);
  EXPECT_EQ(parse_routing("3,0\n", "t", 3, {}).error().message, "t:1:1: 3 is not a rank from 0 to 2");
  EXPECT_EQ(parse_routing("0,7\n", "t", 3, {.experts = 6}).error().message, "t:1:3: expert 7 is not one of 6");
  EXPECT_EQ(parse_routing("0,7\n", "t", 3, {.experts = 7}).error().message,
            "t: 7 experts are no whole number for each of 3 ranks");
}

TEST(TrafficMatrix, PairsAreBlocksAmongNothing) {
  const auto pairs = load_traffic("pairs:0-2,2-1=3", 3);
  ASSERT_TRUE(pairs) << pairs.error().message;
  EXPECT_EQ(pairs->blocks, (Numbers{0, 0, 1, 0, 0, 0, 0, 3, 0}));
  EXPECT_FALSE(pairs->are_bytes);
}

/// Distances of three ranks are 0, 1, 2; half of that and half of their mean is 1/2, 1, 3/2.
TEST(TrafficMatrix, SpreadIsByDistance) {
  EXPECT_EQ(spread_traffic(3, 1).blocks, (Numbers{0, 1, 2, 2, 0, 1, 1, 2, 0}));
  EXPECT_EQ(spread_traffic(3, 0).blocks, Numbers(9, 1));
  EXPECT_EQ(spread_traffic(1, 1).blocks, Numbers{1});
  Numbers half = spread_traffic(3, 0.5).blocks;
  const std::int64_t own = half[0];
  for (std::int64_t& block : half) block /= own;
  EXPECT_EQ(half, (Numbers{1, 2, 3, 3, 1, 2, 2, 3, 1}));
  EXPECT_EQ(load_traffic("spread:1", 3)->blocks, spread_traffic(3, 1).blocks);
  constexpr std::size_t most = 1024;
  const Numbers many = spread_traffic(most, 0.999).blocks;  // As the largest matrix: a 64th of its sum.
  EXPECT_LE(std::accumulate(many.begin(), many.end(), std::int64_t{0}), max_matrix_sum / 64);
  for (const char* wrong : {"spread:", "spread:1.5", "spread:-1", "spread:nan", "spread:x"}) {
    EXPECT_FALSE(load_traffic(wrong, 3)) << wrong;
  }
}

TEST(TrafficMatrix, WrongDescriptionsAreRefused) {
  const auto message = [](const char* described) {
    const auto read = load_traffic(described, 4);
    return read ? std::string("none") : read.error().message;
  };
  EXPECT_EQ(message("zipf:x"), "zipf:x: the exponent is no number from 0 to 10");
  EXPECT_EQ(message("zipf:1,seed=-1"), "seed=-1: it is not a whole number");
  EXPECT_EQ(message("zipf:1,sed=1"), "zipf has no 'sed'");
  EXPECT_EQ(message("pairs:"), "pairs: '' is no pair of ranks");
  EXPECT_EQ(message("pairs:0-1,"), "pairs: '' is no pair of ranks");
  EXPECT_EQ(message("pairs:0>1"), "pairs: '0>1' is no pair of ranks");
  EXPECT_EQ(message("pairs:0--1"), "pairs: '0--1' is no pair of ranks");
  EXPECT_EQ(message("pairs:0=1-2"), "pairs: '0=1-2' is no pair of ranks");
  EXPECT_EQ(message("pairs:0-4"), "pairs: '0-4' names a rank that is none of 4");
  EXPECT_EQ(message("pairs:1-1"), "pairs: '1-1' is a rank and itself");
  EXPECT_EQ(message("pairs:0-1,0-1=2"), "pairs: '0-1=2' is named twice");
  EXPECT_EQ(message("pairs:0-1=0"), "pairs: '0-1=0' has no weight from 1 to 16777216");
  EXPECT_EQ(message("pairs:0-1=99999999999"), "pairs: '0-1=99999999999' has no weight from 1 to 16777216");
  EXPECT_EQ(message("routing:/no/file"), "/no/file cannot be read");
  EXPECT_EQ(message("/no/file"), "/no/file cannot be read");
}

TEST(TrafficMatrix, WhatIsNoFileIsRefused) {
  for (const char* path : {"/tmp", "/dev/null/none"}) {
    const auto read = load_traffic(path, 4);
    ASSERT_FALSE(read.has_value()) << path;
    EXPECT_EQ(read.error().code, ErrorCode::unavailable) << path;
  }
}

}  // namespace
}  // namespace espalier
