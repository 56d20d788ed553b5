// Any environment and any flags are read as a launch without harm: lines NAME=VALUE, and a line --rendezvous=TEXT.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "engine/launch/detect_launch.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  engine::rendezvous::Environment environment;
  engine::launch::LaunchFlags flags;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, equals);
    if (name == "--rendezvous") {
      flags = {0, 2, std::string(line.substr(equals + 1))};
    } else {
      environment.insert_or_assign(std::string(name), std::string(line.substr(equals + 1)));
    }
  }
  const auto launch = engine::launch::detect_launch(environment, flags);
  if (!launch) {
    ESPALIER_CHECK(!launch.error().message.empty(), "an error says what is wrong");
    return 0;
  }
  ESPALIER_CHECK(launch->rank < launch->world, "ranks are below their number");
  ESPALIER_CHECK(!launch->host.empty() && launch->port > 0, "the job meets somewhere");
  return 0;
}
