#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "schedule/collective.h"
#include "schedule/traffic/traffic_readers.h"

namespace espalier {
namespace {

constexpr std::size_t max_experts = std::size_t{1} << 20U;

/// A token: whose it is, and where it goes.
struct RoutedToken {
  std::uint32_t rank = 0;
  std::vector<std::uint32_t> experts;
};

bool is_heading(const std::vector<TrafficField>& fields) {
  return std::ranges::any_of(fields, [](const TrafficField& field) {
    return !field.text.empty() && std::isalpha(static_cast<unsigned char>(field.text.front())) != 0;
  });
}

/// Reads tokens, line by line.
class RoutingReader {
 public:
  RoutingReader(std::string_view text, std::string_view name, std::size_t ranks)
      : text_(text), name_(name), ranks_(ranks) {}

  Result<std::vector<RoutedToken>> read() {
    std::size_t offset = 0;
    std::size_t skipped = 0;
    bool is_first = true;
    while (const auto fields = next_traffic_line(text_, offset)) {
      if (is_first && is_heading(*fields)) {
        skipped = fields->front().text == "token" ? 1 : 0;
      } else if (auto added = add(std::span(*fields).subspan(std::min(skipped, fields->size()))); !added) {
        return tl::unexpected(added.error());
      }
      is_first = false;
    }
    if (!tokens_.empty()) return std::move(tokens_);
    return fail_traffic(name_, text_, 0, "there are no tokens", "write a line per token: its rank, then its experts");
  }

  [[nodiscard]] std::uint32_t largest_expert() const { return largest_expert_; }
  [[nodiscard]] std::size_t largest_offset() const { return largest_offset_; }

 private:
  Result<void> add(std::span<const TrafficField> fields) {
    if (fields.empty())
      return fail_traffic(name_, text_, 0, "a line without a rank", "write its rank, then its experts");
    auto rank = number(fields.front(), "a rank", ranks_ - 1);
    if (!rank) return tl::unexpected(rank.error());
    RoutedToken& token = tokens_.emplace_back(RoutedToken{*rank, {}});
    for (const TrafficField& field : fields.subspan(1)) {
      if (field.text.empty() || field.text == "-1") continue;  // Dropped.
      auto expert = number(field, "an expert", max_experts - 1);
      if (!expert) return tl::unexpected(expert.error());
      if (*expert >= largest_expert_) {
        largest_expert_ = *expert;
        largest_offset_ = field.offset;
      }
      token.experts.push_back(*expert);
    }
    return {};
  }

  Result<std::uint32_t> number(const TrafficField& field, const char* what, std::size_t largest) const {
    const TrafficNumber read = read_traffic_number(field.text);
    if (!read.wrong.empty()) return fail_traffic(name_, text_, field.offset, read.wrong, fmt::format("write {}", what));
    if (read.value != std::floor(read.value) || read.value > static_cast<double>(largest)) {
      return fail_traffic(name_, text_, field.offset,
                          fmt::format("{} is not {} from 0 to {}", field.text, what, largest),
                          "ranks and experts are numbered from 0");
    }
    return static_cast<std::uint32_t>(read.value);
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t ranks_;
  std::vector<RoutedToken> tokens_;
  std::uint32_t largest_expert_ = 0;
  std::size_t largest_offset_ = 0;
};

}  // namespace

Result<TrafficMatrix> parse_routing(std::string_view text, std::string_view name, std::size_t ranks,
                                    const RoutedTraffic& how) {
  RoutingReader reader(text, name, ranks);
  const auto tokens = reader.read();
  if (!tokens) return tl::unexpected(tokens.error());
  const std::size_t named = std::size_t{reader.largest_expert()} + 1;
  const std::size_t experts = how.experts == 0 ? (named + ranks - 1) / ranks * ranks : how.experts;
  if (experts % ranks != 0) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: {} experts are no whole number for each of {} ranks", name, experts, ranks),
                "give experts= a multiple of the ranks");
  }
  if (named > experts) {
    return fail_traffic(name, text, reader.largest_offset(),
                        fmt::format("expert {} is not one of {}", reader.largest_expert(), experts),
                        "experts are numbered from 0");
  }
  std::vector<double> blocks(ranks * ranks, 0);
  const double each = how.bytes_per_token == 0 ? 1 : static_cast<double>(how.bytes_per_token);
  std::vector<std::size_t> goes_to;
  for (const RoutedToken& token : *tokens) {
    goes_to.clear();
    for (const std::uint32_t expert : token.experts) goes_to.push_back(expert / (experts / ranks));
    if (how.deduplicated) {
      std::ranges::sort(goes_to);
      goes_to.erase(std::unique(goes_to.begin(), goes_to.end()), goes_to.end());
    }
    for (const std::size_t to : goes_to) blocks[token.rank * ranks + to] += each;
  }
  auto matrix = finish_traffic(ranks, blocks, name);
  if (matrix) matrix->are_bytes = how.bytes_per_token > 0;
  return matrix;
}

}  // namespace espalier
