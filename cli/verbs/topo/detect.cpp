#include <fmt/format.h>

#include "cli/flags/inputs.h"
#include "cli/output/output_file.h"
#include "cli/verbs/topo/topo.h"
#include "topology/analysis/symmetry.h"
#include "topology/import/import.h"
#include "topology/import/nvml/record_nvml.h"
#include "topology/import/record_sysfs.h"
#include "topology/yaml/write_topology.h"

namespace espalier::cli {
namespace {

struct DetectFlags {
  std::vector<std::string> files;  ///< What other tools say of the machine.
  std::string root = "/";
  std::string record;
  std::string preset;
  bool in_network = false;
  std::string name = "detected";
  std::string output = "-";
};

Result<void> keep(const Console& console, const std::string& path, const std::string& text) {
  const auto kept = write_file(path, [&](std::ostream& stream) -> Result<void> {
    stream << text;
    return {};
  });
  if (kept) console.note("wrote " + path + " (espalier topo import reads it)");
  return kept;
}

ExitCode detect(const Console& console, const DetectFlags& flags) {
  const auto recorded = record_sysfs(flags.root);
  if (!recorded) return console.refuse(recorded.error());
  if (!flags.record.empty()) {
    if (auto kept = keep(console, flags.record, *recorded); !kept) return console.refuse(kept.error());
  }
  // The library knows this machine, and no copy of another one's sys/.
  const auto gpus = flags.root == "/" ? record_nvml() : Result<std::string>("");
  if (!gpus && recorded->find("vendor=10de") != std::string::npos) {
    console.note(fmt::format("NVLinks are not read: {} ({})", gpus.error().message, gpus.error().help));
  }
  if (gpus && !gpus->empty() && !flags.record.empty()) {
    if (flags.record == "-") {
      return console.refuse({ErrorCode::invalid_input,
                             "--record -: this machine's GPUs go to a file beside that of sysfs", "name a file"});
    }
    if (auto kept = keep(console, flags.record + ".nvml", *gpus); !kept) return console.refuse(kept.error());
  }
  std::vector<std::string> texts;
  for (const std::string& path : flags.files) {
    auto text = read_whole(console, path);
    if (!text) return console.refuse(text.error());
    texts.push_back(*std::move(text));
  }
  std::vector<ImportFile> given;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    given.push_back({flags.files[i] == "-" ? "<stdin>" : flags.files[i], texts[i]});
  }
  std::vector<ImportFile> files;
  // A container may hide its GPUs' places on PCIe, and still have the library.
  const bool has_gpus = gpus && gpus->find("\ngpu ") != std::string::npos;
  if (!has_gpus || recorded->find("vendor=10de") != std::string::npos) files.push_back({"sysfs", *recorded});
  if (has_gpus) files.push_back({"nvml", *gpus});
  files.insert(files.end(), given.begin(), given.end());
  const ImportOptions options{.preset = flags.preset, .in_network = flags.in_network, .name = flags.name};
  // What was printed elsewhere, or within a machine that shows its GPUs to their driver only, describes a machine
  // itself.
  auto imported = !given.empty() && !has_gpus && !records_gpus(*recorded)
                      ? import_topology(given, options)
                      : Result<ImportedTopology>(tl::unexpected(Error{}));
  if (imported) {
    console.note("sysfs shows no GPU here and is left out: the topology is of " + given.front().name + " alone");
  } else {
    imported = import_topology(files, options);
  }
  if (!imported) return console.refuse(imported.error());
  console.show(imported->warnings);
  console.show(find_asymmetry(imported->topology));
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

}  // namespace

void add_topo_detect_command(CLI::App& topo, Session& session) {
  const auto flags = std::make_shared<DetectFlags>();
  CLI::App* command =
      topo.add_subcommand("detect", "Make a topology of this machine, as sysfs and NVIDIA's library show it");
  command->add_option("FILE", flags->files, "What nvidia-smi and other tools printed here, as topo import reads it");
  command->add_option("--root", flags->root, "Folder that holds the sys/ to read")->option_text("FOLDER (/)");
  command
      ->add_option("--record", flags->record,
                   "Keep what was read in this file (and FILE.nvml), for topo import elsewhere")
      ->option_text("FILE");
  command->add_option("--preset", flags->preset, "Kind of machine whose rates fill in what sysfs does not have")
      ->option_text("NAME");
  command->add_flag("--in-network", flags->in_network,
                    "Switches that can copy and add in the network (NVLink SHARP) do");
  command->add_option("--name", flags->name, "Name of the topology")->option_text("NAME (detected)");
  command->add_option("-o,--output", flags->output, "Write to this file (- is standard output)")->option_text("FILE");
  command->footer(
      "GPUs, adapters and the PCIe tree are in sysfs; NVLinks are asked for from libnvidia-ml.so.1 where it is.\n"
      "Elsewhere what nvidia-smi topo -m prints has them (docs/formats.md).\n" +
      examples({"espalier topo detect -o box.yaml",
                "nvidia-smi topo -m | espalier topo detect - --preset h100-sxm -o box.yaml",
                "espalier topo detect --record box.sysfs -o box.yaml"}));
  command->callback([flags, &session] { session.run = [flags, &session] { return detect(session.console, *flags); }; });
}

}  // namespace espalier::cli
