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
  if (header.has_counts != 0) {
    return fmt::format("call {}: {} of {} with counts per peer", header.sequence, to_string(header.kind),
                       to_string(header.type));
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
  if (differ_in_counts(ours, theirs)) {
    return ours.count != theirs.count ? describe_counts(ours, peer, theirs.count, rank, ours.count)
                                      : describe_counts(ours, rank, ours.shares, peer, theirs.shares);
  }
  std::vector<std::string_view> differing;
  if (ours.sequence != theirs.sequence) differing.push_back("the number of the call");
  if (ours.kind != theirs.kind) differing.push_back("the collective");
  if (ours.has_counts != theirs.has_counts) {
    differing.push_back("whether there are counts per peer");
  } else if (ours.count != theirs.count) {
    differing.push_back("the count");
  }
  if (ours.type != theirs.type) differing.push_back("the type");
  if (ours.operation != theirs.operation) differing.push_back("the operation");
  if (ours.root != theirs.root) differing.push_back("the root");
  if (ours.shares != theirs.shares) differing.push_back("the shares");
  if (differing.empty() && ours.schedule != theirs.schedule) differing.push_back("the schedule");
  if (differing.empty() && ours.chunk != theirs.chunk) differing.push_back("the chunk size");
  return fmt::format("ranks disagree on {}: rank {} makes {}; rank {} makes {}", fmt::join(differing, ", "), rank,
                     describe(ours), peer, describe(theirs));
}

bool differ_in_counts(const CallHeader& a, const CallHeader& b) {
  if (a.has_counts == 0 || a == b) return false;
  CallHeader same = b;
  same.count = a.count;
  same.shares = a.shares;
  return same == a;
}

std::string describe_counts(const CallHeader& call, std::uint32_t from, std::uint64_t sent, std::uint32_t to,
                            std::uint64_t expected) {
  return fmt::format("ranks disagree on the counts: rank {} sends {} {} to rank {}, which expects {} from it", from,
                     sent, to_string(call.type), to, expected);
}

}  // namespace espalier::engine
