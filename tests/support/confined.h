#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace espalier::test {

/// Runs `body` in PID, mount and network namespaces of its own, with a /proc and an empty /run of its own: it may kill
/// what it sees and hits nobody else, and nothing that it makes or starts stays. Process 1 there only waits; a body
/// that takes longer than `limit` is killed with all that it started. Gives what `body` returned (its findings, empty
/// when all is well); nothing when this user may not have namespaces.
std::optional<std::string> run_confined(const std::function<std::string()>& body,
                                        std::chrono::seconds limit = std::chrono::seconds(120));

/// Collects what is not as expected, where no assertion of the test's own process can be made.
class Findings {
 public:
  bool expect(bool holds, const std::string& what) {
    if (!holds) text_ += what + "\n";
    return holds;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace espalier::test
