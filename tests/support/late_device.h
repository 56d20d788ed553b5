#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "engine/device/device.h"

namespace espalier::test {

/// Does its work as a GPU would: in order, but not before it was asked about it a few times.
class LateDevice final : public engine::Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "late"; }
  Result<std::byte*> allocate(std::int64_t bytes, engine::MemorySpace space) override {
    return host_.allocate(bytes, space);
  }
  void release(std::byte* data, std::int64_t bytes) override { host_.release(data, bytes); }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    give([this, to, from, bytes] { host_.copy(to, from, bytes); });
  }
  void reduce(ElementType type, ReduceOperation operation, std::span<void* const> targets, const void* first,
              std::span<const void* const> sources, std::size_t element_count) override {
    const std::vector<void*> to(targets.begin(), targets.end());
    const std::vector<const void*> from(sources.begin(), sources.end());
    give([=, this] { host_.reduce(type, operation, to, first, from, element_count); });
  }
  void divide(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks) override {
    give([=, this] { host_.divide(type, data, element_count, ranks); });
  }
  [[nodiscard]] std::uint64_t mark() override { return given_; }
  [[nodiscard]] bool is_done(std::uint64_t mark) override {
    if (!work_.empty() && ++asked_ % patience == 0) {
      work_.front()();
      work_.pop_front();
    }
    return given_ - work_.size() >= mark;
  }
  void drain() override { work_.clear(); }

 private:
  static constexpr std::uint64_t patience = 3;
  void give(std::function<void()> work) {
    work_.push_back(std::move(work));
    ++given_;
  }

  engine::HostDevice host_;
  std::deque<std::function<void()>> work_;
  std::uint64_t given_ = 0;
  std::uint64_t asked_ = 0;
};

}  // namespace espalier::test
