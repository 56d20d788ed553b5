#include "topology/import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "topology/import/finish.h"
#include "topology/import/formats/formats.h"
#include "topology/import/lines.h"
#include "topology/import/merge.h"
#include "topology/import/nics.h"

namespace espalier {
namespace {

constexpr std::size_t largest_file = std::size_t{64} << 20U;
constexpr std::int64_t max_boxes = 16'384;

/// All files about machines as one, and all about what joins machines as one.
struct Drafts {
  std::vector<Draft> machine;
  std::vector<Draft> fabric;
};

/// Reads a file; of a printout that is not to be read as it is, and ends within a line, without that line.
Result<Draft> read_whole_lines(const FormatReader& format, std::string_view text, const std::string& name) {
  auto draft = format.read(text, name);
  if (draft || !format.is_printout || text.ends_with('\n')) return draft;
  auto without = format.read(text.substr(0, text.rfind('\n') + 1), name);
  if (!without) return draft;
  without->warn(import_codes::left_out, 0, "the last line is cut",
                "it was left out; copy the whole of what was printed");
  std::ranges::rotate(without->warnings, without->warnings.end() - 1);  // Others may follow from it.
  return without;
}

Result<Drafts> read_files(std::span<const ImportFile> files, const std::string& as) {
  Drafts drafts;
  for (const ImportFile& file : files) {
    if (file.text.size() > largest_file) {
      return fail(ErrorCode::too_large, file.name + " is larger than 64 MiB",
                  "no tool writes such files of one machine");
    }
    std::string_view text = file.text;
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // A byte order mark.
    std::string plain;
    if (text.find("\xc2\xa0") != std::string_view::npos) text = plain = with_plain_blanks(text);
    const auto formats = find_formats(as, text, file.name);
    if (!formats) return tl::unexpected(formats.error());
    for (const FormatReader* format : *formats) {
      auto draft = read_whole_lines(*format, text, file.name);
      if (!draft) return tl::unexpected(draft.error());
      (draft->scope == Draft::Scope::fabric ? drafts.fabric : drafts.machine).push_back(*std::move(draft));
    }
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

/// Hosts alone do not show the NVLinks between them.
void warn_of_domains(Draft& fabric) {
  std::set<std::string> domains;
  for (const DraftNode& node : fabric.nodes) {
    if (!node.domain.empty()) domains.insert(node.domain);
  }
  if (domains.empty()) return;
  fabric.warn(
      import_codes::nvlink_domain, 0,
      listed({domains.begin(), domains.end()}) +
          (domains.size() == 1 ? " is a block, which NVLinks may join" : " are blocks, which NVLinks may join") +
          ": links of the network alone are counted",
      "import what `nvidia-smi topo -m` prints on one of its hosts beside it, with --preset gb200 or gb300");
}

/// Marks the NVSwitches of a rack, which machines beside each other share; the GPUs that a domain of them joins, zero
/// where the machine has no such switch.
std::int64_t mark_racks(Draft& machine, const Preset* preset) {
  const GpuGeneration* const generation = generation_of(machine, preset);
  const bool is_rack = generation != nullptr && generation->domain_gpus > 0;
  for (const DraftLink& link : machine.links) {
    if (link.medium != Medium::nvlink || !is_rack) continue;
    for (const std::size_t end : {link.tail, link.head}) {
      DraftNode& node = machine.nodes[end];
      node.joins_hosts = node.joins_hosts || node.kind == NodeKind::switch_node;
    }
  }
  if (std::ranges::none_of(machine.nodes, &DraftNode::joins_hosts)) return 0;
  return is_rack ? generation->domain_gpus : usual_domain_gpus;
}

Result<Draft> place_in_fabric(Draft& machine, Draft fabric, std::int64_t domain_gpus, bool names_nics) {
  if (!names_nics) warn_of_other_networks(machine);
  const auto gpus = std::ranges::count_if(machine.nodes, &DraftNode::is_rank);
  if (domain_gpus > 0 && gpus > 0) assign_domains(fabric, std::max<std::int64_t>(domain_gpus / gpus, 1));
  return place_machines(machine, fabric);
}

/// A matrix counts the same NVLinks for each GPU behind a switch: where a GPU has more of them to others than its
/// generation has, they lead to one.
void lead_to_switch(Draft& machine, const GpuGeneration* generation) {
  if (generation == nullptr || generation->nvlinks == 0) return;
  std::map<std::size_t, std::int64_t> sums, counts;  // By GPU: its NVLinks to others, and the most to one of them.
  for (const DraftLink& link : machine.links) {
    const bool is_between = machine.nodes[link.tail].is_rank && machine.nodes[link.head].is_rank;
    if (link.medium != Medium::nvlink || link.one_way || !is_between) continue;
    for (const std::size_t end : {link.tail, link.head}) {
      sums[end] += link.count;
      counts[end] = std::max(counts[end], link.count);
    }
  }
  if (std::ranges::none_of(sums, [&](const auto& gpu) { return gpu.second > generation->nvlinks; })) return;
  std::erase_if(machine.links, [](const DraftLink& link) { return link.medium == Medium::nvlink; });
  const std::size_t hub = machine.add({.id = "nvswitch", .kind = NodeKind::switch_node});
  for (const auto& [gpu, count] : counts) {
    machine.links.push_back({.tail = gpu, .head = hub, .medium = Medium::nvlink, .count = count});
  }
}

/// Printed matrices show GPUs behind processors of Grace as they show any; what is between them is NVLink-C2C, not
/// PCIe.
void join_by_c2c(Draft& machine) {
  if (machine.has(Medium::c2c)) return;
  for (DraftLink& link : machine.links) {
    const NodeKind tail = machine.nodes[link.tail].kind;
    const NodeKind head = machine.nodes[link.head].kind;
    const bool is_to_cpu =
        (tail == NodeKind::gpu && head == NodeKind::cpu) || (tail == NodeKind::cpu && head == NodeKind::gpu);
    if (is_to_cpu && link.medium == Medium::pcie && !link.bandwidth) link.medium = Medium::c2c;
  }
}

/// One machine of all files about machines; the NICs that were named, and simple ways between devices.
Result<Draft> make_machine(std::vector<Draft> drafts, const Preset* preset, const std::string& nics) {
  auto machine = merge_drafts(std::move(drafts));
  if (!machine) return machine;
  if (auto kept = keep_nics(*machine, nics); !kept) return tl::unexpected(kept.error());
  simplify_pcie(*machine);
  lead_to_switch(*machine, generation_of(*machine, preset));
  if (preset != nullptr && preset->c2c.bytes_per_second > 0) join_by_c2c(*machine);
  if (preset != nullptr) warn_of_missing_links(*machine, *preset);
  return machine;
}

}  // namespace

Result<ImportedTopology> import_topology(std::span<const ImportFile> files, const ImportOptions& options) {
  if (files.empty()) return fail(ErrorCode::invalid_input, "there is no file to import", "name one or several");
  if (options.boxes < 1 || options.boxes > max_boxes) {
    return fail(ErrorCode::invalid_input, fmt::format("{} copies of a machine", options.boxes),
                fmt::format("write a number from 1 to {}", max_boxes));
  }
  const auto preset = options.preset.empty() ? Result<const Preset*>(nullptr) : find_preset(options.preset);
  if (!preset) return tl::unexpected(preset.error());
  auto drafts = read_files(files, options.as);
  if (!drafts) return tl::unexpected(drafts.error());
  if (drafts->fabric.size() > 1) {
    return fail(ErrorCode::unsupported, "several of the files describe a fabric", "import one of them");
  }
  const bool has_fabric = !drafts->fabric.empty();
  const FinishOptions finish{*preset, options.name, options.in_network};
  if (drafts->machine.empty()) {
    if (options.boxes > 1) {
      return fail(ErrorCode::infeasible, "there is a fabric and no machine to copy",
                  "import a file of the machine as well");
    }
    if (!options.nics.empty()) {
      return fail(ErrorCode::invalid_input, "--nics is of a machine, and the file describes a fabric alone",
                  "import a file of the machine as well, or leave it out");
    }
    warn_of_domains(drafts->fabric.front());
    return finish_import(drafts->fabric.front(), finish);
  }
  auto machine = make_machine(std::move(drafts->machine), *preset, options.nics);
  if (!machine) return tl::unexpected(machine.error());
  const std::int64_t domain_gpus = mark_racks(*machine, *preset);
  if (!has_fabric && options.boxes == 1) return finish_import(*machine, finish);
  if (has_fabric && options.boxes > 1) {
    return fail(ErrorCode::invalid_input, "the file of the fabric says how many machines there are",
                "leave the number of copies out");
  }
  const auto cluster =
      place_in_fabric(*machine, has_fabric ? std::move(drafts->fabric.front()) : one_switch(options.boxes), domain_gpus,
                      !options.nics.empty());
  if (!cluster) return tl::unexpected(cluster.error());
  return finish_import(*cluster, finish);
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
