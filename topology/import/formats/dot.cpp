// Graphs in DOT, the language of graphviz: nodes, chains of edges, defaults, and subgraphs as far as their contents go.
// An edge's rate is its attribute bandwidth, or a label that is one; a node's kind is its attribute kind, or what its
// name begins with.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/parse_units.h"
#include "topology/import/formats/readers.h"
#include "topology/import/lines.h"

namespace espalier {
namespace {

constexpr std::size_t max_dot_nodes = 20'000, max_dot_edges = 200'000;
constexpr int deepest_subgraph = 32;

struct DotToken {
  std::string text;
  bool is_quoted = false;
  int line = 1, column = 1;
};

using DotAttributes = std::map<std::string, DotToken>;

/// Splits a text into names, numbers, quoted texts, edges and punctuation; comments go.
class DotLexer {
 public:
  DotLexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Result<std::vector<DotToken>> read() {
    std::vector<DotToken> tokens;
    while (skip_blanks()) {
      DotToken token{.line = line_, .column = column_};
      const char letter = text_[at_];
      if (letter == '"') {
        step();
        for (; at_ < text_.size() && text_[at_] != '"'; step()) {
          if (text_[at_] == '\\' && at_ + 1 < text_.size()) step();
          token.text += text_[at_];
        }
        if (at_ >= text_.size())
          return fail_at(file_, token.line, token.column, "this text has no end", "close it with a quote");
        step();
        token.is_quoted = true;
      } else if (text_.substr(at_, 2) == "--" || text_.substr(at_, 2) == "->") {
        token.text = text_.substr(at_, 2);
        step();
        step();
      } else if (is_name(letter)) {
        for (; at_ < text_.size() && is_name(text_[at_]) && !is_edge_at(at_); step()) token.text += text_[at_];
      } else if (std::string_view("{}[]=,;:").find(letter) != std::string_view::npos) {
        token.text = letter;
        step();
      } else {
        return fail_at(file_, line_, column_, "this is not DOT: " + cited(text_.substr(at_, 1)),
                       "quote names with other letters");
      }
      tokens.push_back(std::move(token));
    }
    tokens.push_back({.text = "", .line = line_, .column = column_});
    return tokens;
  }

 private:
  static bool is_name(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           letter == '_' || letter == '.' || letter == '-' || static_cast<unsigned char>(letter) >= 0x80;
  }
  [[nodiscard]] bool is_edge_at(std::size_t at) const {
    return text_.substr(at, 2) == "--" || text_.substr(at, 2) == "->";
  }

  void step() {
    const bool is_newline = text_[at_] == '\n';
    line_ += is_newline ? 1 : 0;
    column_ = is_newline ? 1 : column_ + 1;
    ++at_;
  }

  /// Also past comments and lines of a preprocessor; false at the end.
  bool skip_blanks() {
    while (at_ < text_.size()) {
      const bool is_line = text_.substr(at_, 2) == "//" || (text_[at_] == '#' && column_ == 1);
      if (is_line) {
        while (at_ < text_.size() && text_[at_] != '\n') step();
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
        while (at_ < std::min(end + 2, text_.size())) step();
      } else if (std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
        step();
      } else {
        return true;
      }
    }
    return false;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1, column_ = 1;
};

/// gpu0 is a GPU, leaf3 a switch; what begins with nothing known is a GPU, too: a graph of ranks needs no words.
NodeKind kind_by_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, NodeKind>, 10> beginnings = {{{"sw", NodeKind::switch_node},
                                                                                 {"nvswitch", NodeKind::switch_node},
                                                                                 {"leaf", NodeKind::switch_node},
                                                                                 {"spine", NodeKind::switch_node},
                                                                                 {"tor", NodeKind::switch_node},
                                                                                 {"nic", NodeKind::nic},
                                                                                 {"mlx", NodeKind::nic},
                                                                                 {"cpu", NodeKind::cpu},
                                                                                 {"pci", NodeKind::pcie},
                                                                                 {"plx", NodeKind::pcie}}};
  for (const auto& [beginning, kind] : beginnings) {
    if (name.starts_with(beginning)) return kind;
  }
  return NodeKind::gpu;
}

class DotReader {
 public:
  DotReader(std::vector<DotToken> tokens, const std::string& file) : tokens_(std::move(tokens)) { draft_.file = file; }

  Result<Draft> read() {
    if (here().text == "strict") ++at_;
    is_directed_ = here().text == "digraph";
    if (here().text != "graph" && !is_directed_) return bad("a DOT file begins with graph or digraph");
    ++at_;
    if (here().text != "{") ++at_;
    if (auto read = read_block({}, {}, 0); !read) return tl::unexpected(read.error());
    if (at_ + 1 != tokens_.size()) return bad("there is more behind the graph");
    return std::move(draft_);
  }

 private:
  [[nodiscard]] const DotToken& here() const { return tokens_[at_]; }
  [[nodiscard]] bool is_end() const { return at_ + 1 >= tokens_.size(); }
  [[nodiscard]] bool is_mark(std::string_view text) const { return !here().is_quoted && here().text == text; }
  tl::unexpected<Error> bad(const std::string& message) const {
    return bad_at(here(), message, "see docs/formats.md for what is read");
  }
  tl::unexpected<Error> bad_at(const DotToken& token, const std::string& message, const std::string& help) const {
    return fail_at(draft_.file, token.line, token.column, message, help);
  }

  /// { statements }: with the defaults of what is around it.
  Result<void> read_block(DotAttributes node_defaults, DotAttributes edge_defaults, int depth) {
    if (depth > deepest_subgraph) return bad("subgraphs nest too deep");
    if (!is_mark("{")) return bad("a '{' is missing");
    ++at_;
    while (!is_mark("}")) {
      if (is_end()) return bad("a '}' is missing");
      if (auto read = read_statement(node_defaults, edge_defaults, depth); !read) return read;
      while (is_mark(";") || is_mark(",")) ++at_;
    }
    ++at_;
    return {};
  }

  Result<void> read_statement(DotAttributes& node_defaults, DotAttributes& edge_defaults, int depth) {
    if (is_mark("subgraph")) {
      ++at_;
      if (!is_mark("{")) ++at_;
      return read_block(node_defaults, edge_defaults, depth + 1);
    }
    if (is_mark("{")) return read_block(node_defaults, edge_defaults, depth + 1);
    const DotToken first = here();
    if (!first.is_quoted && (first.text == "node" || first.text == "edge" || first.text == "graph")) {
      ++at_;
      DotAttributes ignored;
      return read_attributes(first.text == "node" ? node_defaults : first.text == "edge" ? edge_defaults : ignored);
    }
    if (!is_name(first)) return bad(cited(first.text) + " is no node");
    ++at_;
    if (is_mark("=")) {  // An attribute of the graph.
      at_ += 2;
      return is_end() ? Result<void>(bad("a value is missing")) : Result<void>();
    }
    skip_port();
    std::vector<DotToken> chain{first};
    while (is_mark("--") || is_mark("->")) {
      if (is_mark("->") != is_directed_) return bad("a graph has --, a digraph ->");
      ++at_;
      if (!is_name(here())) return bad("edges between subgraphs are not read");
      chain.push_back(here());
      ++at_;
      skip_port();
    }
    DotAttributes attributes = chain.size() > 1 ? edge_defaults : node_defaults;
    if (auto read = read_attributes(attributes); !read) return read;
    return chain.size() > 1 ? add_edges(chain, attributes, node_defaults) : add_node(first, attributes);
  }

  [[nodiscard]] bool is_name(const DotToken& token) const {
    return token.is_quoted ||
           (!token.text.empty() && std::string_view("{}[]=,;:").find(token.text) == std::string_view::npos &&
            token.text != "--" && token.text != "->");
  }

  void skip_port() {
    while (is_mark(":") && !is_end()) at_ += 2;
    at_ = std::min(at_, tokens_.size() - 1);
  }

  /// [name=value, ...] any number of times.
  Result<void> read_attributes(DotAttributes& attributes) {
    while (is_mark("[")) {
      ++at_;
      while (!is_mark("]")) {
        const DotToken name = here();
        if (!is_name(name) || at_ + 3 >= tokens_.size()) return bad("a ']' is missing");
        ++at_;
        if (!is_mark("=")) return bad("an attribute has no '='");
        ++at_;
        attributes[name.text] = here();
        ++at_;
        while (is_mark(",") || is_mark(";")) ++at_;
      }
      ++at_;
    }
    return {};
  }

  Result<void> add_node(const DotToken& token, const DotAttributes& attributes) {
    const auto place = place_of(token, {});
    if (!place) return tl::unexpected(place.error());
    return set_kind(draft_.nodes[*place], attributes);
  }

  Result<std::size_t> place_of(const DotToken& token, const DotAttributes& defaults) {
    const auto known = places_.find(token.text);
    if (known != places_.end()) return known->second;
    if (places_.size() == max_dot_nodes)
      return bad_at(token, fmt::format("there are more than {} nodes", max_dot_nodes), "use fewer");
    DraftNode node{.id = token.text, .kind = kind_by_name(token.text)};
    if (auto set = set_kind(node, defaults); !set) return tl::unexpected(set.error());
    node.is_rank = node.kind == NodeKind::gpu;
    return places_.emplace(token.text, draft_.add(std::move(node))).first->second;
  }

  Result<void> set_kind(DraftNode& node, const DotAttributes& attributes) const {
    const auto kind = attributes.find("kind");
    if (kind != attributes.end()) {
      constexpr std::array kinds = {NodeKind::gpu, NodeKind::cpu, NodeKind::nic, NodeKind::switch_node, NodeKind::pcie};
      const auto* const known =
          std::ranges::find_if(kinds, [&](NodeKind of) { return to_string(of) == kind->second.text; });
      if (known == kinds.end()) {
        return bad_at(kind->second, cited(kind->second.text) + " is no kind of node",
                      "kinds are gpu, cpu, nic, switch and pcie");
      }
      node.kind = *known;
    }
    const auto host = attributes.find("host");
    if (host != attributes.end()) node.host = host->second.text;
    node.is_rank = node.kind == NodeKind::gpu;
    return {};
  }

  Result<void> add_edges(const std::vector<DotToken>& chain, const DotAttributes& attributes,
                         const DotAttributes& defaults) {
    DraftLink link{.medium = Medium::net, .one_way = is_directed_, .link_class = "link"};
    if (const auto named = attributes.find("class"); named != attributes.end()) link.link_class = named->second.text;
    for (const char* name : {"bandwidth", "label"}) {
      const auto written = attributes.find(name);
      if (written == attributes.end() || link.bandwidth) continue;
      const auto rate = parse_bandwidth(written->second.text);
      if (rate) link.bandwidth = {*rate, Origin::captured, draft_.file + ": " + name};
      if (!rate && name == std::string_view("bandwidth"))
        return bad_at(written->second, rate.error().message, rate.error().help);
    }
    if (const auto written = attributes.find("latency"); written != attributes.end()) {
      const auto latency = parse_latency(written->second.text);
      if (!latency) return bad_at(written->second, latency.error().message, latency.error().help);
      link.latency = {*latency, Origin::captured, draft_.file + ": latency"};
    }
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
      const auto tail = place_of(chain[i], defaults), head = place_of(chain[i + 1], defaults);
      if (!tail || !head) return tl::unexpected((tail ? head : tail).error());
      if (*tail == *head) return bad_at(chain[i + 1], "an edge leads from a node to itself", "remove it");
      if (draft_.links.size() == max_dot_edges)
        return bad_at(chain[i], fmt::format("there are more than {} edges", max_dot_edges), "use fewer");
      link.tail = *tail;
      link.head = *head;
      draft_.links.push_back(link);
    }
    return {};
  }

  std::vector<DotToken> tokens_;
  std::size_t at_ = 0;
  bool is_directed_ = false;
  Draft draft_;
  std::map<std::string, std::size_t> places_;
};

}  // namespace

Result<Draft> read_dot(std::string_view text, const std::string& file) {
  auto tokens = DotLexer(text, file).read();
  if (!tokens) return tl::unexpected(tokens.error());
  return DotReader(*std::move(tokens), file).read();
}

}  // namespace espalier
