#include "planners/nccl/search/nccl_speeds.h"

#include <array>

namespace espalier::planners {
namespace {

// Source: github.com/NVIDIA/nccl, src/graph/search.cc, in 2.27.7 and 2.30.7.
constexpr std::array older_alone = {40.F, 30.F, 20.F, 18.F, 15.F, 12.F, 10.F, 9.F, 7.F, 6.F, 5.F, 4.F, 3.F};
constexpr std::array older_several = {48.F, 30.F, 28.F, 24.F, 20.F, 18.F, 15.F, 12.F, 10.F, 9.F,
                                      7.F,  6.F,  5.F,  4.F,  3.F,  2.4F, 1.2F, .24F, .12F};
constexpr std::array hopper_alone = {60.F, 50.F, 40.F, 30.F, 24.F, 20.F, 15.F, 12.F, 11.F, 6.F, 3.F};
constexpr std::array hopper_several = {48.F, 45.F, 42.F, 40.F, 30.F, 24.F, 22.F, 20.F, 17.5F,
                                       15.F, 12.F, 6.F,  3.F,  2.4F, 1.2F, .24F, .12F};
constexpr std::array blackwell_alone = {90.F, 80.F, 70.F, 60.F, 50.F, 45.F, 40.F, 30.F, 24.F, 20.F, 19.F, 18.F};
constexpr std::array blackwell_alone_2027 = {90.F, 80.F, 70.F, 60.F, 50.F, 40.F, 30.F, 24.F, 20.F, 19.F, 18.F};
constexpr std::array blackwell_several = {96.F, 86.F,  80.F, 48.F, 45.1F, 42.F, 40.F, 30.F, 24.F, 22.F,
                                          20.F, 17.5F, 15.F, 12.F, 6.F,   3.F,  2.4F, 1.2F, .24F, .12F};
constexpr std::array blackwell_several_2027 = {96.F,  48.F, 45.1F, 42.F, 40.F, 30.F, 24.F, 22.F, 20.F,
                                               17.5F, 15.F, 12.F,  6.F,  3.F,  2.4F, 1.2F, .24F, .12F};

}  // namespace

std::span<const float> nccl_speeds(const NcclEra& era, bool is_one_of_several) {
  constexpr std::uint32_t more_alone = 2029, more_several = 2030;
  if (era.capability >= 100) {
    if (is_one_of_several) {
      if (era.version >= more_several) return blackwell_several;
      return blackwell_several_2027;
    }
    if (era.version >= more_alone) return blackwell_alone;
    return blackwell_alone_2027;
  }
  if (era.capability >= 90) {
    if (is_one_of_several) return hopper_several;
    return hopper_alone;
  }
  if (is_one_of_several) return older_several;
  return older_alone;
}

}  // namespace espalier::planners
