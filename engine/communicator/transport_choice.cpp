#include "engine/communicator/transport_choice.h"

#include <array>

#include "base/suggest.h"

namespace espalier {

namespace {
constexpr std::array<std::string_view, 5> names = {"auto", "shm", "tcp", "verbs", "shm+verbs"};
}

std::span<const std::string_view> transport_choices() { return names; }

std::string_view to_string(TransportChoice choice) { return names[static_cast<std::size_t>(choice)]; }

Result<TransportChoice> parse_transport(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != name) continue;
    const auto choice = static_cast<TransportChoice>(i);
#ifndef ESPALIER_VERBS
    if (takes_verbs(choice)) {
      return fail(ErrorCode::unsupported, "this build has no transport 'verbs'",
                  "install libibverbs-dev (scripts/setup) and build again");
    }
#endif
    return choice;
  }
  return fail(ErrorCode::invalid_input, "there is no transport '" + std::string(name) + "'", suggest(name, names));
}

}  // namespace espalier
