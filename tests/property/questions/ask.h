#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace espalier::test {

/// What `check` returns for each of 0 to count - 1, run one after the other in a process of their own, which may end
/// any way it likes: for the one it died in, how, or that it took more than `seconds` of the processor; the others are
/// asked by another process. Empty: nothing to complain of.
std::vector<std::string> complaints_of(std::size_t count, const std::function<std::string(std::size_t)>& check,
                                       unsigned seconds);

}  // namespace espalier::test
