#pragma once

#include <cstddef>
#include <vector>

#include "base/element.h"
#include "base/random.h"
#include "tests/support/scalar_reduce.h"

namespace espalier::test {

/// Inputs of one reduction at odd addresses, and the room for its target with guards around it.
class ReduceCase {
 public:
  static constexpr std::size_t guard = 80;
  static constexpr std::byte guard_value{0xa5};

  /// inputs[0] is `first`.
  ReduceCase(ElementType type, std::size_t input_count, std::size_t elements, Random& random)
      : type_(type), elements_(elements), bytes_(elements * static_cast<std::size_t>(size_of(type))) {
    for (std::size_t i = 0; i <= input_count; ++i) {
      buffers_.emplace_back(2 * guard + bytes_, guard_value);
      offsets_.push_back(static_cast<std::size_t>(random.between(0, 63)));
      if (i == input_count) break;
      for (std::size_t e = 0; e < elements; ++e) write_element(type, buffer(i), e, random_element(type, random));
    }
  }

  std::size_t elements() const { return elements_; }
  std::byte* first() { return buffer(0); }
  std::byte* target() { return buffer(buffers_.size() - 1); }
  std::vector<const void*> sources() {
    std::vector<const void*> pointers;
    for (std::size_t i = 1; i + 1 < buffers_.size(); ++i) pointers.push_back(buffer(i));
    return pointers;
  }
  std::vector<ElementBits> inputs_at(std::size_t element) {
    std::vector<ElementBits> bits;
    for (std::size_t i = 0; i + 1 < buffers_.size(); ++i) bits.push_back(read_element(type_, buffer(i), element));
    return bits;
  }
  std::vector<ElementBits> expected(ReduceOperation operation) {
    std::vector<ElementBits> results;
    for (std::size_t e = 0; e < elements_; ++e) results.push_back(scalar_reduce(type_, operation, inputs_at(e)));
    return results;
  }
  /// Whether nothing beside the target's (or first's) elements was written.
  bool guards_stand() const {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      for (std::size_t b = 0; b < buffers_[i].size(); ++b) {
        const bool inside = b >= offsets_[i] && b < offsets_[i] + bytes_;
        if (!inside && buffers_[i][b] != guard_value) return false;
      }
    }
    return true;
  }

 private:
  std::byte* buffer(std::size_t index) { return buffers_[index].data() + offsets_[index]; }

  ElementType type_;
  std::size_t elements_;
  std::size_t bytes_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<std::size_t> offsets_;
};

}  // namespace espalier::test
