#include "engine/communicator/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fnv.h"

namespace espalier::engine {
namespace {

/// Names and values, each ended by a zero byte, which no argument of a program contains.
std::string encode_settings(std::span<const Setting> settings) {
  std::string text;
  for (const Setting& setting : settings) {
    text += setting.name + '\0';
    text += setting.value + '\0';
  }
  return text;
}

std::vector<Setting> decode_settings(std::string_view text) {
  const auto take = [&] {
    const std::size_t end = std::min(text.find('\0'), text.size());
    std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  };
  std::vector<Setting> settings;
  while (!text.empty()) {
    std::string name = take();
    settings.push_back({std::move(name), take()});
  }
  return settings;
}

std::string value_of_setting(const std::vector<Setting>& settings, const std::string& name) {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? "not given" : found->value;
}

/// The first setting in which two ranks differ; every one that either has is looked at.
std::optional<std::string> first_difference(const std::string& zero, const std::string& other, std::size_t rank) {
  const std::vector<Setting> zeros = decode_settings(zero);
  const std::vector<Setting> others = decode_settings(other);
  for (const auto* settings : {&zeros, &others}) {
    for (const Setting& setting : *settings) {
      const std::string one = value_of_setting(zeros, setting.name);
      const std::string two = value_of_setting(others, setting.name);
      if (one != two)
        return fmt::format("rank 0 has {} {}, rank {} has {} {}", setting.name, one, rank, setting.name, two);
    }
  }
  return std::nullopt;
}

}  // namespace

Result<void> agree_on(rendezvous::ControlPlane& plane, std::span<const Setting> settings,
                      std::chrono::milliseconds timeout) {
  std::vector<std::uint32_t> all(plane.world());
  std::iota(all.begin(), all.end(), 0U);
  const std::string own = encode_settings(settings);
  Fnv1a hash;
  hash.add_text(own);
  const auto hashes = plane.exchange("espalier/settings", all, fmt::format("{:016x}", hash.value()), timeout);
  if (!hashes) return tl::unexpected(hashes.error());
  if (std::ranges::count(*hashes, hashes->front()) == static_cast<std::ptrdiff_t>(hashes->size())) return {};
  // All ranks see the same hashes, so all come here or none does.
  const auto texts = plane.exchange("espalier/settings/text", all, own, timeout);
  if (!texts) return tl::unexpected(texts.error());
  for (std::size_t rank = 1; rank < texts->size(); ++rank) {
    const auto difference = first_difference(texts->front(), (*texts)[rank], rank);
    if (difference) {
      return fail(ErrorCode::invalid_input, "the ranks were started with different options: " + *difference,
                  "give all ranks of a job the same");
    }
  }
  return {};
}

}  // namespace espalier::engine
