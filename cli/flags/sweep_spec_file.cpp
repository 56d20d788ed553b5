#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/suggest.h"
#include "cli/flags/sweep_flags.h"

namespace espalier::cli {
namespace {

std::string where(const std::string& file, const YAML::Node& node) {
  return fmt::format("{}:{}", file, node.Mark().line + 1);
}

/// "a", or [a, b] as "a,b".
std::string list_of(const YAML::Node& node) {
  if (node.IsScalar()) return node.Scalar();
  std::string list;
  if (node.IsSequence()) {
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) return {};
      list += (list.empty() ? "" : ",") + item.Scalar();
    }
  }
  return list;
}

/// Where the values of a key go.
class SpecReader {
 public:
  SpecReader(SweepFlags& flags, const std::string& file)
      : flags_(flags),
        file_(file),
        has_list_(!flags.sizes.empty()),
        has_range_(!(flags.begin + flags.end + flags.factor + flags.step).empty()) {}

  Result<void> read(const YAML::Node& document) {
    if (!document.IsMap()) return fail(ErrorCode::invalid_input, file_ + ":1: a sweep is a map of lists");
    std::set<std::string> seen;
    for (const auto& entry : document) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (!seen.insert(key).second) {
        return fail(ErrorCode::invalid_input, fmt::format("{}: '{}' is there twice", where(file_, entry.first), key));
      }
      if (auto taken = take(key, entry.first, entry.second); !taken) return taken;
    }
    return {};
  }

 private:
  Result<void> take(const std::string& key, const YAML::Node& place, const YAML::Node& value) {
    if (key == "topologies") return take_each(flags_.topologies, key, value);
    if (key == "without") return take_each(flags_.without, key, value);
    if (key == "matrix") return take_each(flags_.matrices, key, value);
    if (key == "slow") return take_each(flags_.slow, key, value);
    if (key == "scenarios") return take_each(flags_.scenarios, key, value);
    if (key == "parameters") return take_map(flags_.parameters, key, value, "{boxes: [2, 4, 8]}");
    if (key == "split" && value.IsScalar() && value.Scalar() == "all") return take_each(flags_.splits, key, value);
    if (key == "split") return take_map(flags_.splits, key, value, "all, or {tensor: [1, 2, 4]}");
    constexpr std::array<std::string_view, 24> keys = {
        "collectives", "root",       "algorithms", "type",     "sizes",      "minbytes",  "maxbytes",  "stepfactor",
        "stepbytes",   "chunks",     "models",     "failures", "jitter",     "seeds",     "protocols", "copy_engines",
        "profiles",    "topologies", "without",    "slow",     "parameters", "scenarios", "split",     "matrix"};
    const std::array<std::string*, 17> members = {
        &flags_.collectives,  &flags_.root,     &flags_.algorithms, &flags_.type,  &flags_.sizes,
        &flags_.begin,        &flags_.end,      &flags_.factor,     &flags_.step,  &flags_.chunks,
        &flags_.models,       &flags_.failures, &flags_.jitters,    &flags_.seeds, &flags_.protocols,
        &flags_.copy_engines, &flags_.profiles};
    const auto* const found = std::ranges::find(keys, key);
    if (found == keys.end()) {
      return fail(ErrorCode::invalid_input, fmt::format("{}: '{}' is nothing that is swept", where(file_, place), key),
                  suggest(key, keys));
    }
    const std::string list = list_of(value);
    if (list.empty()) return no_list(key, value);
    std::string& member = *members[static_cast<std::size_t>(found - keys.begin())];
    const bool is_range = key == "minbytes" || key == "maxbytes" || key == "stepfactor" || key == "stepbytes";
    if ((is_range && has_list_) || (key == "sizes" && has_range_)) return {};  // A flag says it the other way.
    if (member.empty()) member = list;
    if (flags_.sizes.empty() || (flags_.begin + flags_.end + flags_.factor + flags_.step).empty()) return {};
    return fail(ErrorCode::invalid_input, where(file_, place) + ": 'sizes' and a range of sizes exclude each other",
                "leave sizes, or minbytes, maxbytes, stepfactor and stepbytes out");
  }

  Result<void> take_each(std::vector<std::string>& member, const std::string& key, const YAML::Node& value) {
    std::vector<std::string> items;
    if (value.IsScalar()) items.push_back(value.Scalar());
    if (value.IsSequence()) {
      for (const YAML::Node& item : value) items.push_back(item.IsScalar() ? item.Scalar() : "");
    }
    if (items.empty() || std::ranges::find(items, "") != items.end()) return no_list(key, value);
    if (member.empty()) member = std::move(items);
    return {};
  }

  /// A map of lists, as NAME=a,b.
  Result<void> take_map(std::vector<std::string>& member, const std::string& key, const YAML::Node& value,
                        const char* example) {
    if (!value.IsMap()) {
      return fail(ErrorCode::invalid_input, fmt::format("{}: {} is a map of lists", where(file_, value), key),
                  fmt::format("write {}: {}", key, example));
    }
    std::vector<std::string> items;
    for (const auto& entry : value) {
      const std::string list = list_of(entry.second);
      if (!entry.first.IsScalar() || list.empty()) return no_list(key, entry.second);
      items.push_back(entry.first.Scalar() + "=" + list);
    }
    if (member.empty()) member = std::move(items);
    return {};
  }

  [[nodiscard]] Result<void> no_list(const std::string& key, const YAML::Node& value) const {
    return fail(ErrorCode::invalid_input,
                fmt::format("{}: '{}' is neither a word nor a list of words", where(file_, value), key),
                fmt::format("write {}: [one, two]", key));
  }

  SweepFlags& flags_;
  const std::string& file_;
  const bool has_list_;   ///< A flag has listed the sizes.
  const bool has_range_;  ///< Flags have said from where to where they go.
};

}  // namespace

Result<void> SweepFlags::read_file(const Console& console) {
  if (file.empty()) return {};
  const auto text = read_whole(console, file);
  if (!text) return tl::unexpected(text.error());
  return read_text(*text);
}

std::optional<Error> SweepFlags::find_beside_scenarios() const {
  const std::array<std::pair<std::string_view, const std::string*>, 13> values = {{{"collectives", &collectives},
                                                                                   {"root", &root},
                                                                                   {"algorithms", &algorithms},
                                                                                   {"type", &type},
                                                                                   {"sizes", &sizes},
                                                                                   {"minbytes", &begin},
                                                                                   {"maxbytes", &end},
                                                                                   {"stepfactor", &factor},
                                                                                   {"stepbytes", &step},
                                                                                   {"chunks", &chunks},
                                                                                   {"protocols", &protocols},
                                                                                   {"copy_engines", &copy_engines},
                                                                                   {"jitter", &jitters}}};
  if (!matrices.empty()) {
    return Error{ErrorCode::invalid_input, file + ": 'matrix' does not apply to a sweep over scenarios",
                 "name it as 'matrix' of the scenario's experts"};
  }
  const auto* const given = std::ranges::find_if(values, [](const auto& value) { return !value.second->empty(); });
  if (given == values.end()) return std::nullopt;
  return Error{
      ErrorCode::invalid_input,
      fmt::format("{}: '{}' does not apply to a sweep over scenarios, which name that themselves", file, given->first),
      "leave it, or the scenarios, out"};
}

Result<void> SweepFlags::read_text(const std::string& text) {
  try {
    return SpecReader(*this, file).read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::invalid_input, fmt::format("{}:{}: {}", file, error.mark.line + 1, error.msg));
  }
}

}  // namespace espalier::cli
