#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/inputs.h"
#include "schedule/collective.h"

namespace espalier::cli {
namespace {

/// What may follow one verb (or a verb of a verb): its own verbs, its flags and words that its arguments take.
struct Completion {
  std::string path;  ///< "simulate", "topo show"; empty for the command itself.
  std::vector<std::string> words;
};

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

bool takes(const CLI::App& app, const std::string& positional) {
  return std::ranges::any_of(app.get_options(), [&](const CLI::Option* option) {
    return option->get_positional() && option->get_name(true).find(positional) != std::string::npos;
  });
}

void collect(const CLI::App& app, const std::string& path, const std::vector<std::string>& global_flags,
             std::vector<Completion>& all) {
  Completion completion{path, {}};
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    completion.words.push_back(child->get_name());
    collect(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), global_flags, all);
  }
  for (const std::string& flag : flag_names(app)) completion.words.push_back(flag);
  if (!path.empty()) completion.words.insert(completion.words.end(), global_flags.begin(), global_flags.end());
  if (takes(app, "COLLECTIVE")) {
    for (const CollectiveKind kind : all_collective_kinds) completion.words.emplace_back(to_string(kind));
  }
  if (takes(app, "TOPOLOGY")) {
    for (const std::string& machine : shipped_machines()) completion.words.push_back(machine);
  }
  std::ranges::sort(completion.words);
  completion.words.erase(std::unique(completion.words.begin(), completion.words.end()), completion.words.end());
  all.push_back(std::move(completion));
}

std::string bash_script(const std::vector<Completion>& all) {
  std::string script =
      "# bash completion of espalier; source it, or install it as /usr/share/bash-completion/completions/espalier\n"
      "_espalier() {\n"
      "  local word path='' words=''\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path${path:+ }$word\" in\n";
  for (const Completion& completion : all) {
    if (!completion.path.empty()) script += fmt::format("      '{0}') path='{0}' ;;\n", completion.path);
  }
  script += "    esac\n  done\n  case \"$path\" in\n";
  for (const Completion& completion : all) {
    script += fmt::format("    '{}') words='{}' ;;\n", completion.path, fmt::join(completion.words, " "));
  }
  script +=
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\") "
      "$(compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
      "}\n"
      "complete -o filenames -F _espalier espalier\n";
  return script;
}

std::string zsh_script(const std::vector<Completion>& all) {
  return "#compdef espalier\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(all);
}

std::string fish_script(const std::vector<Completion>& all) {
  std::string script = "# fish completion of espalier; install it as ~/.config/fish/completions/espalier.fish\n";
  for (const Completion& completion : all) {
    std::string condition = "__fish_use_subcommand";
    if (!completion.path.empty()) {
      condition.clear();
      const std::size_t space = completion.path.find(' ');
      condition = "__fish_seen_subcommand_from " + completion.path.substr(0, space);
      if (space != std::string::npos) {
        condition += "; and __fish_seen_subcommand_from " + completion.path.substr(space + 1);
      }
    }
    for (const std::string& word : completion.words) {
      const std::string what = word.starts_with("--")  ? "-l " + word.substr(2)
                               : word.starts_with("-") ? "-s " + word.substr(1)
                                                       : "-a " + word;
      script += fmt::format("complete -c espalier -n '{}' {}\n", condition, what);
    }
  }
  return script;
}

}  // namespace

void add_completion_command(CLI::App& app, Session& session) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion", "Print a completion script for bash, zsh or fish");
  command->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->footer(examples(
      {"source <(espalier completion bash)", "espalier completion fish > ~/.config/fish/completions/espalier.fish"}));
  command->callback([shell, &app, &session] {
    session.run = [shell, &app, &session] {
      std::vector<Completion> all;
      collect(app, "", flag_names(app), all);
      session.console.print(*shell == "bash" ? bash_script(all) : *shell == "zsh" ? zsh_script(all) : fish_script(all));
      return ExitCode::ok;
    };
  });
}

}  // namespace espalier::cli
