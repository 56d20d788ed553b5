// A tool that NVTX injects (NVTX_INJECTION64_PATH): writes the ranges that end in this process to the file that
// NVTX_LISTENER_FILE names, a line "DOMAIN: TEXT" each.
#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

std::string domain_name;
thread_local std::vector<std::string> open_ranges;

nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  domain_name = name;
  return reinterpret_cast<nvtxDomainHandle_t>(&domain_name);
}

int NVTX_API push_range(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  open_ranges.emplace_back(attributes->message.ascii);
  return static_cast<int>(open_ranges.size()) - 1;
}

int NVTX_API pop_range(nvtxDomainHandle_t) {
  if (std::FILE* const file = std::fopen(std::getenv("NVTX_LISTENER_FILE"), "a"); file != nullptr) {
    std::fputs((domain_name + ": " + open_ranges.back() + "\n").c_str(), file);
    std::fclose(file);
  }
  open_ranges.pop_back();
  return static_cast<int>(open_ranges.size());
}

}  // namespace

extern "C" int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  if (size <= NVTX_CBID_CORE2_DomainRangePop) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(create_domain);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(push_range);
  *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(pop_range);
  return 1;
}
