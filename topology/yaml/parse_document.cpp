#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <istream>
#include <streambuf>
#include <unordered_map>

#include "topology/yaml/document.h"
#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_limits.h"

namespace espalier {
namespace {

Mark to_mark(const YAML::Mark& mark, std::uint32_t source) {
  if (mark.is_null()) return {source, 0, 0, 1};
  return {source, static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1), 1};
}

}  // namespace

/// Feeds yaml-cpp block by block and stops feeding when it keeps too much to itself: inside brackets it queues all
/// tokens before it reports the first, so its memory is bounded here and not where the events arrive.
class BoundedInput : public std::streambuf {
 public:
  explicit BoundedInput(std::string_view text) : text_(text) {}

  /// yaml-cpp reported something: what was queued is on its way out.
  void note_progress() {
    read_at_progress_ = read_;
    open_ = 0;
  }
  /// Stops feeding: the parser runs out of text and ends soon.
  void cut_off() { cut_off_ = true; }
  [[nodiscard]] bool was_cut_off() const { return cut_off_; }
  [[nodiscard]] bool was_too_deep() const { return open_ > static_cast<std::ptrdiff_t>(read_limits::open_brackets); }

 private:
  int_type underflow() override {
    const std::size_t size = std::min(block_size, text_.size() - read_);
    for (const char letter : text_.substr(read_, size)) {
      if (letter == '[' || letter == '{') ++open_;
      if ((letter == ']' || letter == '}') && open_ > 0) --open_;
    }
    if (was_too_deep() || read_ - read_at_progress_ > read_limits::flow_bytes) cut_off_ = true;
    if (size == 0 || cut_off_) return traits_type::eof();
    char* const begin = const_cast<char*>(text_.data()) + read_;  // streambuf wants char*; nothing writes through it
    setg(begin, begin, begin + size);
    read_ += size;
    return traits_type::to_int_type(*begin);
  }

  static constexpr std::size_t block_size = 4096;
  std::string_view text_;
  std::size_t read_ = 0;
  std::size_t read_at_progress_ = 0;
  std::ptrdiff_t open_ = 0;
  bool cut_off_ = false;
};

/// Turns yaml-cpp's events into a document. What passes a limit is reported before it is stored; all later events are
/// ignored, and the input is cut off.
class DocumentBuilder : public YAML::EventHandler {
 public:
  DocumentBuilder(Document& document, Findings& findings, BoundedInput& input)
      : document_(document), findings_(findings), input_(input) {}

  [[nodiscard]] bool has_refused() const { return refused_; }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(Value::Kind::null, mark, anchor); }

  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& text) override {
    add(Value::Kind::scalar, mark, anchor);
    if (refused_) return;
    Document::Entry& entry = document_.entries_.back();
    entry.begin = static_cast<std::uint32_t>(document_.texts_.size());
    entry.size = static_cast<std::uint32_t>(text.size());
    document_.texts_ += text;
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(Value::Kind::list, mark, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(Value::Kind::map, mark, anchor);
  }
  void OnSequenceEnd() override {
    if (!refused_) close();
  }
  void OnMapEnd() override {
    if (!refused_) check_keys(Value(&document_, close()));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    input_.note_progress();
    const auto found = anchors_.find(anchor);
    if (refused_ || found == anchors_.end()) return;  // yaml-cpp has refused unknown names already
    const std::uint32_t target = found->second;
    if (std::ranges::any_of(open_, [&](const Open& open) { return open.entry == target; })) {
      refuse(mark, {read_codes::alias_misuse, "this alias stands inside what it stands for", "write it out"});
    } else if (open_.size() + heights_[target] > read_limits::depth) {
      refuse_depth(mark);
    } else {
      attach(target, weights_[target], mark);
    }
  }

 private:
  struct Open {
    std::uint32_t entry;
    std::size_t first_child;  ///< Into pending_.
  };

  void refuse(const YAML::Mark& mark, Problem problem) {
    refused_ = true;
    input_.cut_off();
    findings_.error(to_mark(mark, document_.source_), std::move(problem));
  }

  void refuse_depth(const YAML::Mark& mark) {
    refuse(mark, {read_codes::too_deep,
                  fmt::format("maps and lists stand inside each other more than {} deep", read_limits::depth),
                  "a topology needs no more than ten levels"});
  }

  void add(Value::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    input_.note_progress();
    if (refused_) return;
    const auto index = static_cast<std::uint32_t>(document_.entries_.size());
    document_.entries_.push_back(
        {kind, static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1), 0, 0});
    weights_.push_back(1);
    heights_.push_back(0);
    if (anchor != 0) anchors_[anchor] = index;
    attach(index, 1, mark);
  }

  /// Makes a value the next child of the innermost open list or map, and counts it.
  void attach(std::uint32_t index, std::uint64_t weight, const YAML::Mark& mark) {
    total_ += weight;
    if (total_ > read_limits::values) {
      refuse(mark, {read_codes::too_many_values,
                    fmt::format("the file holds more than {} values, aliases counted at each use", read_limits::values),
                    "write the machine in the compact form (groups with a count, ranges)"});
    } else if (open_.empty()) {
      document_.root_ = index;
    } else {
      pending_.push_back(index);
    }
  }

  void open(Value::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    add(kind, mark, anchor);
    if (refused_) return;
    if (open_.size() >= read_limits::depth) {
      refuse_depth(mark);
    } else {
      open_.push_back({static_cast<std::uint32_t>(document_.entries_.size() - 1), pending_.size()});
    }
  }

  /// Closes the innermost list or map and gives its index.
  std::uint32_t close() {
    const Open closing = open_.back();
    open_.pop_back();
    Document::Entry& entry = document_.entries_[closing.entry];
    entry.begin = static_cast<std::uint32_t>(document_.children_.size());
    entry.size = static_cast<std::uint32_t>(pending_.size() - closing.first_child);
    for (std::size_t i = closing.first_child; i < pending_.size(); ++i) {
      const std::uint32_t child = pending_[i];
      weights_[closing.entry] += weights_[child];
      heights_[closing.entry] = std::max(heights_[closing.entry], heights_[child]);
      document_.children_.push_back(child);
    }
    ++heights_[closing.entry];
    pending_.resize(closing.first_child);
    return closing.entry;
  }

  void check_keys(const Value& map) {
    std::unordered_map<std::string_view, std::uint32_t> lines;
    for (std::size_t i = 0; i < map.size(); ++i) {
      const Value key = map.key(i);
      if (!key.is_scalar()) {
        findings_.error(key.mark(),
                        {read_codes::wrong_type, fmt::format("a key must be a word, not {}", describe(key.kind())),
                         "put texts with brackets, commas or colons in quotes"});
        continue;
      }
      const auto [first, is_new] = lines.emplace(key.text(), key.mark().line);
      if (is_new) continue;
      findings_.error(key.mark(), {read_codes::duplicate_key,
                                   fmt::format("the key '{}' stands twice in one map; first on line {}",
                                               key.text().substr(0, 60), first->second),
                                   "remove one of the two"});
    }
  }

  Document& document_;
  Findings& findings_;
  BoundedInput& input_;
  std::vector<Open> open_;
  std::vector<std::uint32_t> pending_;
  std::vector<std::uint64_t> weights_;  ///< Values at and below an entry, aliases counted at each use.
  std::vector<std::uint8_t> heights_;   ///< Levels of lists and maps at and below an entry.
  std::unordered_map<YAML::anchor_t, std::uint32_t> anchors_;
  std::uint64_t total_ = 0;
  bool refused_ = false;
};

namespace {

/// True when a line has a name with a bracket outside quotes behind an opening brace or bracket: `{id: gpu[0-7]}`.
bool has_unquoted_range(std::string_view line) {
  bool quoted = false;
  int depth = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' || line[i] == '\'') quoted = !quoted;
    if (quoted) continue;
    const bool after_name = i > 0 && (std::isalnum(static_cast<unsigned char>(line[i - 1])) != 0);
    if (line[i] == '[' && depth > 0 && after_name) return true;
    if (line[i] == '[' || line[i] == '{') ++depth;
    if (line[i] == ']' || line[i] == '}') --depth;
  }
  return false;
}

std::string_view text_at(std::string_view text, int line) {
  for (; line > 0 && !text.empty(); --line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

/// Of an alias without an anchor; since yaml-cpp 0.8 the complaint ends with its name.
bool is_about_anchor(std::string_view complaint) { return complaint.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR); }

/// yaml-cpp's most frequent complaints in the words of someone who writes a file.
std::string in_plain_words(const std::string& complaint) {
  struct Reworded {
    std::string_view complaint;
    std::string_view words;
  };
  const std::array table = {
      // yaml-cpp names its texts with pointers that are not constexpr
      Reworded{YAML::ErrorMsg::END_OF_MAP_FLOW, "a comma or a '}' is missing before this"},
      Reworded{YAML::ErrorMsg::END_OF_SEQ_FLOW, "a comma or a ']' is missing before this"},
      Reworded{YAML::ErrorMsg::END_OF_MAP, "a key with a colon is expected here"},
      Reworded{YAML::ErrorMsg::END_OF_SEQ, "a '-' is expected here"},
      Reworded{YAML::ErrorMsg::MAP_VALUE, "a colon is not expected here"},
      Reworded{YAML::ErrorMsg::BLOCK_ENTRY, "a '-' is not expected here"},
      Reworded{YAML::ErrorMsg::EOF_IN_SCALAR, "a quote is opened and not closed"},
      Reworded{YAML::ErrorMsg::UNKNOWN_ANCHOR, "this alias names no anchor above it"},
  };
  const auto* const found = std::ranges::find_if(table, [&complaint](const Reworded& reworded) {
    return complaint == reworded.complaint || (is_about_anchor(reworded.complaint) && is_about_anchor(complaint));
  });
  return found != table.end() ? std::string(found->words) : complaint;
}

std::string syntax_help(std::string_view text, const YAML::Exception& exception) {
  if (exception.mark.is_null()) return {};
  if (is_about_anchor(exception.msg)) return "set it with '&name' before '*name'";
  const int number = exception.mark.line;
  const std::string_view line = text_at(text, number);
  const std::string_view before = number > 0 ? text_at(text, number - 1) : std::string_view();
  if (has_unquoted_range(line) || has_unquoted_range(before)) {
    return "inside { } and [ ] a name with brackets needs quotes: \"gpu[0-7]\"";
  }
  const std::size_t first = line.find_first_not_of(' ');
  if (first != std::string_view::npos && line[first] == '\t') return "indent with blanks, not with tabs";
  return "check the indentation, the brackets and the quotes here and on the line before";
}

void report_cut_off(const BoundedInput& input, const Mark& mark, Findings& findings) {
  if (input.was_too_deep()) {
    findings.error(
        mark, {read_codes::too_deep, fmt::format("more than {} brackets are open at once", read_limits::open_brackets),
               "a topology needs no more than ten levels"});
  } else {
    findings.error(mark,
                   {read_codes::file_too_large,
                    fmt::format("one value in brackets or quotes is longer than {} bytes", read_limits::flow_bytes),
                    "write nodes and links as lists of lines that begin with '-'"});
  }
}

}  // namespace

std::optional<Document> Document::parse(std::string_view text, std::uint32_t source, Findings& findings) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
  Document document;
  document.source_ = source;
  BoundedInput input(text);
  std::istream stream(&input);
  DocumentBuilder builder(document, findings, input);
  const Mark whole_file{source, 0, 0, 1};
  const auto begin = [&] { return document.entries_.empty() ? whole_file : document.root().mark(); };
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    const std::size_t entries = document.entries_.size();
    const bool more = !input.was_cut_off() && parser.HandleNextDocument(builder) && document.entries_.size() > entries;
    if (more && !input.was_cut_off()) {
      findings.error(begin(), {read_codes::several_documents, "the file holds more than one document",
                               "put each topology in a file of its own"});
      return std::nullopt;
    }
  } catch (const YAML::Exception& exception) {
    if (!input.was_cut_off()) {
      findings.error(
          to_mark(exception.mark, source),
          {read_codes::bad_yaml, "this is not YAML: " + in_plain_words(exception.msg), syntax_help(text, exception)});
      return std::nullopt;
    }
  }
  if (builder.has_refused()) return std::nullopt;
  if (input.was_cut_off()) {
    report_cut_off(input, begin(), findings);
    return std::nullopt;
  }
  if (document.entries_.empty() || document.root().kind() == Value::Kind::null) {
    findings.error(whole_file, {read_codes::empty_document, "the file holds no topology",
                                "begin with 'espalier: 1', then 'nodes:' and 'links:'"});
    return std::nullopt;
  }
  return document;
}

}  // namespace espalier
