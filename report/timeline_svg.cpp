#include "report/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/counted.h"
#include "base/format_units.h"
#include "report/html_text.h"
#include "report/svg_picture.h"

namespace espalier::report {
namespace {

constexpr double min_lane_names = 80, plot = 900, margin = 16, lane_height = 16, head = 64;
/// Spans are drawn to so many columns; what is closer is one.
constexpr std::size_t columns = 3600;

struct PhaseLook {
  std::string_view name, colour, text;
  double top, height;  ///< Of a lane: a rank sends, receives and adds at once.
};
// Source: P. Tol, "Colour Schemes", SRON, 2021, "bright".
constexpr std::array<PhaseLook, 4> looks = {{{"send", "#4477aa", "send", 0, 1.0 / 3},
                                             {"wire", "#8a8f95", "on the link", 0, 1},
                                             {"recv", "#66ccee", "receive", 1.0 / 3, 1.0 / 3},
                                             {"reduce", "#ee6677", "reduce", 2.0 / 3, 1.0 / 3}}};

struct DrawnLane {
  std::string name;
  bool is_link = false;
  std::uint32_t number = 0;
};

class TimelinePicture {
 public:
  explicit TimelinePicture(const DrawnTimeline& drawn) : drawn_(drawn), timeline_(*drawn.timeline) {
    for (const Span& span : timeline_.spans) end_ = std::max(end_, span.end.count);
    choose_lanes();
    std::vector<std::string> lane_names;
    for (const DrawnLane& lane : lanes_) lane_names.push_back(lane.name);
    names_ = names_width(lane_names, min_lane_names);
  }

  std::string write() {
    const double height = head + lane_height * static_cast<double>(lanes_.size()) + 52;
    text_ = begin_picture(names_ + plot + 2 * margin, height, drawn_.title);
    text_ += fmt::format("<text class=\"head\" x=\"{}\" y=\"26\">{}</text>\n", margin, in_html(drawn_.title));
    add_axis();
    for (std::size_t i = 0; i < lanes_.size(); ++i) add_lane(lanes_[i], head + lane_height * static_cast<double>(i));
    add_path();
    add_legend(head + lane_height * static_cast<double>(lanes_.size()) + 24);
    return text_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double x_of(double time) const { return margin + names_ + plot * time / static_cast<double>(end_); }

  void choose_lanes() {
    std::vector<bool> ranks(timeline_.rank_names.size()), links(timeline_.link_names.size());
    for (const Span& span : timeline_.spans) (span.phase == Phase::wire ? links : ranks)[span.lane] = true;
    const std::vector<std::int64_t> busy = busy_times();
    std::vector<std::uint32_t> busiest;
    for (std::uint32_t i = 0; i < ranks.size(); ++i) {
      if (!ranks[i]) continue;
      if (lanes_.size() < max_drawn_lanes)
        lanes_.push_back({timeline_.rank_names[i], false, i});
      else
        ++left_out_;
    }
    for (std::uint32_t i = 0; i < links.size(); ++i) {
      if (links[i]) busiest.push_back(i);
    }
    std::ranges::stable_sort(busiest, std::ranges::greater(), [&](std::uint32_t link) { return busy[link]; });
    for (const std::uint32_t link : busiest) {
      if (link_lanes_ < max_drawn_lanes) {
        lanes_.push_back({timeline_.link_names[link], true, link});
        ++link_lanes_;
      } else {
        ++left_out_;
      }
    }
  }

  /// Of each link; where flows share it each moment counts once.
  [[nodiscard]] std::vector<std::int64_t> busy_times() const {
    std::vector<std::int64_t> busy(timeline_.link_names.size()), until(busy.size());
    for (const Span& span : timeline_.spans) {
      if (span.phase != Phase::wire || span.end.count <= until[span.lane]) continue;
      busy[span.lane] += span.end.count - std::max(span.begin.count, until[span.lane]);
      until[span.lane] = span.end.count;
    }
    return busy;
  }

  void add_axis() {
    const double seconds = Picoseconds{end_}.seconds();
    const double rough = seconds / 6, power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {5.0, 2.0, 1.0}) {
      if (factor * power >= rough) step = factor * power;
    }
    const double bottom = head + lane_height * static_cast<double>(lanes_.size());
    for (double mark = 0; mark <= seconds; mark += step) {
      const double x = x_of(mark * 1e12);
      const Picoseconds at{static_cast<std::int64_t>(std::llround(mark * 1e12))};
      text_ += fmt::format(
          "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><text x=\"{0:.1f}\" y=\"{3:.1f}\" "
          "text-anchor=\"middle\">{4}</text>\n",
          x, head - 6, bottom, head - 10, at.count == 0 ? "0" : format_duration(at));
    }
  }

  /// A rectangle per run of columns in which a phase is at work.
  void add_lane(const DrawnLane& lane, double y) {
    text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", margin + names_ - 8, y + 12,
                         in_html(shown_name(lane.name)));
    for (std::size_t phase = 0; phase < looks.size(); ++phase) {
      const std::vector<bool> at_work = columns_of(lane, static_cast<Phase>(phase));
      std::string path;
      for (std::size_t begin = 0; begin < columns;) {
        if (!at_work[begin]) {
          ++begin;
          continue;
        }
        std::size_t end = begin;
        while (end < columns && at_work[end]) ++end;
        const double scale = plot / static_cast<double>(columns);
        path +=
            fmt::format("M{:.2f} {:.2f}h{:.2f}v{:.2f}H{:.2f}z", margin + names_ + scale * static_cast<double>(begin),
                        y + 1 + looks[phase].top * (lane_height - 2), scale * static_cast<double>(end - begin),
                        looks[phase].height * (lane_height - 2), margin + names_ + scale * static_cast<double>(begin));
        begin = end;
      }
      if (!path.empty()) text_ += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", looks[phase].colour, path);
    }
  }

  [[nodiscard]] std::vector<bool> columns_of(const DrawnLane& lane, Phase phase) const {
    std::vector<bool> at_work(columns);
    if ((phase == Phase::wire) != lane.is_link) return at_work;
    const double scale = static_cast<double>(columns) / static_cast<double>(end_);
    for (const Span& span : timeline_.spans) {
      if (span.phase != phase || span.lane != lane.number) continue;
      const auto begin = static_cast<std::size_t>(static_cast<double>(span.begin.count) * scale);
      const auto end = static_cast<std::size_t>(std::lround(static_cast<double>(span.end.count) * scale));
      for (std::size_t i = begin; i < std::min(columns, std::max(end, begin + 1)); ++i) at_work[i] = true;
    }
    return at_work;
  }

  /// An outline per run of steps that follow each other on a lane.
  void add_path() {
    constexpr double smallest = 0.25;  // Less is not to be seen.
    std::string path;
    for (std::size_t first = 0; first < drawn_.path.size();) {
      const PathStep& step = drawn_.path[first];
      Picoseconds end = step.end;
      std::size_t next = first + 1;
      for (; next < drawn_.path.size(); ++next) {
        const PathStep& follower = drawn_.path[next];
        if (follower.is_on_link != step.is_on_link || follower.lane != step.lane) break;
        if (x_of(static_cast<double>(follower.begin.count)) > x_of(static_cast<double>(end.count)) + smallest) break;
        end = follower.end;
      }
      first = next;
      const auto lane = std::ranges::find_if(lanes_, [&](const DrawnLane& drawn) {
        return drawn.is_link == step.is_on_link && drawn.number == step.lane;
      });
      if (lane == lanes_.end()) continue;
      const double y = head + lane_height * static_cast<double>(lane - lanes_.begin());
      const double from = x_of(static_cast<double>(step.begin.count)), to = x_of(static_cast<double>(end.count));
      if (to - from < smallest) continue;
      path += fmt::format("M{:.2f} {:.2f}H{:.2f}V{:.2f}H{:.2f}z", from, y + 1, to, y + lane_height - 1, from);
    }
    if (!path.empty()) text_ += fmt::format("<path class=\"outline\" d=\"{}\"/>\n", path);
  }

  void add_legend(double y) {
    double x = margin + names_;
    for (const PhaseLook& look : looks) {
      text_ += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"22\" height=\"10\" fill=\"{}\"/><text x=\"{:.1f}\" "
          "y=\"{:.1f}\">{}</text>\n",
          x, y - 9, look.colour, x + 28, y, look.text);
      x += 120;
    }
    text_ += fmt::format(
        "<rect class=\"outline\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"22\" height=\"10\"/><text x=\"{:.1f}\" "
        "y=\"{:.1f}\">critical path</text>\n",
        x, y - 9, x + 28, y);
    if (left_out_ > 0) {
      text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{} less busy left out</text>\n", x + 130, y,
                           counted(left_out_, "lane"));
    }
  }

  const DrawnTimeline& drawn_;
  const Timeline& timeline_;
  std::int64_t end_ = 1;
  double names_ = 0;  ///< The width of their column.
  std::vector<DrawnLane> lanes_;
  std::size_t link_lanes_ = 0, left_out_ = 0;
  std::string text_;
};

}  // namespace

std::string timeline_svg(const DrawnTimeline& drawn) { return TimelinePicture(drawn).write(); }

}  // namespace espalier::report
