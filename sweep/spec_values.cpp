#include "sweep/spec_values.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "base/parse_units.h"
#include "base/suggest.h"

namespace espalier::sweep {
namespace {

tl::unexpected<Error> bad(std::string message, std::string help) {
  return espalier::fail(ErrorCode::invalid_input, std::move(message), std::move(help));
}

/// Reads every item of a list with `parse`. An empty list is an error, which `example` helps with.
template <class T, class Parse>
Result<std::vector<T>> parse_each(std::string_view text, const char* example, const Parse& parse) {
  std::vector<T> values;
  for (const std::string& item : split_list(text)) {
    auto value = parse(item);
    if (!value) return tl::unexpected(value.error());
    values.push_back(*std::move(value));
  }
  if (values.empty()) return bad("the list is empty", fmt::format("write {}", example));
  return values;
}

Result<Bytes> parse_elements(const std::string& item, std::int64_t element_size) {
  const auto size = parse_size(item);
  if (!size) return tl::unexpected(size.error());
  return Bytes{size->count / element_size * element_size};
}

bool take_seed(const char*& at, const char* end, std::uint64_t& seed) {
  const auto [rest, status] = std::from_chars(at, end, seed);
  at = rest;
  return status == std::errc();
}

}  // namespace

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  if (text.empty()) return items;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    items.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

Result<std::vector<Bytes>> parse_size_list(std::string_view text, std::int64_t element_size) {
  return parse_each<Bytes>(text, "1K,64M", [&](const std::string& item) { return parse_elements(item, element_size); });
}

Result<std::vector<std::optional<Bytes>>> parse_chunks(std::string_view text, std::int64_t element_size) {
  return parse_each<std::optional<Bytes>>(
      text, "auto,64K", [&](const std::string& item) -> Result<std::optional<Bytes>> {
        if (item == "auto") return std::nullopt;
        const auto chunk = parse_elements(item, element_size);
        if (!chunk) return tl::unexpected(chunk.error());
        if (chunk->count == 0) return bad("a chunk holds at least one element", "write auto, or a size such as 64K");
        return std::optional(*chunk);
      });
}

Result<std::vector<CollectiveKind>> parse_collectives(std::string_view text) {
  if (text == "all") return std::vector<CollectiveKind>(all_collective_kinds.begin(), all_collective_kinds.end());
  return parse_each<CollectiveKind>(text, "all_reduce,all_gather",
                                    [](const std::string& item) { return parse_collective(item); });
}

Result<std::vector<sim::ModelKind>> parse_models(std::string_view text) {
  if (text == "all") return std::vector<sim::ModelKind>(sim::all_models.begin(), sim::all_models.end());
  return parse_each<sim::ModelKind>(text, "link", [](const std::string& item) { return sim::parse_model(item); });
}

Result<std::vector<sim::Protocol>> parse_protocols(std::string_view text) {
  if (text == "all") return std::vector<sim::Protocol>(sim::all_protocols.begin(), sim::all_protocols.end());
  return parse_each<sim::Protocol>(text, "simple,ll128",
                                   [](const std::string& item) { return sim::parse_protocol(item); });
}

Result<std::vector<std::uint32_t>> parse_copy_engine_counts(std::string_view text) {
  return parse_each<std::uint32_t>(text, "0,2", [](const std::string& item) { return sim::parse_copy_engines(item); });
}

Result<std::vector<std::int32_t>> parse_jitters(std::string_view text) {
  return parse_each<std::int32_t>(text, "0,2%", [](const std::string& item) -> Result<std::int32_t> {
    const auto part = parse_part(item);
    if (!part || *part < 1'000'000 || item.ends_with('%')) return part;
    return bad(fmt::format("'{}' may mean 1 % or all", item), "write 1% or 100%");
  });
}

Result<std::vector<std::uint64_t>> parse_seeds(std::string_view text) {
  constexpr std::uint64_t max_seeds = 1'000'000;
  std::vector<std::uint64_t> seeds;
  for (const std::string& item : split_list(text)) {
    const char* at = item.data();
    const char* const end = at + item.size();
    std::uint64_t first = 0;
    bool good = take_seed(at, end, first);
    std::uint64_t last = first;
    if (good && at != end && *at == '-') good = take_seed(++at, end, last);
    if (!good || at != end || last < first) {
      return bad(fmt::format("'{}' is neither a whole number nor a range", item), "write 1,2 or 1-10");
    }
    if (last - first >= max_seeds - seeds.size()) {
      return espalier::fail(ErrorCode::too_large, fmt::format("there are more than {} seeds", max_seeds),
                            "sweep fewer at a time; files of rows can be merged");
    }
    for (std::uint64_t seed = first;; ++seed) {
      seeds.push_back(seed);
      if (seed == last) break;
    }
  }
  if (seeds.empty()) return bad("the list is empty", "write 1,2 or 1-10");
  return seeds;
}

Result<FailureKinds> parse_failure_kinds(std::string_view text) {
  FailureKinds kinds;
  constexpr std::array<std::string_view, 4> names = {"links", "nodes", "hosts", "ranks"};
  const std::array<bool*, 4> members = {&kinds.links, &kinds.nodes, &kinds.hosts, &kinds.ranks};
  for (const std::string& item : split_list(text)) {
    const auto* const found = std::ranges::find(names, item);
    if (found == names.end()) {
      return bad(fmt::format("'{}' is nothing that fails", item), suggest(item, names));
    }
    *members[static_cast<std::size_t>(found - names.begin())] = true;
  }
  return kinds;
}

}  // namespace espalier::sweep
