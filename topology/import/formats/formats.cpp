#include "topology/import/formats/formats.h"

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "topology/import/formats/readers.h"
#include "topology/import/known_files.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.substr(0, sniffed_bytes).find(part) != std::string_view::npos;
}

bool is_nccl_topology(std::string_view text) { return has(text, "<system"); }
bool is_nvidia_links(std::string_view text) { return has(text, "GPU 0:") && has(text, "Link 0:"); }
bool is_nvidia_matrix(std::string_view text) {
  return has(text, "GPU0") && (has(text, " X ") || has(text, "\tX") || has(text, "CPU Affinity"));
}

bool is_ibnetdiscover(std::string_view text) { return has(text, "switchguid=") || has(text, "caguid="); }
bool is_iblinkinfo(std::string_view text) { return has(text, "==(") && has(text, ")==>"); }
bool is_hwloc(std::string_view text) { return has(text, "<topology") && has(text, "<object"); }
bool is_rocm_topology(std::string_view text) {
  return has(text, "Link Type between two GPUs") || has(text, "Hops between two GPUs");
}
bool is_amd_smi_topology(std::string_view text) { return has(text, "LINK TYPE TABLE:") && has(text, "HOPS TABLE:"); }
bool is_astra_network(std::string_view text) { return has(text, "npus_count:"); }
bool is_slurm_conf(std::string_view text) { return has(text, "SwitchName=") || has(text, "BlockName="); }
bool is_slurm_yaml(std::string_view text) { return has(text, "- topology:"); }
/// Its first line: five numbers and the name of a GPU.
bool is_simai(std::string_view text) {
  const auto words = TextLine{text.substr(0, text.find('\n')), 1}.words();
  return words.size() == 6 &&
         std::all_of(words.begin(), words.begin() + 5, [](const Word& word) { return whole_number(word.text); });
}

bool is_nvml(std::string_view text) { return text.starts_with("nvml 1\n"); }
bool is_sysfs(std::string_view text) { return text.starts_with("sysfs 1\n"); }

/// Its first word that is none of a comment's.
bool is_dot(std::string_view text) {
  for (const TextLine& line : lines_of(text.substr(0, sniffed_bytes))) {
    const auto words = line.words();
    if (words.empty() || words[0].text.starts_with("//") || words[0].text.starts_with("/*") ||
        words[0].text.starts_with("*") || words[0].text.starts_with("#"))
      continue;
    return words[0].text == "graph" || words[0].text == "digraph" || words[0].text == "strict";
  }
  return false;
}

constexpr std::array readers = {
    FormatReader{"nccl-topo", "NCCL topology XML (NCCL_TOPO_DUMP_FILE), of RCCL too", is_nccl_topology,
                 read_nccl_topology},
    FormatReader{"nvidia-links", "nvidia-smi nvlink -s or -R, beside nvidia-topo", is_nvidia_links, read_nvidia_links,
                 true},
    FormatReader{"nvidia-topo", "nvidia-smi topo -m", is_nvidia_matrix, read_nvidia_matrix, true},
    FormatReader{"ibnetdiscover", "ibnetdiscover", is_ibnetdiscover, read_ibnetdiscover, true},
    FormatReader{"iblinkinfo", "iblinkinfo", is_iblinkinfo, read_iblinkinfo, true},
    FormatReader{"hwloc", "hwloc XML (lstopo of.xml)", is_hwloc, read_hwloc},
    FormatReader{"rocm-topo", "rocm-smi --showtopo", is_rocm_topology, read_rocm_topology, true},
    FormatReader{"amd-smi", "amd-smi topology", is_amd_smi_topology, read_amd_smi_topology, true},
    FormatReader{"astra-sim", "ASTRA-sim network file (analytical)", is_astra_network, read_astra_network},
    FormatReader{"simai", "SimAI topology", is_simai, read_simai},
    FormatReader{"slurm-conf", "Slurm topology.conf, tree or block", is_slurm_conf, read_slurm_conf, true},
    FormatReader{"slurm-yaml", "Slurm topology.yaml", is_slurm_yaml, read_slurm_yaml},
    FormatReader{"dot", "DOT, with bandwidth= of edges", is_dot, read_dot},
    FormatReader{"sysfs", "espalier topo detect --record", is_sysfs, read_sysfs},
    FormatReader{"nvml", "espalier topo detect --record, where NVIDIA's driver is", is_nvml, read_nvml},
};

/// A printout of nvidia-smi and what it begins with.
struct PastePart {
  std::string_view format;
  std::string_view mark;
};
constexpr std::array paste_parts = {PastePart{"nvidia-topo", "GPU0"}, PastePart{"nvidia-links", "GPU 0:"}};

/// The reader, and that of another printout of nvidia-smi that stands somewhere in the text.
std::vector<const FormatReader*> with_pasted(const FormatReader& reader, std::string_view text) {
  std::vector<const FormatReader*> found = {&reader};
  if (std::ranges::find(paste_parts, reader.name, &PastePart::format) == paste_parts.end()) return found;
  for (const PastePart& part : paste_parts) {
    const std::size_t at = text.find(part.mark);
    if (part.format == reader.name || at == std::string_view::npos) continue;
    const auto* const other = std::ranges::find(readers, part.format, &FormatReader::name);
    const std::size_t line = text.substr(0, at).rfind('\n') + 1;
    if (other->sniffs(text.substr(line))) found.push_back(other);
  }
  return found;
}

}  // namespace

std::span<const FormatReader> format_readers() { return readers; }

Result<std::vector<const FormatReader*>> find_formats(std::string_view name, std::string_view text,
                                                      const std::string& file) {
  std::vector<std::string_view> names;
  for (const FormatReader& reader : readers) {
    if (name.empty() && reader.sniffs(text)) return with_pasted(reader, text);
    if (reader.name == name) return std::vector{&reader};
    names.push_back(reader.name);
  }
  if (name.empty()) {
    if (const auto known = recognise_file(text)) {
      return fail(ErrorCode::unsupported, file + " is " + std::string(known->what) + ", not a machine",
                  std::string(known->help));
    }
    std::string all;
    for (const std::string_view known : names) all += (all.empty() ? "" : ", ") + std::string(known);
    return fail(ErrorCode::invalid_input, file + " looks like none of the formats that are read",
                "name its format with --as: " + all);
  }
  return fail(ErrorCode::invalid_input, "there is no format " + cited(name), suggest(name, names));
}

}  // namespace espalier
