#include "experts/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "base/suggest.h"
#include "experts/constants.h"

namespace espalier::experts {
namespace {

constexpr std::array<std::pair<std::string_view, Software>, 4> software_names = {
    {{"deepep-normal", Software::deepep_normal},
     {"deepep-low-latency", Software::deepep_low_latency},
     {"trtllm-nvlink", Software::trtllm_two_sided},
     {"trtllm-nvlink-one-sided", Software::trtllm_one_sided}}};
constexpr std::array<std::pair<std::string_view, Format>, 3> format_names = {
    {{"bf16", Format::bf16}, {"fp8", Format::fp8}, {"nvfp4", Format::nvfp4}}};
constexpr std::array<std::string_view, 4> limit_names = {"start", "multiprocessors", "links", "nics"};

constexpr std::int64_t max_tokens = std::int64_t{1} << 30U;
constexpr std::int64_t max_hidden = std::int64_t{1} << 20U;
constexpr std::int64_t max_experts = 65'536;

template <class T, std::size_t N>
Result<T> parse(const std::array<std::pair<std::string_view, T>, N>& names, std::string_view what,
                std::string_view written) {
  std::vector<std::string_view> known;
  for (const auto& [name, value] : names) {
    if (name == written) return value;
    known.push_back(name);
  }
  return fail(ErrorCode::invalid_input, fmt::format("there is no {} '{}'", what, written.substr(0, 60)),
              suggest(written, known));
}

template <class T, std::size_t N>
std::string_view find_name(const std::array<std::pair<std::string_view, T>, N>& names, T value) {
  return std::ranges::find(names, value, &std::pair<std::string_view, T>::second)->first;
}

double fourth_power_mean(double a, double b, double c) {
  const auto fourth = [](double x) { return x * x * x * x; };
  return std::sqrt(std::sqrt(fourth(a) + fourth(b) + fourth(c)));
}

/// Seconds per token on each thing that may limit them.
struct PerToken {
  double multiprocessors = 0;
  double links = 0;
  double nics = 0;

  [[nodiscard]] Limit largest() const {
    if (nics > links && nics > multiprocessors) return Limit::nics;
    return links > multiprocessors ? Limit::links : Limit::multiprocessors;
  }
};

Phase phase_of(std::string_view name, double start, double of_tokens, Limit limit) {
  return {name, start + of_tokens, start, start >= of_tokens ? Limit::start : limit};
}

/// Where the copies of a token go.
struct Copies {
  double ranks = 0;        ///< Ranks that get one.
  double boxes = 0;        ///< Boxes.
  double within = 0;       ///< Ranks of the sender's box beside it.
  double other_boxes = 0;  ///< Boxes beside its own.
};

Copies copies_of(const MachineRates& machine, const Exchange& exchange) {
  const auto boxes = static_cast<double>(machine.boxes);
  const double chosen = std::min(boxes, static_cast<double>(exchange.max_boxes));
  const auto per_box = static_cast<double>(machine.ranks_per_box());
  const double experts = static_cast<double>(exchange.experts) * chosen / boxes;
  Copies copies;
  copies.ranks = expected_parts(experts, exchange.top_k, chosen * per_box);
  copies.boxes = expected_parts(experts, exchange.top_k, chosen);
  copies.within = copies.ranks * (per_box - 1) / per_box;
  copies.other_boxes = copies.boxes * (boxes - 1) / boxes;
  return copies;
}

/// Source: DeepEP (deepseek-ai, 2025), csrc/kernels/intranode.cu and internode.cu: multiprocessors in pairs, each pair
/// with buffers of its own, and between boxes a token once to each box.
Phase by_channels(std::string_view name, const MachineRates& machine, const Exchange& exchange, double bytes,
                  const constants::Channels& of) {
  const auto tokens = static_cast<double>(exchange.tokens);
  const double channels = static_cast<double>(exchange.sms) / 2;
  const auto boxes = static_cast<double>(machine.boxes);
  const Copies copies = copies_of(machine, exchange);
  PerToken each;
  each.multiprocessors = (of.token + bytes * (copies.boxes * of.box_byte + copies.ranks * of.rank_byte)) / channels;
  each.links = copies.within * bytes / (of.links * machine.link_rate);
  if (machine.boxes > 1) {
    each.nics =
        copies.other_boxes * bytes / (of.nics * machine.nic_rate) * (1 + of.crowd * std::clamp(boxes - 4, 0.0, 4.0));
  }
  const double start = of.start + of.start_hidden * static_cast<double>(exchange.hidden) +
                       of.start_expert * static_cast<double>(exchange.top_k) + of.start_box * boxes;
  const double filled = of.fill * tokens / (tokens + of.fill_tokens * channels);
  Phase phase = phase_of(name, start + filled, tokens * fourth_power_mean(each.multiprocessors, each.links, each.nics),
                         each.largest());
  if (phase.seconds < of.host) phase = {name, of.host, of.host, Limit::start};
  return phase;
}

/// Source: the same, csrc/kernels/internode_ll.cu: as many multiprocessors as leave each the same number of experts.
Phase by_messages(std::string_view name, const MachineRates& machine, const Exchange& exchange, double bytes,
                  const constants::Messages& of) {
  const auto experts = static_cast<double>(exchange.experts);
  const auto top_k = static_cast<double>(exchange.top_k);
  const auto boxes = static_cast<double>(machine.boxes);
  const auto ranks = static_cast<double>(machine.ranks);
  const double busy = experts / std::ceil(experts / machine.multiprocessors);
  const double of_links =
      of.slow_links + (of.fast_links - of.slow_links) * std::clamp(machine.link_rate / 450e9 - 1, 0.0, 1.0);
  PerToken each;
  each.multiprocessors = of.byte * bytes / busy;
  if (machine.ranks_per_box() > 1) {
    each.links = top_k * (ranks / boxes - 1) / ranks * bytes / (of_links * machine.link_rate);
  }
  if (machine.boxes > 1) each.nics = top_k * (boxes - 1) / boxes * bytes / (of.nics * machine.nic_rate);
  const double start = of.start + of.start_expert * experts + of.start_trips * machine.link_latency +
                       (machine.boxes > 1 ? of.start_boxes + of.start_box * boxes : 0);
  return phase_of(name, start,
                  static_cast<double>(exchange.tokens) * fourth_power_mean(each.multiprocessors, each.links, each.nics),
                  each.largest());
}

/// Kernels of TensorRT-LLM within one NVLink domain.
Phase by_nvlink(std::string_view name, const MachineRates& machine, const Exchange& exchange, double bytes,
                const constants::NvlinkKernel& of) {
  const auto ranks = static_cast<double>(machine.ranks);
  const double sent =
      expected_parts(static_cast<double>(exchange.experts), exchange.top_k, ranks) * (ranks - 1) / ranks;
  const PerToken each{of.token, sent * bytes / (of.links * machine.link_rate), 0};
  const double of_tokens = static_cast<double>(exchange.tokens) *
                           std::sqrt(each.multiprocessors * each.multiprocessors + each.links * each.links);
  return phase_of(name, of.start + of.start_doubling * std::log2(ranks), std::max(of_tokens - of.hidden, 0.0),
                  each.largest());
}

Result<void> check_range(std::string_view what, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return {};
  return fail(ErrorCode::invalid_input, fmt::format("{} is {}", what, value),
              fmt::format("from {} to {}", least, most));
}

Result<void> check(const MachineRates& machine, const Exchange& exchange) {
  const bool is_normal = exchange.software == Software::deepep_normal;
  const bool is_deepep = is_normal || exchange.software == Software::deepep_low_latency;
  for (const auto& checked :
       {check_range("tokens", exchange.tokens, 1, max_tokens), check_range("hidden", exchange.hidden, 1, max_hidden),
        check_range("experts", exchange.experts, 1, max_experts),
        check_range("top-k", exchange.top_k, 1, exchange.experts),
        check_range("max-boxes", exchange.max_boxes, 1, max_experts),
        check_range("sms", exchange.sms, 2, is_normal ? machine.multiprocessors : max_experts)}) {
    if (!checked) return checked;
  }
  if (is_normal && exchange.sms % 2 != 0) {
    return fail(ErrorCode::invalid_input, fmt::format("sms is {}", exchange.sms), "an even number: they work in pairs");
  }
  if (machine.ranks < 2) return fail(ErrorCode::invalid_input, "one rank has nobody to exchange with", "two at least");
  if (exchange.experts < static_cast<std::int64_t>(machine.ranks)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} experts are not one for each of {} ranks", exchange.experts, machine.ranks),
                "as many experts as ranks at least");
  }
  const std::int64_t open = exchange.experts *
                            std::min<std::int64_t>(exchange.max_boxes, static_cast<std::int64_t>(machine.boxes)) /
                            static_cast<std::int64_t>(machine.boxes);
  if (is_normal && exchange.top_k > open) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} boxes have {} experts, fewer than top-k {}", exchange.max_boxes, open, exchange.top_k),
                "more boxes per token, or fewer experts");
  }
  if (is_deepep && (exchange.dispatch == Format::nvfp4 || exchange.combine != Format::bf16)) {
    return fail(ErrorCode::unsupported,
                fmt::format("{} dispatches bf16 or fp8 and combines bf16", name_of(exchange.software)), {});
  }
  if (!is_deepep && machine.boxes > 1) {
    return fail(ErrorCode::unsupported, fmt::format("{} stays within one NVLink domain", name_of(exchange.software)),
                "fewer ranks, or deepep-normal");
  }
  if (!is_deepep && exchange.combine == Format::fp8) {
    return fail(ErrorCode::unsupported, fmt::format("{} combines bf16 or nvfp4", name_of(exchange.software)), {});
  }
  if (exchange.software == Software::trtllm_one_sided && exchange.combine != Format::bf16) {
    return fail(ErrorCode::unsupported, "trtllm-nvlink-one-sided combines bf16", {});
  }
  return {};
}

std::vector<Phase> normal_phases(const MachineRates& machine, const Exchange& exchange, double dispatched,
                                 double combined) {
  if (machine.boxes == 1) {
    return {by_channels("dispatch", machine, exchange, dispatched, constants::box_dispatch),
            by_channels("combine", machine, exchange, combined, constants::box_combine)};
  }
  const double told = constants::notify_start + constants::notify_box * static_cast<double>(machine.boxes);
  const Phase combine = by_channels("combine", machine, exchange, combined, constants::boxes_combine);
  return {phase_of("notify_dispatch", told, 0, Limit::start),
          by_channels("dispatch", machine, exchange, dispatched, constants::boxes_dispatch),
          phase_of("notify_combine", told, constants::notify_combine * combine.seconds, combine.limit), combine};
}

}  // namespace

Result<Software> parse_software(std::string_view name) { return parse(software_names, "software", name); }
std::string_view name_of(Software software) { return find_name(software_names, software); }
Result<Format> parse_format(std::string_view name) { return parse(format_names, "format", name); }
std::string_view name_of(Format format) { return find_name(format_names, format); }
double bytes_of(Format format) {
  switch (format) {
    case Format::bf16: return 2;
    case Format::nvfp4: return 0.5625;
    case Format::fp8: break;
  }
  return 1.03125;
}
std::string_view name_of(Limit limit) { return limit_names[static_cast<std::size_t>(limit)]; }

double expected_parts(double experts, std::int64_t top_k, double parts) {
  const double others = experts - experts / parts;
  double none = 1;  // the chance that no expert of a part is chosen
  for (std::int64_t chosen = 0; chosen < top_k; ++chosen) {
    const auto gone = static_cast<double>(chosen);
    if (others <= gone) return parts;
    none *= (others - gone) / (experts - gone);
  }
  return parts * (1 - none);
}

Result<std::vector<Phase>> predict(const MachineRates& machine, const Exchange& exchange) {
  if (const auto checked = check(machine, exchange); !checked) return tl::unexpected(checked.error());
  const auto hidden = static_cast<double>(exchange.hidden);
  const bool is_trtllm =
      exchange.software == Software::trtllm_two_sided || exchange.software == Software::trtllm_one_sided;
  const bool has_one_scale = is_trtllm && exchange.dispatch == Format::fp8;  // of the whole tensor
  const double dispatched = hidden * (has_one_scale ? 1 : bytes_of(exchange.dispatch));
  const double combined = hidden * bytes_of(exchange.combine);
  switch (exchange.software) {
    case Software::deepep_normal: return normal_phases(machine, exchange, dispatched, combined);
    case Software::deepep_low_latency:
      return std::vector{by_messages("dispatch", machine, exchange, dispatched, constants::message_dispatch),
                         by_messages("combine", machine, exchange, combined, constants::message_combine)};
    case Software::trtllm_two_sided:
      return std::vector{by_nvlink("prepare", machine, exchange, 0, constants::two_sided_prepare),
                         by_nvlink("dispatch", machine, exchange, dispatched, constants::two_sided_dispatch),
                         by_nvlink("combine", machine, exchange, combined,
                                   exchange.combine == Format::bf16 ? constants::two_sided_combine
                                                                    : constants::two_sided_small_combine)};
    case Software::trtllm_one_sided: break;
  }
  return std::vector{by_nvlink("dispatch", machine, exchange, dispatched, constants::one_sided_dispatch),
                     by_nvlink("combine", machine, exchange, combined, constants::one_sided_combine)};
}

}  // namespace espalier::experts
