#include "compute/product.h"

#include <gtest/gtest.h>

namespace espalier::compute {
namespace {

const Gpu& h100() { return **find_gpu("h100-sxm"); }

TEST(Product, LargeOnesAreBoundByPower) {
  const Product product{8192, 8192, 8192};
  // 2 x 8192^3 operations at 0.712 of 989.4 TFLOP/s take 1.561 ms.
  EXPECT_NEAR(product_seconds(h100(), product), 1.561e-3, 0.02e-3);
}

TEST(Product, ThinOnesAreBoundByMemory) {
  const Product product{1, 16384, 16384};
  // 2 x 16384^2 bytes at 2.98 TB/s take 180 us.
  EXPECT_NEAR(product_seconds(h100(), product), 180e-6, 10e-6);
}

TEST(Product, MoreTakesNoLess) {
  double before = 0;
  for (std::int64_t rows = 64; rows <= 16384; rows *= 2) {
    const double seconds = product_seconds(h100(), {rows, 4096, 4096});
    EXPECT_GE(seconds, before * 0.999) << rows;
    before = seconds;
  }
}

TEST(Product, SlicesCostMoreThanTheirShare) {
  const double whole = product_seconds(h100(), {2048, 4096, 4096});
  EXPECT_GT(product_seconds(h100(), {2048, 512, 4096}), whole / 8);
}

TEST(Product, FasterTypesTakeLess) {
  EXPECT_LT(product_seconds(h100(), {8192, 8192, 8192, 1, Precision::fp8}),
            product_seconds(h100(), {8192, 8192, 8192, 1, Precision::bf16}));
}

TEST(Gpu, UnknownNamesGetASuggestion) {
  const auto found = find_gpu("h100-sx");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().help.find("h100-sxm"), std::string::npos);
  EXPECT_EQ(find_gpu("h100").error().help, "did you mean h100-pcie or h100-sxm?");
}

}  // namespace
}  // namespace espalier::compute
