#include "cli/command.h"

#ifdef ESPALIER_HAS_MIMALLOC
#include <mimalloc.h>
#else
#include <malloc.h>
#endif

namespace {

/// A command simulates again and again with memory of the same size. Given back in between, all of it would be cleared
/// page by page each time; in huge pages there are few pages to clear (docs/decisions/0015).
void keep_memory() {
#ifdef ESPALIER_HAS_MIMALLOC
  constexpr long never = 1'000'000'000;  // ms
  mi_option_enable(mi_option_large_os_pages);
#if MI_MALLOC_VERSION < 210
  mi_option_disable(mi_option_page_reset);
  mi_option_set(mi_option_decommit_delay, never);
#else
  mi_option_set(mi_option_purge_delay, never);
#endif
#else
  constexpr int never = 2'000'000'000;
  constexpr int largest_that_glibc_takes = 32 << 20;
  mallopt(M_MMAP_THRESHOLD, largest_that_glibc_takes);
  mallopt(M_TRIM_THRESHOLD, never);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_memory();
  return espalier::cli::run_command(argc, argv);
}
