#include "engine/communicator/transport_choice.h"

#include <array>

#include "base/suggest.h"

namespace espalier {

namespace {
constexpr std::array<std::string_view, 4> names = {"auto", "shm", "tcp", "verbs"};
}

std::string_view to_string(TransportChoice choice) { return names[static_cast<std::size_t>(choice)]; }

Result<TransportChoice> parse_transport(std::string_view name) {
#ifndef ESPALIER_VERBS
  if (name == "verbs") {
    return fail(ErrorCode::unsupported, "this build has no transport 'verbs'",
                "install libibverbs-dev (scripts/setup) and build again");
  }
#endif
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<TransportChoice>(i);
  }
  return fail(ErrorCode::invalid_input, "there is no transport '" + std::string(name) + "'", suggest(name, names));
}

}  // namespace espalier
