// Any bytes are read as a file of addresses without harm; what is read has each route once.

#include <cstdint>
#include <set>
#include <string_view>

#include "base/check.h"
#include "cli/flags/address_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const auto read = cli::read_addresses({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!read) {
    ESPALIER_CHECK(read.error().message.starts_with("fuzz:"), "an error names the file");
    return 0;
  }
  std::set<std::uint32_t> routes;
  for (const engine::RouteAddress& address : *read) {
    ESPALIER_CHECK(routes.insert(address.route).second, "a route is there once");
    ESPALIER_CHECK(!address.connect.empty(), "and leads somewhere");
  }
  return 0;
}
