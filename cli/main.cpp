#include <malloc.h>

#include "cli/command.h"

int main(int argc, char** argv) {
  // A command simulates again and again with memory of the same size. Given back in between, all of it would be cleared
  // page by page each time.
  constexpr int never = 2'000'000'000;
  mallopt(M_MMAP_THRESHOLD, never);
  mallopt(M_TRIM_THRESHOLD, never);
  return espalier::cli::run_command(argc, argv);
}
