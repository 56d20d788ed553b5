#include "planners/symmetric/name_shifts.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace espalier::planners {

namespace {

/// A position in names: all nodes whose names begin alike up to a number, "unit#.box#" of "unit3.box5.gpu7".
struct Position {
  std::uint32_t count = 0;  ///< Numbers there, from 0 on.
};

/// Names of one form, "unit#.box#.gpu#".
struct Form {
  std::vector<std::uint32_t> positions;               ///< By number in the name.
  std::vector<NodeId> nodes;                          ///< Row by row, the last number counting fastest.
  std::vector<std::pair<LinkId, std::size_t>> links;  ///< Those that leave its nodes, and the form that they reach.
};

/// How the numbers at one position change: within blocks of so many, so many places on.
struct Move {
  std::uint32_t block = 1;
  std::uint32_t by = 0;

  [[nodiscard]] std::uint32_t operator()(std::uint32_t number) const {
    const std::uint32_t first = number - number % block;
    return first + (number - first + by) % block;
  }
  /// After so many times nothing has changed.
  [[nodiscard]] std::uint32_t order() const { return by == 0 ? 1 : block / by; }
};

/// The names of a topology, taken apart.
class Names {
 public:
  explicit Names(const Topology& topology) : topology_(topology) {
    std::map<std::string, std::size_t> form_by_name;
    std::map<std::string, std::uint32_t> position_by_name;
    for (std::size_t v = 0; v < topology.node_count(); ++v) read_name(NodeId(v), form_by_name, position_by_name);
    is_regular_ = std::ranges::all_of(forms, [&](Form& form) { return lay_out(form); });
  }

  /// Whether every form has a node for each choice of numbers.
  [[nodiscard]] bool is_regular() const { return is_regular_; }

  std::vector<Position> positions;
  std::vector<Form> forms;
  std::vector<std::size_t> form_of;                    ///< By node.
  std::vector<std::vector<std::uint32_t>> numbers_of;  ///< By node.

  /// Where moves take every node.
  [[nodiscard]] Permutation permutation(const std::vector<Move>& moves) const {
    Permutation all(topology_.node_count());
    for (std::size_t v = 0; v < all.size(); ++v) all[v] = image(NodeId(v), moves).value();
    return all;
  }

  /// Where moves take a node.
  [[nodiscard]] NodeId image(NodeId node, const std::vector<Move>& moves) const {
    const Form& form = forms[form_of[node.index()]];
    std::size_t place = 0;
    for (std::size_t i = 0; i < form.positions.size(); ++i) {
      const std::uint32_t position = form.positions[i];
      place = place * positions[position].count + moves[position](numbers_of[node.index()][i]);
    }
    return form.nodes[place];
  }

 private:
  void read_name(NodeId node, std::map<std::string, std::size_t>& known_forms,
                 std::map<std::string, std::uint32_t>& known_positions) {
    const std::string& name = topology_.node(node).id;
    std::string form;
    std::vector<std::uint32_t> numbers, at;
    for (std::size_t i = 0; i < name.size();) {
      if (name[i] < '0' || name[i] > '9') {
        form += name[i++];
        continue;
      }
      std::uint32_t number = 0;
      const auto read = std::from_chars(name.data() + i, name.data() + name.size(), number);
      i = static_cast<std::size_t>(read.ptr - name.data());
      if (read.ec != std::errc() || number >= topology_.node_count()) number = 0;  // then the form is not regular
      form += '#';
      const auto position = known_positions.try_emplace(form, static_cast<std::uint32_t>(positions.size()));
      if (position.second) positions.emplace_back();
      at.push_back(position.first->second);
      positions[at.back()].count = std::max(positions[at.back()].count, number + 1);
      numbers.push_back(number);
    }
    const auto [known, is_new] = known_forms.try_emplace(std::move(form), forms.size());
    if (is_new) forms.push_back({std::move(at), {}, {}});
    forms[known->second].nodes.push_back(node);
    form_of.push_back(known->second);
    numbers_of.push_back(std::move(numbers));
  }

  /// Sorts a form's nodes into their rows; false where some are missing or named twice.
  bool lay_out(Form& form) const {
    std::size_t size = 1;
    for (const std::uint32_t position : form.positions) {
      size *= positions[position].count;
      if (size > form.nodes.size()) return false;
    }
    if (size != form.nodes.size()) return false;
    std::vector<NodeId> rows(size);
    for (const NodeId node : form.nodes) {
      std::size_t place = 0;
      for (std::size_t i = 0; i < form.positions.size(); ++i) {
        place = place * positions[form.positions[i]].count + numbers_of[node.index()][i];
      }
      if (!rows[place].is_none()) return false;
      rows[place] = node;
    }
    form.nodes = std::move(rows);
    return true;
  }

  const Topology& topology_;
  bool is_regular_ = false;
};

/// Chooses how the other positions move with one that is given, so that links lie on like links.
class MoveSearch {
 public:
  /// Positions in the names of ranks only move when they are given.
  MoveSearch(const Topology& topology, const Names& names, const Form& of_ranks)
      : topology_(topology), names_(names), of_ranks_(of_ranks) {
    links_of_.resize(names.forms.size());
    for (std::size_t l = 0; l < topology.link_count(); ++l) {
      const Link& link = topology.link(LinkId(l));
      const std::size_t from = names.form_of[link.tail.index()], to = names.form_of[link.head.index()];
      links_of_[from][to].push_back(LinkId(l));
      link_between_.emplace(key(link.tail, link.head), LinkId(l));
    }
  }

  /// Whether the links between two nodes are one link at most, each way.
  [[nodiscard]] bool are_single() const { return link_between_.size() == topology_.link_count(); }

  /// Moves that are an automorphism, of which one is given; most others move with it. Nothing where there are none.
  std::optional<std::vector<Move>> find(std::uint32_t given, const Move& move) {
    moves_.assign(names_.positions.size(), Move{1, 0});
    is_set_.assign(names_.positions.size(), false);
    moves_[given] = move;
    is_set_[given] = true;
    for (const std::uint32_t position : of_ranks_.positions) is_set_[position] = true;
    tries_ = 0;
    if (!fits_with(given) || !extend(move.order())) return std::nullopt;
    return moves_;
  }

 private:
  static constexpr std::size_t max_tries = 4000;

  [[nodiscard]] std::uint64_t key(NodeId tail, NodeId head) const {
    return std::uint64_t{tail.value()} << 32U | head.value();
  }

  [[nodiscard]] bool is_known(const Form& form) const {
    return std::ranges::all_of(form.positions, [&](std::uint32_t position) { return is_set_[position]; });
  }

  /// Whether all links lie on like ones, and all nodes on like nodes, that have this position at one end and no
  /// position that is still open.
  [[nodiscard]] bool fits_with(std::uint32_t position) const {
    const auto has = [&](const Form& form) {
      return std::ranges::find(form.positions, position) != form.positions.end();
    };
    for (std::size_t from = 0; from < names_.forms.size(); ++from) {
      if (!is_known(names_.forms[from])) continue;
      if (has(names_.forms[from]) && !nodes_fit(names_.forms[from])) return false;
      for (const auto& [to, links] : links_of_[from]) {
        if (!has(names_.forms[from]) && !has(names_.forms[to])) continue;
        if (is_known(names_.forms[to]) && !links_fit(links)) return false;
      }
    }
    return true;
  }

  [[nodiscard]] bool nodes_fit(const Form& form) const {
    return std::ranges::all_of(form.nodes, [&](NodeId id) {
      Node node = topology_.node(id), image = topology_.node(names_.image(id, moves_));
      node.id = image.id;
      node.host = image.host;
      node.rail = image.rail;
      return node == image;
    });
  }

  [[nodiscard]] bool links_fit(const std::vector<LinkId>& links) const {
    return std::ranges::all_of(links, [&](LinkId id) {
      const Link& link = topology_.link(id);
      const auto image = link_between_.find(key(names_.image(link.tail, moves_), names_.image(link.head, moves_)));
      return image != link_between_.end() && topology_.link(image->second).values() == link.values();
    });
  }

  /// What another position may do while one goes round in so many steps: move with it, or stay.
  [[nodiscard]] static std::vector<Move> choices(std::uint32_t count, std::uint32_t order) {
    std::vector<Move> moves;
    if (count % order == 0 && count > order) {
      moves.push_back({count, count / order});
      moves.push_back({order, 1});
    } else if (count > 1 && order % count == 0) {
      moves.push_back({count, 1});
    }
    moves.push_back({1, 0});
    return moves;
  }

  bool extend(std::uint32_t order) {
    const auto open = std::ranges::find(is_set_, false);
    if (open == is_set_.end()) return true;
    // Next a position that completes a form whose links can be checked, if there is one.
    std::size_t next = static_cast<std::size_t>(open - is_set_.begin());
    for (const Form& form : names_.forms) {
      const auto missing = std::ranges::count_if(form.positions, [&](std::uint32_t p) { return !is_set_[p]; });
      if (missing != 1) continue;
      next = *std::ranges::find_if(form.positions, [&](std::uint32_t p) { return !is_set_[p]; });
      break;
    }
    is_set_[next] = true;
    for (const Move& move : choices(names_.positions[next].count, order)) {
      if (++tries_ > max_tries) break;
      moves_[next] = move;
      if (fits_with(static_cast<std::uint32_t>(next)) && extend(order)) return true;
    }
    moves_[next] = {1, 0};
    is_set_[next] = false;
    return false;
  }

  const Topology& topology_;
  const Names& names_;
  const Form& of_ranks_;
  std::vector<std::map<std::size_t, std::vector<LinkId>>> links_of_;  // by form left, then by form reached
  std::unordered_map<std::uint64_t, LinkId> link_between_;
  std::vector<Move> moves_;  // by position
  std::vector<bool> is_set_;
  std::size_t tries_ = 0;
};

}  // namespace

std::optional<AbelianGroup> find_name_shifts(const Topology& topology) {
  const Names names(topology);
  if (!names.is_regular()) return std::nullopt;
  const std::size_t form = names.form_of[topology.node_of(Rank(0)).index()];
  if (names.forms[form].nodes.size() != topology.rank_count()) return std::nullopt;
  MoveSearch search(topology, names, names.forms[form]);
  AbelianGroup group(topology.node_count());
  const auto add = [&](const std::vector<Move>& moves) {
    const Permutation generator = names.permutation(moves);
    auto larger = group.with(generator, topology.node_of(Rank(0)).value(), topology.rank_count());
    if (!larger) return false;
    group = *std::move(larger);
    return true;
  };
  for (const std::uint32_t position : names.forms[form].positions) {
    const std::uint32_t count = names.positions[position].count;
    if (count == 1) continue;
    if (const auto moves = search.find(position, {count, 1})) {
      if (!add(*moves)) return std::nullopt;
      continue;
    }
    // In blocks: all blocks on by one, then each within itself.
    bool found = false;
    for (std::uint32_t block = 2; block < count && !found; ++block) {
      if (count % block != 0) continue;
      const auto across = search.find(position, {count, block});
      const auto within = across ? search.find(position, {block, 1}) : std::nullopt;
      found = within && add(*across) && add(*within);
    }
    if (!found) return std::nullopt;
  }
  return group.order() == topology.rank_count() ? std::optional(std::move(group)) : std::nullopt;
}

std::vector<Permutation> find_name_automorphisms(const Topology& topology) {
  const Names names(topology);
  if (!names.is_regular()) return {};
  MoveSearch search(topology, names, names.forms[names.form_of[topology.node_of(Rank(0)).index()]]);
  if (!search.are_single()) return {};
  std::vector<Permutation> found;
  const auto add = [&](std::uint32_t position, const Move& move) {
    const auto moves = search.find(position, move);
    if (moves) found.push_back(names.permutation(*moves));
    return moves.has_value();
  };
  for (std::uint32_t position = 0; position < names.positions.size(); ++position) {
    const std::uint32_t count = names.positions[position].count;
    if (count == 1 || add(position, {count, 1})) continue;
    for (std::uint32_t block = 2; block < count; ++block) {
      if (count % block != 0) continue;
      const bool is_across = add(position, {count, block});
      if (add(position, {block, 1}) && is_across) break;
    }
  }
  return found;
}

}  // namespace espalier::planners
