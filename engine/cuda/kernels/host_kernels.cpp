#include "engine/cuda/kernels/host_kernels.h"

#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include "base/check.h"
#include "engine/cuda/elements.h"
#include "engine/cuda/kernels/interpreter.h"
#include "engine/cuda/kernels/pattern.h"

namespace espalier::engine::cuda {
namespace {

/// What bulk copies do, as late as they may: a load when it is waited for, a store when its stage is needed or all are
/// waited for. So bytes are wrong where a wait is missing.
class HostMover {
 public:
  [[nodiscard]] std::uint32_t tiles() const { return tiles_; }
  void set_tiles(std::uint32_t count) { tiles_ = count; }
  void begin() { stages_.resize(std::size_t{bulk_stages} * bulk_tile_bytes); }
  void load(std::uint32_t stage, const unsigned char* from, std::uint32_t bytes) { loads_[stage] = {from, bytes}; }
  void await_load(std::uint32_t stage, std::uint32_t phase) {
    ESPALIER_CHECK(phase == phases_[stage] && loads_[stage].from != nullptr, "the barrier's next phase is awaited");
    std::memcpy(at(stage), loads_[stage].from, loads_[stage].bytes);
    loads_[stage].from = nullptr;
    phases_[stage] ^= 1U;
  }
  void store(std::uint32_t stage, unsigned char* to, std::uint32_t bytes) {
    stores_.push_back({stage, to, bytes, groups_});
  }
  void commit() { ++groups_; }
  void await_reads() { finish(groups_ - 1); }
  void await_stores() { finish(groups_); }

 private:
  struct Load {
    const unsigned char* from = nullptr;
    std::uint32_t bytes = 0;
  };
  struct Store {
    std::uint32_t stage = 0;
    unsigned char* to = nullptr;
    std::uint32_t bytes = 0;
    std::uint64_t group = 0;
  };
  unsigned char* at(std::uint32_t stage) { return stages_.data() + std::size_t{stage} * bulk_tile_bytes; }
  void finish(std::uint64_t groups) {
    while (!stores_.empty() && stores_.front().group < groups) {
      std::memcpy(stores_.front().to, at(stores_.front().stage), stores_.front().bytes);
      stores_.pop_front();
    }
  }

  std::uint32_t tiles_ = 0;
  std::vector<unsigned char> stages_;
  std::array<Load, bulk_stages> loads_;
  std::array<std::uint32_t, bulk_stages> phases_{};
  std::deque<Store> stores_;
  std::uint64_t groups_ = 0;
};

/// One thread as a block, or as a grid.
struct HostTeam {
  static constexpr std::uint32_t quick_polls = 64;
  static constexpr std::uint32_t polls_per_look = 1;
  static constexpr bool has_bulk_copies = true;

  HostMover bulk;
  HostMover& mover() { return bulk; }

  [[nodiscard]] static std::uint32_t index() { return 0; }
  [[nodiscard]] static std::uint32_t size() { return 1; }
  static bool any(bool value) { return value; }
  /// Blocks are more than processors: those that wait leave them to those that do not.
  static void pause() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }
  static std::uint32_t load_acquire(const std::uint32_t* from) { return __atomic_load_n(from, __ATOMIC_ACQUIRE); }
  static std::uint32_t load_relaxed(const std::uint32_t* from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }
  static void store_release(std::uint32_t* to, std::uint32_t value) { __atomic_store_n(to, value, __ATOMIC_RELEASE); }
  static std::uint64_t load_word(const std::uint64_t* from) { return __atomic_load_n(from, __ATOMIC_RELAXED); }
  static void store_word(std::uint64_t* to, std::uint64_t value) { __atomic_store_n(to, value, __ATOMIC_RELAXED); }
  static void add(std::uint64_t* to, std::uint64_t count) { __atomic_fetch_add(to, count, __ATOMIC_RELAXED); }
  static std::uint64_t now() { return host_timer_ns(); }
};

template <class Use>
void with_element(ElementType type, const Use& use) {
  // NOLINTBEGIN(bugprone-branch-clone): each of another type
  switch (type) {
    case ElementType::int8: return use(std::int8_t());
    case ElementType::uint8: return use(std::uint8_t());
    case ElementType::int32: return use(std::int32_t());
    case ElementType::uint32: return use(std::uint32_t());
    case ElementType::int64: return use(std::int64_t());
    case ElementType::uint64: return use(std::uint64_t());
    case ElementType::float16: return use(Float16());
    case ElementType::bfloat16: return use(Bfloat16());
    case ElementType::float32: return use(float());
    case ElementType::float64: return use(double());
  }
  // NOLINTEND(bugprone-branch-clone)
}

template <class Use>
void with_operation(ReduceOperation operation, const Use& use) {
  switch (operation) {
    case ReduceOperation::sum:
    case ReduceOperation::avg: return use(Sum());
    case ReduceOperation::prod: return use(Product());
    case ReduceOperation::min: return use(Minimum());
    case ReduceOperation::max: return use(Maximum());
  }
}

template <class Use>
void with_both(ElementType type, ReduceOperation operation, const Use& use) {
  with_element(type, [&](auto element) { with_operation(operation, [&](auto combines) { use(element, combines); }); });
}

}  // namespace

void run_block_on_host(ElementType type, ReduceOperation operation, const KernelCall& call, const KernelBlock& block) {
  with_both(type, operation, [&](auto element, auto combines) {
    HostTeam team;
    run_block<decltype(element), decltype(combines)>(call, block, team);
  });
}

void reduce_on_host(ElementType type, ReduceOperation operation, const ReduceCall& call) {
  with_both(type, operation,
            [&](auto element, auto combines) { reduce_many<decltype(element), decltype(combines)>(HostTeam(), call); });
}

void divide_on_host(ElementType type, const DivideCall& call) {
  with_element(type, [&](auto element) {
    divide_range<decltype(element)>(HostTeam(), call.data, call.element_count, call.ranks);
  });
}

void run_pattern_on_host(const PatternCall& call) { run_pattern(HostTeam(), call); }

void combine_on_host(ElementType type, ReduceOperation operation, void* target, const void* first, const void* source,
                     std::size_t element_count) {
  with_both(type, operation, [&](auto element, auto combines) {
    combine_range<decltype(element), decltype(combines)>(HostTeam(), static_cast<unsigned char*>(target),
                                                         static_cast<const unsigned char*>(first),
                                                         static_cast<const unsigned char*>(source), element_count);
  });
}

std::uint64_t host_timer_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch() + std::chrono::hours(1);
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace espalier::engine::cuda
