// Any text is read as the file of a sweep without harm, and so are the lists in it.

#include <cstdint>
#include <string>

#include "base/check.h"
#include "cli/flags/sweep_flags.h"
#include "sweep/spec_values.h"

namespace {

template <class T>
void check(const espalier::Result<T>& read) {
  ESPALIER_CHECK(read.has_value() || !read.error().message.empty(), "an error says what is wrong");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  cli::SweepFlags flags;
  flags.file = "fuzz";
  const auto read = flags.read_text(std::string(reinterpret_cast<const char*>(data), size));
  if (!read) {
    ESPALIER_CHECK(read.error().message.starts_with("fuzz:"), "an error says where");
    return 0;
  }
  constexpr std::int64_t element = 4;
  check(sweep::parse_collectives(flags.collectives));
  check(sweep::parse_size_list(flags.sizes, element));
  check(sweep::parse_chunks(flags.chunks, element));
  check(sweep::parse_models(flags.models));
  check(sweep::parse_protocols(flags.protocols));
  check(sweep::parse_copy_engine_counts(flags.copy_engines));
  check(sweep::parse_jitters(flags.jitters));
  check(sweep::parse_failure_kinds(flags.failures));
  check(sweep::parse_seeds(flags.seeds));
  return 0;
}
