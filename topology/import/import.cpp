#include "topology/import/import.h"

#include <fmt/format.h>

#include <algorithm>

#include "topology/import/finish.h"
#include "topology/import/formats/formats.h"
#include "topology/import/merge.h"

namespace espalier {
namespace {

constexpr std::size_t largest_file = std::size_t{64} << 20U;
constexpr std::int64_t most_boxes = 16'384;

/// All files about machines as one, and all about what joins machines as one.
struct Drafts {
  std::vector<Draft> machine;
  std::vector<Draft> fabric;
};

Result<Drafts> read_files(std::span<const ImportFile> files, const std::string& as) {
  Drafts drafts;
  for (const ImportFile& file : files) {
    if (file.text.size() > largest_file) {
      return fail(ErrorCode::too_large, file.name + " is larger than 64 MiB",
                  "no tool writes such files of one machine");
    }
    const auto format = find_format(as, file.text, file.name);
    if (!format) return tl::unexpected(format.error());
    auto draft = (*format)->read(file.text, file.name);
    if (!draft) return tl::unexpected(draft.error());
    (draft->scope == Draft::Scope::fabric ? drafts.fabric : drafts.machine).push_back(*std::move(draft));
  }
  return drafts;
}

/// Cloud images place devices in their files and leave out what joins the GPUs.
void warn_of_missing_links(Draft& machine, const Preset& preset) {
  for (const Medium medium : {Medium::nvlink, Medium::xgmi}) {
    if (preset_rate(preset, medium).bytes_per_second == 0 || machine.has(medium)) continue;
    machine.warn(import_codes::missing_links, 0,
                 fmt::format("{} has {} links, and no file says where they lead", preset.name, to_string(medium)),
                 "import what `nvidia-smi topo -m` or `rocm-smi --showtopo` prints as well");
  }
}

}  // namespace

Result<ImportedTopology> import_topology(std::span<const ImportFile> files, const ImportOptions& options) {
  if (files.empty()) return fail(ErrorCode::invalid_input, "there is no file to import", "name one or several");
  if (options.boxes < 1 || options.boxes > most_boxes) {
    return fail(ErrorCode::invalid_input, fmt::format("{} copies of a machine", options.boxes),
                fmt::format("write a number from 1 to {}", most_boxes));
  }
  const auto preset = options.preset.empty() ? Result<const Preset*>(nullptr) : find_preset(options.preset);
  if (!preset) return tl::unexpected(preset.error());
  auto drafts = read_files(files, options.as);
  if (!drafts) return tl::unexpected(drafts.error());
  if (drafts->fabric.size() > 1) {
    return fail(ErrorCode::unsupported, "several of the files describe a fabric", "import one of them");
  }
  const bool has_fabric = !drafts->fabric.empty();
  if (drafts->machine.empty()) {
    if (options.boxes > 1) {
      return fail(ErrorCode::infeasible, "there is a fabric and no machine to copy",
                  "import a file of the machine as well");
    }
    return finish_import(drafts->fabric.front(), *preset, options.name);
  }
  auto machine = merge_drafts(std::move(drafts->machine));
  if (!machine) return tl::unexpected(machine.error());
  simplify_pcie(*machine);
  if (*preset != nullptr) warn_of_missing_links(*machine, **preset);
  if (!has_fabric && options.boxes == 1) return finish_import(*machine, *preset, options.name);
  if (has_fabric && options.boxes > 1) {
    return fail(ErrorCode::invalid_input, "the file of the fabric says how many machines there are",
                "leave the number of copies out");
  }
  const auto cluster = place_machines(*machine, has_fabric ? drafts->fabric.front() : one_switch(options.boxes));
  if (!cluster) return tl::unexpected(cluster.error());
  return finish_import(*cluster, *preset, options.name);
}

std::vector<ImportFormat> import_formats() {
  std::vector<ImportFormat> formats;
  for (const FormatReader& reader : format_readers()) formats.push_back({reader.name, reader.what});
  return formats;
}

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets()) names.push_back(preset.name);
  return names;
}

}  // namespace espalier
