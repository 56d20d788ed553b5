#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <streambuf>
#include <unordered_map>

#include "topology/document.h"
#include "topology/read_codes.h"
#include "topology/read_limits.h"

namespace espalier {
namespace {

/// Ends the parse from inside yaml-cpp's callbacks; caught in Document::parse.
struct Refused {
  YAML::Mark mark;
  Problem problem;
};

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
  [[nodiscard]] bool was_cut_off() const { return cut_off_; }
  [[nodiscard]] bool was_too_deep() const { return open_ > static_cast<std::ptrdiff_t>(read_limits::open_brackets); }

 private:
  int_type underflow() override {
    const std::size_t size = std::min(block_size, text_.size() - read_);
    if (size == 0) return traits_type::eof();
    for (const char letter : text_.substr(read_, size)) {
      if (letter == '[' || letter == '{') ++open_;
      if ((letter == ']' || letter == '}') && open_ > 0) --open_;
    }
    if (was_too_deep() || read_ - read_at_progress_ > read_limits::flow_bytes) {
      cut_off_ = true;
      return traits_type::eof();
    }
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

}  // namespace

/// Turns yaml-cpp's events into a document, and refuses what passes a limit before it is stored.
class DocumentBuilder : public YAML::EventHandler {
 public:
  DocumentBuilder(Document& document, Findings& findings, BoundedInput& input)
      : document_(document), findings_(findings), input_(input) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(Value::Kind::null, mark, anchor); }

  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& text) override {
    const std::uint32_t index = add(Value::Kind::scalar, mark, anchor);
    Document::Entry& entry = document_.entries_[index];
    entry.begin = static_cast<std::uint32_t>(document_.texts_.size());
    entry.size = static_cast<std::uint32_t>(text.size());
    document_.texts_ += text;
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(add(Value::Kind::list, mark, anchor), mark);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(add(Value::Kind::map, mark, anchor), mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override {
    const std::uint32_t index = open_.back().entry;
    close();
    check_keys(Value(&document_, index));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    input_.note_progress();
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) return;  // yaml-cpp has refused unknown names already
    const bool inside_itself =
        std::ranges::any_of(open_, [&](const Open& open) { return open.entry == found->second; });
    if (inside_itself) {
      throw Refused{mark, {read_codes::alias_misuse, "this alias stands inside what it stands for", "write it out"}};
    }
    if (open_.size() + heights_[found->second] > read_limits::depth) throw_too_deep(mark);
    attach(found->second, weights_[found->second], mark);
  }

 private:
  struct Open {
    std::uint32_t entry;
    std::size_t first_child;  ///< Into pending_.
  };

  std::uint32_t add(Value::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    input_.note_progress();
    const auto index = static_cast<std::uint32_t>(document_.entries_.size());
    document_.entries_.push_back(
        {kind, static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1), 0, 0});
    weights_.push_back(1);
    heights_.push_back(0);
    if (anchor != 0) anchors_[anchor] = index;
    attach(index, 1, mark);
    return index;
  }

  /// Makes a value the next child of the innermost open list or map, and counts it.
  void attach(std::uint32_t index, std::uint64_t weight, const YAML::Mark& mark) {
    total_ += weight;
    if (total_ > read_limits::values) {
      throw Refused{
          mark,
          {read_codes::too_many_values,
           fmt::format("the file holds more than {} values, aliases counted at each use", read_limits::values),
           "write the machine in the compact form (groups with a count, ranges)"}};
    }
    if (open_.empty()) {
      document_.root_ = index;
    } else {
      pending_.push_back(index);
    }
  }

  void open(std::uint32_t index, const YAML::Mark& mark) {
    if (open_.size() >= read_limits::depth) throw_too_deep(mark);
    open_.push_back({index, pending_.size()});
  }

  void close() {
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

  [[noreturn]] static void throw_too_deep(const YAML::Mark& mark) {
    throw Refused{mark,
                  {read_codes::too_deep,
                   fmt::format("maps and lists stand inside each other more than {} deep", read_limits::depth),
                   "a topology needs no more than ten levels"}};
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
};

namespace {

Mark to_mark(const YAML::Mark& mark, std::uint32_t source) {
  if (mark.is_null()) return {source, 0, 0, 1};
  return {source, static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1), 1};
}

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

std::string syntax_help(std::string_view text, const YAML::Mark& mark) {
  if (mark.is_null()) return {};
  const std::string_view line = text_at(text, mark.line);
  const std::string_view before = mark.line > 0 ? text_at(text, mark.line - 1) : std::string_view();
  if (has_unquoted_range(line) || has_unquoted_range(before)) {
    return "inside { } and [ ] a name with brackets needs quotes: \"gpu[0-7]\"";
  }
  const std::size_t first = line.find_first_not_of(" ");
  if (first != std::string_view::npos && line[first] == '\t') return "indent with blanks, not with tabs";
  return "check the indentation, the brackets and the quotes here and on the line before";
}

void report_cut_off(const BoundedInput& input, const Mark& mark, Findings& findings) {
  if (input.was_too_deep()) {
    findings.error(
        mark, {read_codes::too_deep, fmt::format("more than {} brackets are open at once", read_limits::open_brackets),
               "a topology needs no more than ten levels"});
  } else {
    findings.error(mark, {read_codes::file_too_large,
                          fmt::format("one pair of brackets holds more than {} bytes", read_limits::flow_bytes),
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
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder) || document.entries_.empty() ||
        document.root().kind() == Value::Kind::null) {
      findings.error({source, 0, 0, 1}, {read_codes::empty_document, "the file holds no topology",
                                         "begin with 'espalier: 1', then 'nodes:' and 'links:'"});
      return std::nullopt;
    }
    if (input.was_cut_off()) {
      report_cut_off(input, document.root().mark(), findings);
      return std::nullopt;
    }
    const std::size_t entries = document.entries_.size();
    if (parser.HandleNextDocument(builder) && document.entries_.size() > entries) {
      findings.error(document.root().mark(), {read_codes::several_documents, "the file holds more than one document",
                                              "put each topology in a file of its own"});
      return std::nullopt;
    }
  } catch (const Refused& refused) {
    findings.error(to_mark(refused.mark, source), refused.problem);
    return std::nullopt;
  } catch (const YAML::Exception& exception) {
    if (input.was_cut_off()) {
      report_cut_off(input, to_mark(exception.mark, source), findings);
    } else {
      findings.error(to_mark(exception.mark, source),
                     {read_codes::bad_yaml, "this is not YAML: " + exception.msg, syntax_help(text, exception.mark)});
    }
    return std::nullopt;
  }
  return document;
}

}  // namespace espalier
