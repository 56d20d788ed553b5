#pragma once

#include <functional>
#include <string>

namespace espalier::test {

/// What `check` returns, run in a process of its own, which may end any way it likes: how it died, where it did, or
/// that it took longer than `seconds`. Empty: nothing to complain of.
std::string complaint_of(const std::function<std::string()>& check, unsigned seconds);

}  // namespace espalier::test
