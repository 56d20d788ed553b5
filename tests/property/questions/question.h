#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace espalier::test {

/// A question to the command about a shipped or generated network of at most 64 ranks, whole or damaged.
struct Question {
  std::vector<std::string> machine;  ///< A file of the network, in which nothing is damaged.
  std::vector<std::string> damage;   ///< --without, --slow and --ranks; may be empty.
  std::vector<std::string> call;     ///< Collective, planner, size, type and profile.

  /// The words of a verb that takes all these flags.
  [[nodiscard]] std::vector<std::string> words(const std::string& verb,
                                               const std::vector<std::string>& more = {}) const;
  /// As one would type it.
  [[nodiscard]] std::string text() const;
};

/// The same seed asks the same. `folder`: where generated networks are written.
Question make_question(std::uint64_t seed, const std::string& folder);

}  // namespace espalier::test
