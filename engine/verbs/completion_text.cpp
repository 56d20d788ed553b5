#include "engine/verbs/completion_text.h"

#include <fmt/format.h>

namespace espalier::engine {

std::string describe_completion(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "broke: nothing it sent was acknowledged; the rank is gone, or its port or the path to it is down";
    case IBV_WC_RNR_RETRY_EXC_ERR: return "broke: the receiver had no receive work posted, so it is out of credits";
    case IBV_WC_REM_ACCESS_ERR:
      return "broke: the other end refuses access to its memory (a stale key, or memory that was released)";
    case IBV_WC_LOC_PROT_ERR: return "broke: this end's memory is not registered (any more)";
    case IBV_WC_REM_INV_REQ_ERR: return "broke: the other end calls the request invalid; do both run the same version?";
    case IBV_WC_LOC_QP_OP_ERR:
      return "broke: this end's device could not send; its port or interface is down, or was removed";
    case IBV_WC_WR_FLUSH_ERR: return "was closed before all its work was done";
    default: return fmt::format("broke: {}", ibv_wc_status_str(status));
  }
}

}  // namespace espalier::engine
