#include "topology/import/import.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/flags/inputs.h"
#include "cli/output/output_file.h"
#include "cli/verbs/topo/topo.h"
#include "topology/analysis/symmetry.h"
#include "topology/yaml/write_topology.h"

namespace espalier::cli {
namespace {

struct ImportFlags {
  std::vector<std::string> files;
  ImportOptions options;
  std::string output = "-";
};

/// "dgx.xml" gives the name "dgx".
std::string name_of(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem();
  return file == "-" || stem.empty() ? "import" : stem;
}

ExitCode import_files(const Console& console, const ImportFlags& flags) {
  std::vector<std::string> texts;
  for (const std::string& path : flags.files) {
    auto text = read_whole(console, path);
    if (!text) return console.refuse(text.error());
    texts.push_back(*std::move(text));
  }
  std::vector<ImportFile> files;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    files.push_back({flags.files[i] == "-" ? "<stdin>" : flags.files[i], texts[i]});
  }
  ImportOptions options = flags.options;
  if (options.name.empty()) options.name = name_of(flags.files.front());
  const auto imported = import_topology(files, options);
  if (!imported) return console.refuse(imported.error());
  console.show(imported->warnings);
  std::vector<Diagnostic> odd = find_asymmetry(imported->topology);
  for (Diagnostic& warning : odd) warning.place.file = flags.files.front();
  console.show(odd);
  for (const std::string& note : imported->notes) console.note(note);
  const auto written = write_file(flags.output, [&](std::ostream& stream) -> Result<void> {
    stream << (console.json
                   ? write_topology_json(imported->topology, imported->provenance, imported->profile, imported->gpu) +
                         "\n"
                   : write_topology(imported->topology, imported->provenance, imported->profile, imported->gpu));
    return {};
  });
  return written ? ExitCode::ok : console.refuse(written.error());
}

std::string list_formats() {
  std::string text = "Formats, recognised or named with --as (docs/formats.md):\n";
  for (const ImportFormat& format : import_formats()) text += fmt::format("  {:<16} {}\n", format.name, format.what);
  text += "Presets:";
  for (const std::string_view preset : preset_names()) text += " " + std::string(preset);
  return text + "\n";
}

}  // namespace

void add_topo_import_command(CLI::App& topo, Session& session) {
  const auto flags = std::make_shared<ImportFlags>();
  flags->options.name.clear();
  CLI::App* command = topo.add_subcommand("import", "Make a topology of what other tools wrote about a machine");
  command
      ->add_option("FILE", flags->files,
                   "Files about one machine, and at most one about its fabric; - is standard input")
      ->required();
  command->add_option("--as", flags->options.as, "Format of the files, in place of recognising it")
      ->option_text("FORMAT");
  command->add_option("--preset", flags->options.preset, "Kind of machine whose rates fill in what no file has")
      ->option_text("NAME");
  command
      ->add_option("--replicate", flags->options.boxes,
                   "Copies of the machine, joined by their NICs through one switch")
      ->option_text("N");
  command
      ->add_option("--nics", flags->options.nics,
                   "NICs of the machine that the fabric joins, such as mlx5_[1-8]; the others are left out")
      ->option_text("NAMES");
  command->add_flag("--in-network", flags->options.in_network,
                    "Switches that can copy and add in the network (NVLink SHARP, SHARP) do");
  command->add_option("--name", flags->options.name, "Name of the topology (default: that of the first file)");
  command->add_option("-o,--output", flags->output, "Write to this file (- is standard output)")->option_text("FILE");
  command->footer(
      list_formats() +
      examples({R"(printf '\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n' | espalier topo import - --preset a100-sxm)",
                "nvidia-smi topo -m | espalier topo import - --preset a100-sxm -o box.yaml",
                "espalier topo import nccl-topo.xml nvlink-s.txt -o box.yaml",
                "espalier topo import nccl-topo.xml --replicate 16 --nics 'mlx5_[1-8]' -o cluster.yaml"}));
  command->callback(
      [flags, &session] { session.run = [flags, &session] { return import_files(session.console, *flags); }; });
}

}  // namespace espalier::cli
