#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <unordered_map>

#include "scenario/workload/goal_operations.h"
#include "scenario/workload/trace_forms.h"

namespace espalier::scenario {
namespace {

/// A whole number with nothing behind it but `unit`.
std::optional<std::int64_t> goal_number(std::string_view word, std::string_view unit = {}) {
  if (!unit.empty() && word.ends_with(unit)) word.remove_suffix(unit.size());
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc() || end != word.data() + word.size() || value < 0) return std::nullopt;
  return value;
}

class GoalReader {
 public:
  GoalReader(std::string_view text, const std::string& name, std::size_t max_ranks)
      : text_(text), name_(name), max_ranks_(max_ranks) {}

  Result<std::vector<std::vector<ChakraNode>>> read() {
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      line_ = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++number_;
      if (auto taken = take_line(); !taken) return tl::unexpected(taken.error());
    }
    if (ranks_.empty()) return bad("there is no num_ranks");
    if (rank_) return bad(fmt::format("the braces of rank {} are not closed", *rank_));
    return std::move(ranks_);
  }

 private:
  tl::unexpected<Error> bad(const std::string& what) const {
    return fail(ErrorCode::invalid_input, fmt::format("{}:{}: {}", name_, number_, what),
                "GOAL has lines such as 'l1: send 8b to 1 tag 0', 'l2: calc 100' and 'l2 requires l1'");
  }
  tl::unexpected<Error> no_word(std::string_view word) const {
    return bad(fmt::format("'{}' is not understood here", word.substr(0, 60)));
  }

  void split() {
    words_.clear();
    std::size_t at = 0;
    while (at < line_.size()) {
      const std::size_t begin = line_.find_first_not_of(" \t\r", at);
      if (begin == std::string_view::npos) break;
      at = std::min(line_.find_first_of(" \t\r", begin), line_.size());
      words_.push_back(line_.substr(begin, at - begin));
    }
  }

  Result<void> take_line() {
    split();
    if (words_.empty() || words_[0].starts_with("//") || words_[0].starts_with('#')) return {};
    if (words_[0] == "num_ranks") return take_count();
    if (words_[0] == "rank") return begin_rank();
    if (words_[0] == "}") return end_rank();
    if (!rank_) return no_word(words_[0]);
    if (words_.size() == 3 && (words_[1] == "requires" || words_[1] == "irequires")) return take_order();
    std::string_view label;
    if (words_[0].ends_with(':')) {
      label = words_[0].substr(0, words_[0].size() - 1);
      words_.erase(words_.begin());
    }
    return take_operation(label);
  }

  Result<void> take_count() {
    const auto count = words_.size() == 2 ? goal_number(words_[1]) : std::nullopt;
    if (!count || *count < 1 || !ranks_.empty()) return bad("num_ranks stands once, with a number from 1 on");
    if (static_cast<std::size_t>(*count) > max_ranks_) {
      return fail(ErrorCode::invalid_input, fmt::format("{}:{}: it has {} ranks, and there are {} to put it on", name_,
                                                        number_, *count, max_ranks_));
    }
    ranks_.resize(static_cast<std::size_t>(*count));
    seen_.resize(ranks_.size(), false);
    return {};
  }

  Result<void> begin_rank() {
    const auto rank = words_.size() == 3 && words_[2] == "{" ? goal_number(words_[1]) : std::nullopt;
    if (!rank || rank_ || *rank >= static_cast<std::int64_t>(ranks_.size())) {
      return bad(fmt::format("a rank begins with 'rank R {{', R below num_ranks ({})", ranks_.size()));
    }
    rank_ = static_cast<std::size_t>(*rank);
    if (seen_[*rank_]) return bad(fmt::format("rank {} is there twice", *rank_));
    seen_[*rank_] = true;
    return {};
  }

  Result<void> end_rank() {
    if (!rank_ || words_.size() > 1) return no_word(words_[0]);
    rank_.reset();
    places_.clear();
    return {};
  }

  /// The node of an operation; that of its beginning stands before it.
  Result<std::size_t> find(std::string_view label) const {
    const auto at = places_.find(std::string(label));
    if (at == places_.end()) return bad(fmt::format("there is no '{}' above", label.substr(0, 60)));
    return at->second;
  }

  Result<void> take_order() {
    const auto one = find(words_[0]), other = find(words_[2]);
    if (!one) return tl::unexpected(one.error());
    if (!other) return tl::unexpected(other.error());
    auto& nodes = ranks_[*rank_];
    const std::size_t waited_for = words_[1] == "requires" ? *other : *other - 1;
    nodes[*one - 1].after.push_back(nodes[waited_for].id);
    return {};
  }

  Result<void> take_operation(std::string_view label) {
    auto& nodes = ranks_[*rank_];
    if (++count_ > max_tasks / 2) return fail(ErrorCode::too_large, name_ + " has too many operations");
    GoalOperation operation;
    const std::size_t used = words_.empty() ? 0 : read_kind(operation);
    if (used == 0) return no_word(words_.empty() ? std::string_view("nothing") : words_[0]);
    for (std::size_t i = used; i < words_.size(); i += 2) {
      const auto value = i + 1 < words_.size() ? goal_number(words_[i + 1]) : std::nullopt;
      if (!value) return no_word(words_[i]);
      if (words_[i] == "tag") {
        operation.tag = *value;
      } else if (words_[i] == "cpu") {
        operation.cpu = *value;
      } else if (words_[i] != "nic") {
        return no_word(words_[i]);
      }
    }
    if (!add_goal_operation(nodes, operation)) return no_word(words_[0]);
    if (!label.empty() && !places_.emplace(label, nodes.size() - 1).second) {
      return bad(fmt::format("'{}' is there twice", label.substr(0, 60)));
    }
    return {};
  }

  /// What an operation does; how many words that takes, or none when it is not one.
  std::size_t read_kind(GoalOperation& operation) const {
    if (words_[0] == "calc") {
      const auto time = words_.size() >= 2 ? goal_number(words_[1]) : std::nullopt;
      if (!time) return 0;
      operation.type = ChakraType::compute;
      operation.amount = *time;
      return 2;
    }
    const bool sends = words_[0] == "send";
    if ((!sends && words_[0] != "recv") || words_.size() < 4 || words_[2] != (sends ? "to" : "from")) return 0;
    const auto bytes = goal_number(words_[1], "b"), peer = goal_number(words_[3]);
    if (!bytes || !peer) return 0;
    operation.type = sends ? ChakraType::send : ChakraType::receive;
    operation.amount = *bytes;
    operation.peer = *peer;
    return 4;
  }

  std::string_view text_, line_;
  const std::string& name_;
  std::size_t max_ranks_;
  std::size_t number_ = 0;
  std::size_t count_ = 0;
  std::vector<std::string_view> words_;
  std::vector<std::vector<ChakraNode>> ranks_;
  std::vector<bool> seen_;
  std::optional<std::size_t> rank_;
  std::unordered_map<std::string, std::size_t> places_;  ///< Of the rank at hand: its operations by label.
};

}  // namespace

Result<std::vector<std::vector<ChakraNode>>> read_goal(std::string_view text, const std::string& name,
                                                       std::size_t max_ranks) {
  return GoalReader(text, name, max_ranks).read();
}

}  // namespace espalier::scenario
