#include "sim/core/progress.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace espalier::sim {

void Progress::reset(std::vector<std::uint32_t> chunk_counts) {
  chunk_counts_ = std::move(chunk_counts);
  first_page_.clear();
  std::size_t names = 0;
  for (std::size_t begin = 0; begin < chunk_counts_.size(); begin += page_size) {
    first_page_.push_back(names);
    const auto end = std::min(begin + page_size, chunk_counts_.size());
    names += *std::max_element(chunk_counts_.begin() + static_cast<std::ptrdiff_t>(begin),
                               chunk_counts_.begin() + static_cast<std::ptrdiff_t>(end));
  }
  page_by_chunk_.assign(names, not_started);
  pages_.clear();
  arena_.clear();
  free_pages_.clear();
  finished_.clear();
  past_ = 0;
}

std::uint32_t Progress::take_page(TransferId transfer, std::uint32_t chunk) {
  while (!finished_.empty() && finished_.front().time < past_) {
    free_pages_.push_back(std::exchange(*finished_.front().page, forgotten));
    finished_.pop_front();
  }
  auto page = static_cast<std::uint32_t>(pages_.size());
  if (free_pages_.empty()) {
    ESPALIER_CHECK(page < forgotten, "the pages under way fit 32 bits");
    pages_.emplace_back();
    arena_.resize(arena_.size() + page_size);
  } else {
    page = free_pages_.back();
    free_pages_.pop_back();
    std::fill_n(arena_.begin() + static_cast<std::ptrdiff_t>(page * page_size), page_size, ChunkTimes{});
  }
  const std::size_t begin = transfer.index() / page_size * page_size;
  const std::size_t end = std::min(begin + page_size, chunk_counts_.size());
  const auto has_chunk = [chunk](std::uint32_t count) { return chunk < count; };
  const auto open = std::count_if(chunk_counts_.begin() + static_cast<std::ptrdiff_t>(begin),
                                  chunk_counts_.begin() + static_cast<std::ptrdiff_t>(end), has_chunk);
  pages_[page] = {0, static_cast<std::uint32_t>(open)};
  return page;
}

}  // namespace espalier::sim
