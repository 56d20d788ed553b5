#include "cli/flags/modes.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier::cli {
namespace {

/// "--chunk", "-b" where there is no long name, "COLLECTIVE".
std::string shown_name(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(true);
  return option.get_lnames().empty() ? "-" + option.get_snames().front() : "--" + option.get_lnames().front();
}

}  // namespace

void add_csv_to(CLI::App& command, Console& console) {
  command.add_flag("--csv", console.csv, "Print the table alone, as CSV (RFC 4180)");
}

std::vector<std::string_view> join_options(std::initializer_list<std::span<const std::string_view>> lists) {
  std::vector<std::string_view> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

std::optional<Error> find_idle_option(const CLI::App& command, const Mode& mode) {
  for (const CLI::Option* option : command.get_options()) {
    const bool is_honoured =
        std::ranges::any_of(mode.options, [&](std::string_view name) { return option->check_name(std::string(name)); });
    if (is_honoured || option->count() == 0 || option == command.get_help_ptr()) continue;
    const std::string name = shown_name(*option);
    return Error{ErrorCode::invalid_input, fmt::format("{} does not apply to {}: {}", name, mode.what, mode.why),
                 mode.help.empty() ? fmt::format("leave {} out", name) : mode.help};
  }
  return std::nullopt;
}

bool was_given(const CLI::App& command, const std::string& name) {
  const CLI::Option* const option = command.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

}  // namespace espalier::cli
