#include "topology/import/inactive_links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/import/lines.h"

namespace espalier {

void InactiveLinks::add(const std::string& gpu, std::size_t up, std::vector<std::int64_t> down) {
  ++gpus_;
  if (up == 0) {
    without_.push_back(gpu);
  } else if (!down.empty()) {
    by_links_[std::move(down)].push_back(gpu);
  }
}

void InactiveLinks::warn(Draft& draft) const {
  constexpr std::string_view help = "check the GPU; `nvidia-smi nvlink -e` shows its errors";
  for (const auto& [links, gpus] : by_links_) {
    const bool is_one = links.size() == 1 && gpus.size() == 1;
    std::string what =
        fmt::format("{} {} of {}{} {} inactive", links.size() == 1 ? "NVLink" : "NVLinks", fmt::join(links, ", "),
                    gpus.size() > 1 ? "each of " : "", listed(gpus), is_one ? "is" : "are");
    const bool is_board = gpus.size() == gpus_ && gpus_ > 1;
    draft.warn(import_codes::contradiction, 0, std::move(what),
               is_board ? "all GPUs are alike in this: the board may not wire them" : std::string(help));
  }
  if (!without_.empty() && without_.size() < gpus_) {
    draft.warn(import_codes::contradiction, 0, "no NVLink of " + listed(without_) + " is up", std::string(help));
  }
}

}  // namespace espalier
