#include "topology/import/formats/formats.h"

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "topology/import/formats/amd_tables.h"
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

/// Whether a text begins with a cell of nvidia-smi's matrix: X alone, NV and a number, or a distance.
bool begins_with_cell(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  if (text.starts_with('X')) return text.size() == 1 || text[1] < 'A';
  if (text.starts_with("NV")) return text.size() > 2 && digits.find(text[2]) != std::string_view::npos;
  constexpr std::array<std::string_view, 7> distances = {"PIX", "PXB", "PHB", "NODE", "SYS", "SOC", "PSB"};
  return std::ranges::any_of(distances, [&](std::string_view each) { return text.starts_with(each); });
}

/// Whether the text has a row of such a matrix: a GPU and how it reaches another.
bool has_matrix_row(std::string_view text) {
  for (std::size_t at = text.find("GPU"); at != std::string_view::npos; at = text.find("GPU", at)) {
    at += 3;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    const std::size_t cell = std::min(text.find_first_not_of(" \t", end), text.size());
    if (end > at && begins_with_cell(text.substr(cell))) return true;
  }
  return false;
}

bool is_nvidia_matrix(std::string_view text) {
  return has(text, "GPU0") && (has_matrix_row(text.substr(0, sniffed_bytes)) || has(text, "CPU Affinity"));
}

bool is_ibnetdiscover(std::string_view text) { return has(text, "switchguid=") || has(text, "caguid="); }
bool is_iblinkinfo(std::string_view text) { return has(text, "==(") && has(text, ")==>"); }
bool is_hwloc(std::string_view text) { return has(text, "<topology") && has(text, "<object"); }
bool is_rocm_topology(std::string_view text) {
  return has(text, "Link Type between two GPUs") || has(text, "Hops between two GPUs");
}
bool is_amd_smi_topology(std::string_view text) {
  return has(text, "LINK TYPE TABLE:") || is_amd_smi_json(text.substr(0, sniffed_bytes));
}
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
    FormatReader{"rocm-topo", "rocm-smi --showtopo", is_rocm_topology, read_rocm_topology, true},
    FormatReader{"nvidia-links", "nvidia-smi nvlink -s or -R, beside nvidia-topo", is_nvidia_links, read_nvidia_links,
                 true},
    FormatReader{"nvidia-topo", "nvidia-smi topo -m", is_nvidia_matrix, read_nvidia_matrix, true},
    FormatReader{"ibnetdiscover", "ibnetdiscover", is_ibnetdiscover, read_ibnetdiscover, true},
    FormatReader{"iblinkinfo", "iblinkinfo", is_iblinkinfo, read_iblinkinfo, true},
    FormatReader{"hwloc", "hwloc XML (lstopo of.xml)", is_hwloc, read_hwloc},
    FormatReader{"amd-smi", "amd-smi topology, with --json or not", is_amd_smi_topology, read_amd_smi_topology, true},
    FormatReader{"astra-sim", "ASTRA-sim network file (analytical)", is_astra_network, read_astra_network},
    FormatReader{"simai", "SimAI topology", is_simai, read_simai},
    FormatReader{"slurm-conf", "Slurm topology.conf, tree or block", is_slurm_conf, read_slurm_conf, true},
    FormatReader{"slurm-yaml", "Slurm topology.yaml", is_slurm_yaml, read_slurm_yaml},
    FormatReader{"dot", "DOT, with bandwidth= of edges", is_dot, read_dot},
    FormatReader{"sysfs", "espalier topo detect --record", is_sysfs, read_sysfs},
    FormatReader{"nvml", "espalier topo detect --record, where NVIDIA's driver is", is_nvml, read_nvml},
};

/// Whether a printout stands further down in a text: people paste it behind what other tools have to say of the same
/// machine. Parts of the text overlap, so that what belongs together is in one of them.
bool is_further_down(const FormatReader& reader, std::string_view text) {
  constexpr std::size_t max_pasted = std::size_t{4} << 20U;
  text = text.substr(0, max_pasted);
  while (reader.is_printout && text.size() > sniffed_bytes) {
    text.remove_prefix(sniffed_bytes / 2);
    if (reader.sniffs(text)) return true;
  }
  return false;
}

/// The reader, and that of the other printout of nvidia-smi that stands somewhere in the text.
std::vector<const FormatReader*> with_pasted(const FormatReader& reader, std::string_view text) {
  constexpr std::array<std::string_view, 2> pasted = {"nvidia-topo", "nvidia-links"};
  std::vector<const FormatReader*> found = {&reader};
  if (std::ranges::find(pasted, reader.name) == pasted.end()) return found;
  for (const FormatReader& other : readers) {
    if (other.name == reader.name || std::ranges::find(pasted, other.name) == pasted.end()) continue;
    if (other.sniffs(text) || is_further_down(other, text)) found.push_back(&other);
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
    for (const FormatReader& reader : readers) {
      if (is_further_down(reader, text)) return with_pasted(reader, text);
    }
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
