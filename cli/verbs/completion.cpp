#include <fmt/format.h>

#include <algorithm>

#include "cli/flags/inputs.h"
#include "cli/verbs/commands.h"
#include "engine/communicator/transport_choice.h"
#include "planners/planner.h"
#include "schedule/collective.h"

namespace espalier::cli {
namespace {

/// An option's names, and the words that its value may be.
struct Valued {
  std::vector<std::string> names;
  std::vector<std::string> values;
};

/// What may follow one verb (or a verb of a verb): its own verbs, its flags and words that its arguments take.
struct Completion {
  std::string path;  ///< "simulate", "topo show"; empty for the command itself.
  std::vector<std::string> words;
  std::vector<Valued> valued;
};

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const CollectiveKind kind : all_collective_kinds) names.emplace_back(to_string(kind));
  return names;
}

std::vector<std::string> algorithm_words() {
  std::vector<std::string> names = {"auto", "all"};
  for (const planners::Planner& planner : planners::all_planners()) names.emplace_back(planner.name);
  return names;
}

/// The words that the value of an option may be, by its long name; none where it is a number or a name of the user's.
std::vector<std::string> values_of(const std::string& option) {
  if (option == "algorithm" || option == "algorithms") return algorithm_words();
  if (option == "collective" || option == "collectives") return collective_names();
  if (option == "topology") return shipped_machines();
  if (option == "scenario") return shipped_names("scenarios");
  if (option == "model" || option == "models") return {"link", "fair"};
  if (option == "protocol" || option == "protocols") return {"none", "simple", "ll", "ll128"};
  if (option == "datatype") return {"int8", "int32", "int64", "half", "bfloat16", "float", "double"};
  if (option == "op") return {"sum", "prod", "min", "max", "avg"};
  if (option == "transport") return {transport_choices().begin(), transport_choices().end()};
  if (option == "buffers") return {"registered", "private"};
  if (option == "device") return {"host", "cuda", "cuda-copies", "cuda-ranks", "cuda-ranks-copies"};
  if (option == "failures") return {"links", "nodes", "hosts", "ranks"};
  if (option == "color") return {"auto", "always", "never"};
  return {};
}

std::vector<Valued> valued_options(const CLI::App& app) {
  std::vector<Valued> all;
  for (const CLI::Option* option : app.get_options()) {
    Valued valued;
    for (const std::string& name : option->get_lnames()) {
      valued.names.push_back("--" + name);
      if (valued.values.empty()) valued.values = values_of(name);
    }
    for (const std::string& name : option->get_snames()) valued.names.push_back("-" + name);
    if (!valued.values.empty()) all.push_back(std::move(valued));
  }
  return all;
}

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
  Completion completion{path, {}, valued_options(app)};
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    completion.words.push_back(child->get_name());
    collect(*child, path.empty() ? child->get_name() : path + " " + child->get_name(), global_flags, all);
  }
  for (const std::string& flag : flag_names(app)) completion.words.push_back(flag);
  if (!path.empty()) completion.words.insert(completion.words.end(), global_flags.begin(), global_flags.end());
  if (takes(app, "COLLECTIVE")) {
    for (const std::string& name : collective_names()) completion.words.push_back(name);
  }
  if (takes(app, "TOPOLOGY")) {
    for (const std::string& machine : shipped_machines()) completion.words.push_back(machine);
  }
  std::ranges::sort(completion.words);
  completion.words.erase(std::unique(completion.words.begin(), completion.words.end()), completion.words.end());
  all.push_back(std::move(completion));
}

/// The patterns of a case statement for an option of a verb: "'simulate -a'|'simulate --algorithm'".
std::string patterns_of(const std::string& path, const Valued& valued) {
  std::string patterns;
  for (const std::string& name : valued.names)
    patterns += fmt::format("{}'{} {}'", patterns.empty() ? "" : "|", path, name);
  return patterns;
}

std::string bash_script(const std::vector<Completion>& all) {
  std::string script =
      "# bash completion of espalier; source it, or install it as /usr/share/bash-completion/completions/espalier\n"
      "_espalier() {\n"
      "  local word path='' words='' values='' before=''\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$path${path:+ }$word\" in\n";
  for (const Completion& completion : all) {
    if (!completion.path.empty()) script += fmt::format("      '{0}') path='{0}' ;;\n", completion.path);
  }
  script += "    esac\n  done\n  case \"$path\" in\n";
  for (const Completion& completion : all) {
    script += fmt::format("    '{}') words='{}' ;;\n", completion.path, fmt::join(completion.words, " "));
  }
  script += "  esac\n  case \"$path $previous\" in\n";
  for (const Completion& completion : all) {
    for (const Valued& valued : completion.valued) {
      script +=
          fmt::format("    {}) values='{}' ;;\n", patterns_of(completion.path, valued), fmt::join(valued.values, " "));
    }
  }
  script +=
      "  esac\n"
      "  if [[ -n $values ]]; then  # A list goes on behind its last comma.\n"
      "    [[ $current == *,* ]] && before=\"${current%,*},\"\n"
      "    COMPREPLY=($(compgen -P \"$before\" -W \"$values\" -- \"${current##*,}\"))\n"
      "    return\n"
      "  fi\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\") $(compgen -f -- \"$current\"))\n"
      "}\n"
      "complete -o filenames -F _espalier espalier\n";
  return script;
}

std::string zsh_script(const std::vector<Completion>& all) {
  return "#compdef espalier\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(all);
}

std::string fish_condition(const std::string& path) {
  if (path.empty()) return "__fish_use_subcommand";
  const std::size_t space = path.find(' ');
  std::string condition = "__fish_seen_subcommand_from " + path.substr(0, space);
  if (space != std::string::npos) condition += "; and __fish_seen_subcommand_from " + path.substr(space + 1);
  return condition;
}

/// "-l algorithm" of "--algorithm".
std::string fish_option(const std::string& name) {
  return name.starts_with("--") ? "-l " + name.substr(2) : "-s " + name.substr(1);
}

std::string fish_script(const std::vector<Completion>& all) {
  std::string script = "# fish completion of espalier; install it as ~/.config/fish/completions/espalier.fish\n";
  for (const Completion& completion : all) {
    const std::string condition = fish_condition(completion.path);
    for (const std::string& word : completion.words) {
      const std::string what = word.starts_with("-") ? fish_option(word) : "-a " + word;
      script += fmt::format("complete -c espalier -n '{}' {}\n", condition, what);
    }
    for (const Valued& valued : completion.valued) {
      for (const std::string& name : valued.names) {
        script += fmt::format("complete -c espalier -n '{}' {} -x -a '{}'\n", condition, fish_option(name),
                              fmt::join(valued.values, " "));
      }
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
      if (session.console.json) {
        return session.console.refuse_usage(
            {ErrorCode::invalid_input, "--json does not apply to completion: a script is no document", "leave it out"});
      }
      std::vector<Completion> all;
      collect(app, "", flag_names(app), all);
      session.console.print(*shell == "bash" ? bash_script(all) : *shell == "zsh" ? zsh_script(all) : fish_script(all));
      return ExitCode::ok;
    };
  });
}

}  // namespace espalier::cli
