#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <string>
#include <string_view>

#include "base/result.h"
#include "topology/import/draft.h"

namespace espalier {

// One reader per format: the text of a file, and the name of the file for messages. Errors: invalid_input with
// file:line:column for what breaks the format's rules; unsupported for a part of it that is not read.
Result<Draft> read_nccl_topology(std::string_view text, const std::string& file);
Result<Draft> read_nvidia_matrix(std::string_view text, const std::string& file);
Result<Draft> read_nvidia_links(std::string_view text, const std::string& file);
Result<Draft> read_ibnetdiscover(std::string_view text, const std::string& file);
Result<Draft> read_iblinkinfo(std::string_view text, const std::string& file);
Result<Draft> read_hwloc(std::string_view text, const std::string& file);
Result<Draft> read_astra_network(std::string_view text, const std::string& file);
Result<Draft> read_simai(std::string_view text, const std::string& file);
Result<Draft> read_slurm_conf(std::string_view text, const std::string& file);
Result<Draft> read_slurm_yaml(std::string_view text, const std::string& file);
Result<Draft> read_dot(std::string_view text, const std::string& file);
Result<Draft> read_sysfs(std::string_view text, const std::string& file);
Result<Draft> read_nvml(std::string_view text, const std::string& file);
Result<Draft> read_amd_smi_topology(std::string_view text, const std::string& file);
Result<Draft> read_rocm_topology(std::string_view text, const std::string& file);

}  // namespace espalier
