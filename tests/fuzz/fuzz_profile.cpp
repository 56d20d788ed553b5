// Any bytes are read as a profile without harm; what is read can be laid on a network.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "profile/costed_network.h"
#include "profile/read_profile.h"
#include "topology/topology_builder.h"

namespace {

espalier::Topology make_star() {
  espalier::TopologyBuilder builder;
  const espalier::Wire wire{.bandwidth = {1'000'000'000}, .latency = {1'000'000}, .link_class = ""};
  const espalier::NodeId hub = builder.forwarder(espalier::NodeKind::switch_node, "hub");
  for (int i = 0; i < 4; ++i) builder.cable(builder.rank("gpu" + std::to_string(i)), hub, wire);
  return *std::move(builder).build("star");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto reading = profile::read_profile_text(text, "fuzz");
  ESPALIER_CHECK(reading.profile.has_value() != has_errors(reading.diagnostics), "either a profile or errors");
  for (const Diagnostic& diagnostic : reading.diagnostics) {
    ESPALIER_CHECK(!diagnostic.code.empty() && !diagnostic.message.empty(), "an error says what is wrong");
    ESPALIER_CHECK(!render(diagnostic, true).empty(), "an error can be shown");
  }
  if (!reading.profile) return 0;
  static const Topology star = make_star();
  for (const auto& [key, way] : reading.profile->ways) {
    const auto setting =
        profile::make_setting(*reading.profile, way, key.second, reading.profile->launches.front().second.time(4, 4, 4),
                              star, 3, reading.profile->channels);
    ESPALIER_CHECK(setting.has_value(), "what a profile may say can be laid on a network");
    const Bytes chunk = profile::chunk_of(way, reading.profile->channels, {std::int64_t{1} << 30}, 4, 0.25);
    ESPALIER_CHECK(chunk.count >= 0, "a chunk is no debt");
  }
  return 0;
}
