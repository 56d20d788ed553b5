// Pages of a caller's that ranks share for a time: mappings that others see are left alone, and locks, limits and what
// a process may have of mappings and descriptors are as before.
#include "engine/memory/page_map.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "tests/support/callers_pages.h"

namespace espalier::engine {
namespace {

using test::buffer_bytes;
using test::in_child;
using test::map_buffer;
using test::page_bytes;
using test::with_a_rank;

std::size_t entries_in(const char* folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

/// Refused, and what its owner writes afterwards is seen through `others`.
void expect_left_alone(Communicator& ranks, void* data, volatile char* others, const std::string& why) {
  const auto refused = ranks.register_buffer(data, buffer_bytes);
  ASSERT_FALSE(refused) << why;
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_input);
  EXPECT_NE(refused.error().message.find(why), std::string::npos) << refused.error().message;
  if (others != nullptr) {
    static_cast<char*>(data)[page_bytes] = 'x';
    EXPECT_EQ(others[page_bytes], 'x');
  }
}

TEST(PageMap, MappingsThatOthersSeeAreRefused) {
  with_a_rank([](Communicator& ranks) {
    const FileDescriptor file(memfd_create("application", 0));
    ASSERT_EQ(ftruncate(file.get(), buffer_bytes), 0);
    void* const others = map_buffer(MAP_SHARED, PROT_READ | PROT_WRITE, file.get());
    void* const of_file = map_buffer(MAP_SHARED, PROT_READ | PROT_WRITE, file.get());
    expect_left_alone(ranks, of_file, static_cast<char*>(others), "is shared with other processes (/memfd:application");
    void* const own_of_file = map_buffer(MAP_PRIVATE, PROT_READ | PROT_WRITE, file.get());
    expect_left_alone(ranks, own_of_file, nullptr, "is mapped from the file /memfd:application");
    void* const with_children = map_buffer(MAP_SHARED);
    expect_left_alone(ranks, with_children, nullptr, "is shared with other processes");
    EXPECT_EQ(in_child([&] {
                static_cast<char*>(with_children)[0] = 'c';
                return 0;
              }),
              0);
    EXPECT_EQ(static_cast<char*>(with_children)[0], 'c');
    for (void* pages : {others, of_file, own_of_file, with_children}) munmap(pages, buffer_bytes);
  });
}

TEST(PageMap, ReadOnlyAndForeignPagesInAnyPlaceOfABufferAreRefused) {
  with_a_rank([](Communicator& ranks) {
    for (const std::size_t at : {std::size_t{0}, buffer_bytes / 2, buffer_bytes - page_bytes}) {
      auto* const pages = static_cast<char*>(map_buffer(MAP_PRIVATE));
      mprotect(pages + at, page_bytes, PROT_READ);
      expect_left_alone(ranks, pages, nullptr, "is mapped 'r--p', not readable and writable");
      EXPECT_EQ(in_child([&] {
                  pages[at] = 1;  // Still read-only.
                  return 0;
                }),
                255);
      munmap(pages + at, page_bytes);
      const auto refused = ranks.register_buffer(pages, buffer_bytes);  // A hole.
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
      munmap(pages, buffer_bytes);
    }
  });
}

TEST(PageMap, ABufferIsOfOneJobAtATime) {
  with_a_rank([](Communicator& ranks) {
    void* const pages = map_buffer(MAP_PRIVATE);
    ASSERT_TRUE(ranks.register_buffer(pages, buffer_bytes));
    with_a_rank([&](Communicator& others) {
      expect_left_alone(others, pages, nullptr, "is shared with other processes (/memfd:espalier-buffer");
    });
    ASSERT_TRUE(ranks.deregister_buffer(pages));
    with_a_rank([&](Communicator& others) { EXPECT_TRUE(others.register_buffer(pages, buffer_bytes)); });
    munmap(pages, buffer_bytes);
  });
}

TEST(PageMap, RegisteringOftenCostsNoMappingsAndNoDescriptors) {
  with_a_rank([](Communicator& ranks) {
    constexpr std::size_t pieces = 20;
    auto* const pages = static_cast<std::byte*>(map_buffer(MAP_PRIVATE));
    std::memset(pages, 1, buffer_bytes);
    std::size_t mappings_before = 0;
    std::size_t descriptors_before = 0;
    for (int round = 0; round < 3; ++round) {
      for (std::size_t piece = 1; piece < 2 * pieces; piece += 2) {
        ASSERT_TRUE(ranks.register_buffer(pages + piece * page_bytes, page_bytes));
      }
      for (std::size_t piece = 1; piece < 2 * pieces; piece += 2) {
        ASSERT_TRUE(ranks.deregister_buffer(pages + piece * page_bytes));
      }
      if (round == 0) {  // What the first use needed stays the process's own.
        mappings_before = mappings();
        descriptors_before = entries_in("/proc/self/fd");
      }
    }
    EXPECT_LE(mappings(), mappings_before + 2);
    EXPECT_EQ(entries_in("/proc/self/fd"), descriptors_before);
    EXPECT_TRUE(check_replaceable(pages, buffer_bytes));
    EXPECT_EQ(std::count(pages, pages + buffer_bytes, std::byte{1}), static_cast<std::ptrdiff_t>(buffer_bytes));
    munmap(pages, buffer_bytes);
  });
}

TEST(PageMap, LocksStay) {
  with_a_rank([](Communicator& ranks) {
    void* const pages = map_buffer(MAP_PRIVATE);
    if (mlock(pages, buffer_bytes) != 0) GTEST_SKIP() << "no memory may be locked here";
    void* const unlocked = map_buffer(MAP_PRIVATE);
    EXPECT_TRUE(is_locked(pages, buffer_bytes));
    EXPECT_FALSE(is_locked(unlocked, buffer_bytes));
    ASSERT_TRUE(ranks.register_buffer(pages, buffer_bytes));
    ASSERT_TRUE(ranks.register_buffer(unlocked, buffer_bytes));
    EXPECT_TRUE(is_locked(pages, buffer_bytes));
    EXPECT_FALSE(is_locked(unlocked, buffer_bytes));
    ASSERT_TRUE(ranks.deregister_buffer(pages));
    ASSERT_TRUE(ranks.deregister_buffer(unlocked));
    EXPECT_TRUE(is_locked(pages, buffer_bytes));
    EXPECT_FALSE(is_locked(unlocked, buffer_bytes));
    munmap(pages, buffer_bytes);
    munmap(unlocked, buffer_bytes);
  });
}

TEST(PageMap, LimitsRefuseBuffersAndLeaveThemAsTheyAre) {
  with_a_rank([](Communicator& ranks) {
    auto* const pages = static_cast<std::byte*>(map_buffer(MAP_PRIVATE));
    std::memset(pages, 1, buffer_bytes);
    for (const auto limit : {RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_AS}) {
      rlimit before{};
      ASSERT_EQ(getrlimit(limit, &before), 0);
      const rlimit small{limit == RLIMIT_AS ? rlim_t{1} << 20 : rlim_t{3}, before.rlim_max};
      ASSERT_EQ(setrlimit(limit, &small), 0);
      const auto refused = ranks.register_buffer(pages, buffer_bytes);
      ASSERT_EQ(setrlimit(limit, &before), 0);
      ASSERT_FALSE(refused) << "limit " << limit;
      EXPECT_EQ(refused.error().code, ErrorCode::unavailable) << refused.error().message;
      EXPECT_FALSE(refused.error().help.empty());
      EXPECT_TRUE(check_replaceable(pages, buffer_bytes));
      EXPECT_EQ(std::count(pages, pages + buffer_bytes, std::byte{1}), static_cast<std::ptrdiff_t>(buffer_bytes));
    }
    munmap(pages, buffer_bytes);
  });
}

}  // namespace
}  // namespace espalier::engine
