// What ibnetdiscover prints: a block per switch and host adapter with a line per port. Noise of the tool between blocks
// is passed over.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "topology/import/formats/fabric.h"
#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

/// "4xHDR"
std::optional<Bandwidth> port_rate(std::string_view text) {
  const std::size_t times = text.find('x');
  if (times == std::string_view::npos) return std::nullopt;
  const auto width = whole_number(text.substr(0, times));
  const auto lane = infiniband_lane_rate(text.substr(times + 1));
  if (!width || *width < 1 || *width > 12 || !lane) return std::nullopt;
  return Bandwidth{*width * *lane * 125'000};
}

/// The texts between quotes.
std::vector<std::string_view> quoted_parts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = text.find('"'); begin != std::string_view::npos;) {
    const std::size_t end = text.find('"', begin + 1);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(begin + 1, end - begin - 1));
    begin = text.find('"', end + 1);
  }
  return parts;
}

/// The blocks as they are printed: devices and what joins them.
class FabricText : public Fabric {
 public:
  explicit FabricText(const std::string& file) : file_(file) {}

  Result<void> read(std::string_view text) {
    for (const TextLine& line : lines_of(text)) {
      const auto words = words_of_tool(line);
      if (words.empty()) continue;
      const std::string_view first = words[0].text;
      if (first == "Switch" || first == "Ca" || first == "Rt") {
        if (auto read = begin_block(line); !read) return read;
      } else if (is_port(first) && line.text.find('"') != std::string_view::npos) {
        if (auto read = read_port(line, words); !read) return read;
      } else if (const std::size_t equals = first.find('='); equals != std::string_view::npos) {
        const std::string value(first.substr(equals + 1));
        if (first.starts_with("vendid=")) image_ = model_ = "";
        if (first.starts_with("sysimgguid=")) image_ = value;
        if (first.starts_with("devid=")) model_ = value;
      }
    }
    if (devices.empty()) {
      return fail_at(file_, 1, 1, "there is no 'Switch' and no 'Ca'", "copy all that ibnetdiscover prints");
    }
    if (cables.empty() && self_cables.empty()) {
      return fail_at(file_, 1, 1, "no cable is in it: ibnetdiscover saw the adapter it ran on alone",
                     "run it as root, on a host whose port is active (ibstat)");
    }
    return {};
  }

 private:
  /// The words from the first on that the tool printed: a launcher or a log may have put a label before them.
  static std::vector<Word> words_of_tool(const TextLine& line) {
    const std::string_view text = without_stream_tag(line.text);
    auto words = TextLine{text, line.number}.words();
    for (Word& word : words) word.column += static_cast<int>(line.text.size() - text.size());
    constexpr std::size_t max_label_words = 8;
    for (std::size_t i = 0; i < std::min(words.size(), max_label_words) && !words[i].text.starts_with('"'); ++i) {
      const std::string_view word = words[i].text;
      const bool is_key = std::ranges::any_of(std::array{"vendid=", "devid=", "sysimgguid="},
                                              [&](const char* key) { return word.starts_with(key); });
      const bool begins_block = (word == "Switch" || word == "Ca" || word == "Rt") && i + 2 < words.size() &&
                                whole_number(words[i + 1].text) && words[i + 2].text.starts_with('"');
      const bool begins_port = is_port(word) && i + 1 < words.size() && words[i + 1].text.starts_with('"');
      if (!is_key && !begins_block && !begins_port) continue;
      words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
    return words;
  }

  /// "[1](guid)", and not a shell's "[root@head".
  static bool is_port(std::string_view word) {
    return word.starts_with('[') && whole_number(word.substr(1, word.find(']') - 1));
  }

  Result<void> begin_block(const TextLine& line) {
    const auto parts = quoted_parts(line.text);
    if (parts.empty() || parts[0].size() < 3) {
      return fail_at(file_, line.number, 1, "this block has no \"S-...\" or \"H-...\"",
                     "copy the whole of what was printed");
    }
    current_ = find_device(parts[0], parts.size() > 1 ? parts[1] : "");
    FabricDevice& device = devices[*current_];
    if (parts.size() > 1) device.description = parts[1];
    device.image = image_;
    device.model = model_;
    image_ = model_ = "";
    return {};
  }

  /// Ports name devices before their own blocks come.
  std::size_t find_device(std::string_view guid, std::string_view description) {
    const auto known = by_guid_.find(guid);
    if (known != by_guid_.end()) return known->second;
    devices.push_back({.guid = std::string(guid), .description = std::string(description), .image = {}, .model = {}});
    return by_guid_.emplace(guid, devices.size() - 1).first->second;
  }

  /// `[1](guid) "S-guid"[4] # ... 4xHDR`: what the port of the current block leads to. Both ends list a cable.
  Result<void> read_port(const TextLine& line, const std::vector<Word>& words) {
    const auto parts = quoted_parts(line.text);
    const std::string_view own = words[0].text.substr(1, words[0].text.find(']') - 1);
    const std::size_t behind = parts.empty()
                                   ? std::string_view::npos
                                   : static_cast<std::size_t>(parts[0].data() - line.text.data()) + parts[0].size();
    const std::size_t end = behind < line.text.size() ? line.text.find(']', behind) : std::string_view::npos;
    const auto port = whole_number(own);
    const auto far_port = end == std::string_view::npos || line.text.substr(behind, 2) != "\"["
                              ? std::nullopt
                              : whole_number(line.text.substr(behind + 2, end - behind - 2));
    // `ibnetdiscover -f` adds speeds and widths in numbers behind it.
    const auto rated = std::ranges::find_if(words.rbegin(), words.rend(),
                                            [](const Word& word) { return port_rate(word.text).has_value(); });
    if (!current_ || !port || !far_port || parts[0].size() < 3) {
      return fail_at(file_, line.number, words[0].column, cited(line.text) + " is no port of a block",
                     "ports are [1] \"S-0123\"[2] # \"name\" lid 3 4xHDR, behind the line of their switch or adapter");
    }
    if (rated == words.rend()) {
      return fail_at(file_, line.number, words.back().column, cited(words.back().text) + " is no rate of InfiniBand",
                     "write it as 4xHDR");
    }
    // A switch's line gives the name of what is at the other end behind '#', an adapter's line that of itself first.
    const std::size_t far = find_device(parts[0], parts.size() > 1 ? parts.back() : "");
    std::pair near_end{*current_, *port}, far_end{far, *far_port};
    if (!seen_.insert(std::minmax(near_end, far_end)).second) return {};
    if (far == *current_) {
      self_cables.push_back(line.number);
      return {};
    }
    cables.push_back(
        {*current_, far, {*port_rate(rated->text), Origin::captured, file_ + ": " + std::string(rated->text)}});
    return {};
  }

  const std::string& file_;
  std::map<std::string, std::size_t, std::less<>> by_guid_;
  std::set<std::pair<std::pair<std::size_t, std::int64_t>, std::pair<std::size_t, std::int64_t>>> seen_;
  std::optional<std::size_t> current_;
  std::string image_, model_;  // Of the block that comes.
};

}  // namespace

Result<Draft> read_ibnetdiscover(std::string_view text, const std::string& file) {
  FabricText fabric(file);
  const std::string plain = without_escapes(text);
  if (auto read = fabric.read(plain); !read) return tl::unexpected(read.error());
  return draft_of(fabric, file);
}

}  // namespace espalier
