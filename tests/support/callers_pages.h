#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/engine_cases.h"
#include "tests/support/local_ranks.h"

/// Pages of a caller's, and children made by fork that look at them.
namespace espalier::test {

inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t buffer_bytes = 64 * page_bytes;
inline constexpr std::size_t buffer_count = buffer_bytes / sizeof(float);

/// What a forked child exits with; 255 where it does not exit.
template <class Body>
int in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

inline bool all_are(const float* data, float value) {
  return std::all_of(data, data + buffer_count, [&](float each) { return each == value; });
}

inline void* map_buffer(int flags, int protection = PROT_READ | PROT_WRITE, int fd = -1) {
  return mmap(nullptr, buffer_bytes, protection, flags | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
}

/// One rank, which is all that memory needs.
inline void with_a_rank(const std::function<void(Communicator&)>& body) {
  PlannedSource flat("flat");
  run_ranks(1, flat.source(), {}, body);
}

}  // namespace espalier::test
