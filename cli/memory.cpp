#include "cli/memory.h"

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#ifdef ESPALIER_HAS_MIMALLOC
#include <mimalloc.h>
#else
#include <malloc.h>
#endif

#include "cli/command.h"
#include "cli/output/exit_code.h"
#include "cli/output/write_all.h"

namespace espalier::cli {
namespace {

[[noreturn]] void end_without_memory() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    write_all(STDERR_FILENO, out_of_memory);
    _exit(static_cast<int>(ExitCode::check_failed));
  } catch (...) {
    // As without a handler.
  }
  std::abort();
}

}  // namespace

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

void name_lack_of_memory() { std::set_terminate(end_without_memory); }

}  // namespace espalier::cli

#ifdef ESPALIER_HAS_MIMALLOC

// mimalloc is built as C where distributions package it: its own operators cannot throw and abort instead. Its
// operators delete take what these return.

namespace {

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return or_throw(mi_malloc(size)); }
void* operator new[](std::size_t size) { return or_throw(mi_malloc(size)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return mi_malloc(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return mi_malloc(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return or_throw(mi_malloc_aligned(size, static_cast<std::size_t>(alignment)));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return or_throw(mi_malloc_aligned(size, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return mi_malloc_aligned(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return mi_malloc_aligned(size, static_cast<std::size_t>(alignment));
}

#endif
