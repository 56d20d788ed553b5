#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "cli/compute/questions.h"

namespace espalier::cli {
namespace {

constexpr std::int64_t max_whole = std::int64_t{1} << 40U;

}  // namespace

const nlohmann::json* Members::find(const char* key) {
  asked_.emplace_back(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Members::refuse(std::string message, std::string help) {
  if (!error_) error_ = Error{ErrorCode::invalid_input, where_ + ": " + std::move(message), std::move(help)};
}

std::int64_t Members::whole(const char* key, std::int64_t otherwise, std::int64_t least) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_number_integer()) {
    const auto read = value->get<std::int64_t>();
    if (read >= least && read <= max_whole) return read;
  }
  refuse(fmt::format("'{}' is {}", key, value->dump().substr(0, 60)),
         fmt::format("a whole number from {} to {}", least, max_whole));
  return otherwise;
}

std::vector<std::int64_t> Members::wholes(const char* key) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return {};
  std::vector<std::int64_t> read;
  bool are_whole = value->is_array() && !value->empty();
  for (std::size_t i = 0; are_whole && i < value->size(); ++i) {
    are_whole = (*value)[i].is_number_integer() && (*value)[i].get<std::int64_t>() >= 0 &&
                (*value)[i].get<std::int64_t>() <= max_whole;
    if (are_whole) read.push_back((*value)[i].get<std::int64_t>());
  }
  if (!are_whole) {
    refuse(fmt::format("'{}' is {}", key, value->dump().substr(0, 60)),
           fmt::format("a list of whole numbers up to {}", max_whole));
  }
  return read;
}

std::int64_t Members::needed(const char* key, std::int64_t least) {
  if (!object_.contains(key)) refuse(fmt::format("'{}' is missing", key), fmt::format("give \"{}\": a number", key));
  return whole(key, least, least);
}

double Members::number(const char* key, double otherwise) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_number() && value->get<double>() > 0) return value->get<double>();
  refuse(fmt::format("'{}' is {}", key, value->dump().substr(0, 60)), "a number above zero");
  return otherwise;
}

bool Members::flag(const char* key, bool otherwise) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  refuse(fmt::format("'{}' is {}", key, value->dump().substr(0, 60)), "true or false");
  return otherwise;
}

std::string Members::text(const char* key, const std::string& otherwise) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  refuse(fmt::format("'{}' is {}", key, value->dump().substr(0, 60)), "a text in quotes");
  return otherwise;
}

Result<void> Members::finish() const {
  if (error_) return tl::unexpected(*error_);
  for (const auto& [key, value] : object_.items()) {
    if (std::ranges::find(asked_, key) != asked_.end()) continue;
    const std::vector<std::string_view> known(asked_.begin(), asked_.end());
    return fail(ErrorCode::invalid_input, fmt::format("{}: there is no '{}'", where_, key.substr(0, 60)),
                suggest(key, known));
  }
  return {};
}

}  // namespace espalier::cli
