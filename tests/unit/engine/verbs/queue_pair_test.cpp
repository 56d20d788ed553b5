#include "engine/verbs/queue_pair.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "tests/support/rdma_devices.h"

namespace espalier::engine {
namespace {

/// Two queue pairs of one device, connected to each other, and memory that the first may write.
class ConnectedPairs : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto opened = VerbsDevice::open(GetParam(), options_);
    ASSERT_TRUE(opened) << opened.error().message;
    device_ = std::move(*opened);
    for (auto& pair : pairs_) {
      auto made = QueuePair::create(*device_, options_);
      ASSERT_TRUE(made) << made.error().message;
      pair = std::move(*made);
    }
    ASSERT_TRUE(pairs_[0]->connect(pairs_[1]->address()));
    ASSERT_TRUE(pairs_[1]->connect(pairs_[0]->address()));
    source_ = register_bytes(sent_);
    target_ = register_bytes(received_);
  }

  using Region = VerbsObject<ibv_mr, ibv_dereg_mr>;
  Region register_bytes(std::vector<std::byte>& bytes) {
    return Region(
        ibv_reg_mr(device_->domain(), bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  }
  /// Writes all bytes by what the target's registration was, then a slot that says so. Whether the slot came.
  bool write(std::uint64_t slot, std::uint64_t address, std::uint32_t key) {
    pairs_[0]->write(
        {reinterpret_cast<std::uint64_t>(sent_.data()), static_cast<std::uint32_t>(sent_.size()), source_->lkey},
        address, key);
    pairs_[0]->write_slot(slot, 64, std::nullopt, true);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (pairs_[1]->received() <= slot && !pairs_[0]->failure() && std::chrono::steady_clock::now() < deadline) {
      device_->poll();
    }
    return pairs_[1]->received() > slot;
  }

  VerbsOptions options_;
  std::unique_ptr<VerbsDevice> device_;
  std::array<std::unique_ptr<QueuePair>, 2> pairs_;
  std::vector<std::byte> sent_ = std::vector<std::byte>(8192, std::byte{5});
  std::vector<std::byte> received_ = std::vector<std::byte>(8192);
  Region source_;
  Region target_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConnectedPairs);

TEST_P(ConnectedPairs, RefuseAKeyWhoseRegistrationEnded) {
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(received_.data());
  const std::uint32_t key = target_->rkey;
  ASSERT_TRUE(write(0, address, key)) << pairs_[0]->failure().value_or("");
  EXPECT_EQ(received_, sent_);
  target_ = register_bytes(received_);  // The same bytes, by another key.
  received_.assign(received_.size(), std::byte{0});
  EXPECT_FALSE(write(1, address, key));
  ASSERT_TRUE(pairs_[0]->failure());
  EXPECT_NE(pairs_[0]->failure()->find("a stale key"), std::string::npos) << *pairs_[0]->failure();
  EXPECT_EQ(received_, std::vector<std::byte>(received_.size()));
}

TEST_P(ConnectedPairs, RefuseToWritePastTheMemory) {
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(received_.data());
  EXPECT_FALSE(write(0, address + 4096, target_->rkey));
  ASSERT_TRUE(pairs_[0]->failure());
  EXPECT_NE(pairs_[0]->failure()->find("refuses access"), std::string::npos) << *pairs_[0]->failure();
}

TEST_P(ConnectedPairs, RefuseWhatIsNoAddress) {
  EXPECT_FALSE(pairs_[0]->connect("short"));
  EXPECT_FALSE(pairs_[0]->connect(std::string(QueuePair::address_size, '\0')));
}

INSTANTIATE_TEST_SUITE_P(All, ConnectedPairs, ::testing::ValuesIn(test::rdma_devices()),
                         [](const auto& device) { return "verbs" + device.param; });

}  // namespace
}  // namespace espalier::engine
