#include "compare/overlay_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <vector>

#include "base/format_units.h"
#include "compare/critical_chain.h"
#include "compare/pairing.h"

namespace espalier::compare {
namespace {

constexpr double plot_width = 1200;
constexpr double margin = 16;
constexpr double row_height = 13;
constexpr double lane_height = 2 * row_height + 8;
constexpr double head_height = 74;
constexpr double smallest_gap = 1.0 / 3;
constexpr double letter_width = 6.4;
constexpr std::size_t longest_name = 60;

struct PhaseLook {
  Phase phase;
  const char* colour;
  double top;  ///< Within a row: a rank sends, receives and adds at once, so each has a strip of its own.
  double height;
};
// Told apart also by people who see few colours. Source: P. Tol, "Colour Schemes", SRON, 2021, "bright".
constexpr std::array<PhaseLook, 4> looks = {{{Phase::send, "#4477AA", 0, 4},
                                             {Phase::wire, "#999999", 0, 12},
                                             {Phase::recv, "#66CCEE", 4, 4},
                                             {Phase::reduce, "#EE6677", 8, 4}}};

const PhaseLook& look_of(Phase phase) { return *std::ranges::find(looks, phase, &PhaseLook::phase); }

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) safe += c;
    }
  }
  return safe;
}

/// At most `longest_name` bytes, cut between characters.
std::string shortened(const std::string& name) {
  if (name.size() <= longest_name) return name;
  std::size_t end = longest_name - 3;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return name.substr(0, end) + "...";
}

struct LaneName {
  std::string name;
  bool is_link = false;
  std::uint32_t lane = 0;
};

/// Ranks, then links; those where nothing happens in either are left out.
std::vector<LaneName> lanes_in_use(const Timeline& a, const Timeline& b) {
  std::vector<bool> ranks(a.rank_names.size(), false);
  std::vector<bool> links(a.link_names.size(), false);
  for (const Timeline* timeline : {&a, &b}) {
    for (const Span& span : timeline->spans) (span.phase == Phase::wire ? links : ranks)[span.lane] = true;
  }
  std::vector<LaneName> lanes;
  for (std::uint32_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i]) lanes.push_back({a.rank_names[i], false, i});
  }
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    if (links[i]) lanes.push_back({a.link_names[i], true, i});
  }
  return lanes;
}

/// The step between ticks: 1, 2 or 5 times a power of ten, for about ten of them.
double tick_step(double length) {
  const double rough = length / 10;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

class Picture {
 public:
  Picture(std::ostream& out, const AlignedTimelines& timelines, const OverlayOptions& options)
      : out_(out), timelines_(timelines), options_(options) {}

  void write() {
    std::vector<LaneName> lanes = lanes_in_use(timelines_.a, timelines_.b);
    const std::size_t all = lanes.size();
    if (lanes.size() > options_.max_lanes) lanes.resize(options_.max_lanes);
    std::size_t longest = 4;
    for (LaneName& lane : lanes) {
      lane.name = shortened(lane.name);
      longest = std::max(longest, lane.name.size());
    }
    left_ = margin + letter_width * static_cast<double>(longest) + 26;
    length_ = std::max(extent_of(timelines_.a).length(), extent_of(timelines_.b).length());
    lanes_end_ = head_height + lane_height * static_cast<double>(lanes.size());
    write_head(all, lanes.size());
    write_ticks();
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      write_lane(lanes[i], head_height + lane_height * static_cast<double>(i), i % 2 == 1);
    }
    out_ << "</svg>\n";
  }

 private:
  [[nodiscard]] double x_of(Picoseconds time) const {
    const double length = std::max(static_cast<double>(length_.count), 1.0);
    return left_ + plot_width * static_cast<double>(time.count) / length;
  }

  void text(double x, double y, std::string_view anchor, std::string_view content, std::string_view style = "") {
    out_ << fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, style,
                        escaped(content));
  }

  void write_head(std::size_t all, std::size_t shown) {
    const double width = left_ + plot_width + 2 * margin;
    const double height = lanes_end_ + 2 * margin;
    out_ << fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2} over {3}\" "
        "font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"10.5\">\n"
        "<title>{2} over {3}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        width, height, escaped(options_.label_a), escaped(options_.label_b));
    const auto total = [](const Timeline& timeline) { return format_duration(extent_of(timeline).length()); };
    text(margin, 20, "start",
         fmt::format("upper row A: {}  {}  {}", options_.label_a, timelines_.a.title, total(timelines_.a)));
    text(margin, 35, "start",
         fmt::format("lower row B: {}  {}  {}", options_.label_b, timelines_.b.title, total(timelines_.b)));
    double x = left_;
    for (const PhaseLook& look : looks) {
      out_ << fmt::format("<rect x=\"{:.1f}\" y=\"44\" width=\"10\" height=\"9\" fill=\"{}\"/>\n", x, look.colour);
      text(x + 14, 52, "start", to_string(look.phase));
      x += 64;
    }
    out_ << fmt::format("<rect x=\"{:.1f}\" y=\"44\" width=\"10\" height=\"9\" fill=\"none\" stroke=\"#000\"/>\n", x);
    text(x + 14, 52, "start", "critical path");
    if (shown < all) {
      text(x + 130, 52, "start", fmt::format("{} of {} lanes; the others are left out", shown, all));
    }
  }

  void write_ticks() {
    if (length_.count <= 0) return;
    const double step = tick_step(static_cast<double>(length_.count));
    for (double time = 0; time <= static_cast<double>(length_.count); time += step) {
      const Picoseconds at{static_cast<std::int64_t>(std::llround(time))};
      const double x = x_of(at);
      out_ << fmt::format("<path d=\"M{0:.1f} {1:.1f}V{2:.1f}\" stroke=\"#dddddd\"/>\n", x, head_height - 3,
                          lanes_end_);
      text(x, head_height - 7, "middle", time == 0 ? "0" : format_duration(at), " fill=\"#555\"");
    }
  }

  void write_lane(const LaneName& lane, double y, bool is_odd) {
    if (is_odd) {
      out_ << fmt::format(
          "<rect x=\"0\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"#000\" opacity=\"0.035\"/>\n", y,
          left_ + plot_width + 2 * margin, lane_height);
    }
    text(left_ - 20, y + lane_height / 2 + 4, "end", lane.name);
    text(left_ - 6, y + 11, "end", "A", " fill=\"#777\" font-size=\"8\"");
    text(left_ - 6, y + 11 + row_height, "end", "B", " fill=\"#777\" font-size=\"8\"");
    write_row(timelines_.a, lane, y + 4);
    write_row(timelines_.b, lane, y + 4 + row_height);
  }

  /// The spans of a lane in one timeline.
  void write_row(const Timeline& timeline, const LaneName& lane, double y) {
    const Picoseconds start = extent_of_timeline(timeline).begin;
    for (const PhaseLook& look : looks) {
      if ((look.phase == Phase::wire) != lane.is_link) continue;
      double begin = 0;
      double end = -1;
      const auto flush = [&] {
        if (end < begin) return;
        out_ << fmt::format(R"(<rect x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{:.1f}" fill="{}"/>)", begin,
                            y + look.top, std::max(end - begin, smallest_gap), look.height, look.colour)
             << '\n';
      };
      for (const Span& span : timeline.spans) {
        if (span.phase != look.phase || span.lane != lane.lane) continue;
        const double span_begin = x_of(span.begin - start);
        const double span_end = x_of(span.end - start);
        if (end >= begin && span_begin - end < smallest_gap) {
          end = std::max(end, span_end);
          continue;
        }
        flush();
        begin = span_begin;
        end = span_end;
      }
      flush();
    }
    write_chain(timeline, lane, y, start);
  }

  void write_chain(const Timeline& timeline, const LaneName& lane, double y, Picoseconds start) {
    const std::vector<ChainStep>& chain = &timeline == &timelines_.a ? chain_a_ : chain_b_;
    for (const ChainStep& step : chain) {
      const Span& span = timeline.spans[step.span];
      if ((span.phase == Phase::wire) != lane.is_link || span.lane != lane.lane) continue;
      const double begin = x_of(step.begin - start);
      const double end = x_of(step.until - start);
      if (end - begin < smallest_gap) continue;
      const PhaseLook& look = look_of(span.phase);
      out_ << fmt::format(R"(<rect x="{:.2f}" y="{:.1f}" width="{:.2f}" height="{:.1f}" fill="none" stroke="#000"/>)",
                          begin, y + look.top, end - begin, look.height)
           << '\n';
    }
  }

  [[nodiscard]] const Extent& extent_of_timeline(const Timeline& timeline) const {
    return &timeline == &timelines_.a ? extent_a_ : extent_b_;
  }

  std::ostream& out_;
  const AlignedTimelines& timelines_;
  const OverlayOptions& options_;
  Extent extent_a_ = extent_of(timelines_.a);
  Extent extent_b_ = extent_of(timelines_.b);
  std::vector<ChainStep> chain_a_ = find_critical_chain(timelines_.a);
  std::vector<ChainStep> chain_b_ = find_critical_chain(timelines_.b);
  double left_ = 0;
  double lanes_end_ = 0;
  Picoseconds length_;
};

}  // namespace

Result<void> write_overlay_svg(std::ostream& out, const Timeline& a, const Timeline& b, const OverlayOptions& options) {
  const AlignedTimelines aligned = align(a, b);
  Picture(out, aligned, options).write();
  out.flush();
  if (!out) return fail(ErrorCode::unavailable, "the picture could not be written in full");
  return {};
}

}  // namespace espalier::compare
