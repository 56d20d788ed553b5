#include "cli/flags/usage_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/suggest.h"

namespace espalier::cli {
namespace {

/// How far the words name verbs: the last one, and the word behind it that is none though it ought to be.
struct Walk {
  const CLI::App* app;
  std::string path;  ///< "espalier topo".
  std::optional<std::string> unknown;
};

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// Whether an option of the command itself, such as --color, has its value in the next word.
bool takes_next_word(const CLI::App& app, const std::string& word) {
  const CLI::Option* const option = app.get_option_no_throw(word);
  return option != nullptr && option->get_type_size() > 0;
}

Walk walk_verbs(const CLI::App& app, std::span<const std::string> words) {
  Walk walk{&app, app.get_name(), std::nullopt};
  for (std::size_t i = 0; i < words.size() && !verbs_of(*walk.app).empty(); ++i) {
    if (words[i].starts_with("-")) {
      if (takes_next_word(app, words[i])) ++i;
      continue;
    }
    const auto verbs = verbs_of(*walk.app);
    const auto found = std::ranges::find_if(verbs, [&](const CLI::App* verb) { return verb->get_name() == words[i]; });
    if (found == verbs.end()) {
      walk.unknown = words[i];
      return walk;
    }
    walk.app = *found;
    walk.path += " " + words[i];
  }
  return walk;
}

std::string suggest_verb(const CLI::App& app, const std::string& word, const std::string& path) {
  std::vector<std::string> names;
  for (const CLI::App* verb : verbs_of(app)) names.push_back(verb->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto near = find_nearest(word, known);
  return near ? fmt::format("did you mean '{} {}'?", path, *near) : fmt::format("{} --help lists them", path);
}

/// The words that look like options and are none of the verb or of the command.
std::optional<std::string> find_unknown_option(const CLI::App& app, const CLI::App& verb,
                                               std::span<const std::string> words) {
  for (const std::string& word : words) {
    if (word == "--") return std::nullopt;
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(0, word.find('='));
    if (verb.get_option_no_throw(name) == nullptr && app.get_option_no_throw(name) == nullptr) return name;
  }
  return std::nullopt;
}

std::string suggest_option(const CLI::App& verb, const std::string& option, const std::string& path) {
  std::vector<std::string> names;
  for (const CLI::Option* known : verb.get_options()) {
    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto near = find_nearest(option, known);
  return near ? fmt::format("did you mean '{}'?", *near) : path + " --help";
}

}  // namespace

const CLI::App* find_unfinished(const CLI::App& app, std::span<const std::string> words) {
  const Walk walk = walk_verbs(app, words);
  return !walk.unknown && !verbs_of(*walk.app).empty() ? walk.app : nullptr;
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error, std::span<const std::string> words) {
  const Walk walk = walk_verbs(app, words);
  if (walk.unknown) {
    return {ErrorCode::invalid_input, fmt::format("{} has no verb '{}'", walk.path, *walk.unknown),
            suggest_verb(*walk.app, *walk.unknown, walk.path)};
  }
  if (const auto option = find_unknown_option(app, *walk.app, words)) {
    return {ErrorCode::invalid_input, fmt::format("{} has no option {}", walk.path, *option),
            suggest_option(*walk.app, *option, walk.path)};
  }
  return {ErrorCode::invalid_input, error.what(), walk.path + " --help"};
}

}  // namespace espalier::cli
