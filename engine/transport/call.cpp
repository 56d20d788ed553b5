#include "engine/transport/call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace espalier::engine {

namespace {

/// The header may come from a broken wire: its enumerators need not be any.
template <class Enumerators>
bool is_any_of(const Enumerators& all, typename Enumerators::value_type value) {
  return std::ranges::find(all, value) != all.end();
}

}  // namespace

std::string describe(const CallHeader& header) {
  if (!is_any_of(all_collective_kinds, header.kind) || !is_any_of(all_element_types, header.type) ||
      !is_any_of(all_reduce_operations, header.operation)) {
    return fmt::format("call {}: nothing that there is (damaged on the way, or another version)", header.sequence);
  }
  std::string text = fmt::format("call {}: {} of {} {}", header.sequence, to_string(header.kind), header.count,
                                 to_string(header.type));
  if (reduces(header.kind)) text += fmt::format(", {}", to_string(header.operation));
  if (has_root(header.kind)) text += fmt::format(", root {}", header.root);
  if (header.shares != 0) text += fmt::format(", shares {:08x}", header.shares);
  return text;
}

std::string describe_mismatch(std::uint32_t rank, const CallHeader& ours, std::uint32_t peer,
                              const CallHeader& theirs) {
  std::vector<std::string_view> differing;
  if (ours.sequence != theirs.sequence) differing.push_back("the number of the call");
  if (ours.kind != theirs.kind) differing.push_back("the collective");
  if (ours.count != theirs.count) differing.push_back("the count");
  if (ours.type != theirs.type) differing.push_back("the type");
  if (ours.operation != theirs.operation) differing.push_back("the operation");
  if (ours.root != theirs.root) differing.push_back("the root");
  if (ours.shares != theirs.shares) differing.push_back("the shares");
  if (differing.empty() && ours.schedule != theirs.schedule) differing.push_back("the schedule");
  if (differing.empty() && ours.chunk != theirs.chunk) differing.push_back("the chunk size");
  return fmt::format("ranks disagree on {}: rank {} makes {}; rank {} makes {}", fmt::join(differing, ", "), rank,
                     describe(ours), peer, describe(theirs));
}

}  // namespace espalier::engine
