#include "engine/verbs/completion_text.h"

#include <gtest/gtest.h>

namespace espalier::engine {
namespace {

bool says(ibv_wc_status status, const char* what) {
  return describe_completion(status).find(what) != std::string::npos;
}

TEST(CompletionText, SaysWhatToLookAt) {
  EXPECT_TRUE(says(IBV_WC_RETRY_EXC_ERR, "the rank is gone"));
  EXPECT_TRUE(says(IBV_WC_RNR_RETRY_EXC_ERR, "out of credits"));
  EXPECT_TRUE(says(IBV_WC_REM_ACCESS_ERR, "stale key"));
  EXPECT_TRUE(says(IBV_WC_LOC_PROT_ERR, "not registered"));
  EXPECT_TRUE(says(IBV_WC_LOC_QP_OP_ERR, "port or interface is down"));
}

TEST(CompletionText, NamesTheRestAsTheLibraryDoes) {
  EXPECT_TRUE(says(IBV_WC_FATAL_ERR, ibv_wc_status_str(IBV_WC_FATAL_ERR)));
}

}  // namespace
}  // namespace espalier::engine
