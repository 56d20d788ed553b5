#include "engine/rendezvous/environment.h"

#include <unistd.h>

#include <string_view>

namespace espalier::engine::rendezvous {

Environment process_environment() {
  Environment environment;
  if (environ == nullptr) return environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

}  // namespace espalier::engine::rendezvous
