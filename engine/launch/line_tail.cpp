#include "engine/launch/line_tail.h"

namespace espalier::engine::launch {

LineTail::LineTail(std::size_t kept, Sink sink, std::size_t longest)
    : kept_(kept), sink_(std::move(sink)), longest_(longest) {}

void LineTail::append(std::string_view bytes) {
  for (const char byte : bytes) {
    if (byte == '\n') {
      end_line();
      continue;
    }
    open_ += byte;
    if (open_.size() == longest_) end_line();
  }
}

void LineTail::finish() {
  if (!open_.empty()) end_line();
}

void LineTail::end_line() {
  if (sink_) sink_(open_);
  lines_.push_back(std::move(open_));
  open_.clear();
  if (lines_.size() > kept_) lines_.pop_front();
}

}  // namespace espalier::engine::launch
