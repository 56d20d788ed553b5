#include "topology/import/formats/formats.h"

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

/// Where sniffing stops: licences and other comments may come first.
constexpr std::size_t sniffed_bytes = 8192;

bool has(std::string_view text, std::string_view part) {
  return text.substr(0, sniffed_bytes).find(part) != std::string_view::npos;
}

bool is_nccl_topology(std::string_view text) { return has(text, "<system"); }
bool is_nvidia_links(std::string_view text) { return has(text, "GPU 0:") && has(text, "Link 0:"); }
bool is_nvidia_matrix(std::string_view text) {
  return has(text, "GPU0") && (has(text, " X ") || has(text, "\tX") || has(text, "CPU Affinity"));
}

constexpr std::array readers = {
    FormatReader{"nccl-topo", "NCCL topology XML (NCCL_TOPO_DUMP_FILE), of RCCL too", is_nccl_topology,
                 read_nccl_topology},
    FormatReader{"nvidia-links", "nvidia-smi nvlink -s or -R, beside nvidia-topo", is_nvidia_links, read_nvidia_links},
    FormatReader{"nvidia-topo", "nvidia-smi topo -m", is_nvidia_matrix, read_nvidia_matrix},
};

}  // namespace

std::span<const FormatReader> format_readers() { return readers; }

Result<const FormatReader*> find_format(std::string_view name, std::string_view text, const std::string& file) {
  std::vector<std::string_view> names;
  for (const FormatReader& reader : readers) {
    if (name.empty() ? reader.sniffs(text) : reader.name == name) return &reader;
    names.push_back(reader.name);
  }
  if (name.empty()) {
    std::string all;
    for (const std::string_view known : names) all += (all.empty() ? "" : ", ") + std::string(known);
    return fail(ErrorCode::invalid_input, file + " looks like none of the formats that are read",
                "name its format with --as: " + all);
  }
  return fail(ErrorCode::invalid_input, "there is no format " + quoted(name), suggest(name, names));
}

}  // namespace espalier
