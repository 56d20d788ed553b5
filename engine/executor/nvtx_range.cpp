#include "engine/executor/nvtx_range.h"

#ifdef ESPALIER_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace espalier::engine {
#ifdef ESPALIER_NVTX
namespace {

/// Null where no tool has injected itself (NVTX_INJECTION64_PATH).
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("espalier");
  return made;
}

}  // namespace

bool NvtxRange::is_listening() { return domain() != nullptr; }

void NvtxRange::begin(const std::string& text) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text.c_str();  // The tool copies it.
  nvtxDomainRangePushEx(domain(), &attributes);
}

void NvtxRange::end() { nvtxDomainRangePop(domain()); }
#else
bool NvtxRange::is_listening() { return false; }
void NvtxRange::begin(const std::string&) {}
void NvtxRange::end() {}
#endif

}  // namespace espalier::engine
