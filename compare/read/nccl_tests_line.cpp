#include "compare/read/nccl_tests_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "compare/read/nccl_tests.h"

namespace espalier::compare {
namespace nccl_tests {
namespace {

constexpr std::string_view blanks = " \t\r\v\f";
constexpr std::array<std::string_view, 7> operations = {"mulsum", "none", "prod", "sum", "max", "min", "avg"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
}

/// Without control sequences: ESC [ ... letter, and ESC ] ... BEL. Other control characters go too.
std::string without_ansi(std::string_view line) {
  std::string plain;
  plain.reserve(line.size());
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte == 0x1B) {
      const bool is_title = i + 1 < line.size() && line[i + 1] == ']';
      i += i + 1 < line.size() ? 1U : 0U;
      if (line[i] != '[' && !is_title) continue;
      while (i + 1 < line.size()) {
        const auto next = static_cast<unsigned char>(line[++i]);
        if (is_title ? next == 0x07 : (next >= 0x40 && next <= 0x7E)) break;
      }
    } else if (byte >= 0x20 || byte == '\t') {
      plain.push_back(line[i]);
    }
  }
  return plain;
}

/// Whether a line goes on like one of nccl-tests: with a '#' or a number.
bool looks_like_ours(std::string_view rest) {
  const std::size_t first = rest.find_first_not_of(blanks);
  return first != std::string_view::npos && (rest[first] == '#' || is_digit(rest[first]));
}

/// The length of a label of a rank that a text begins with: "[0]", "[1,0]<stdout>:", "[rank0]:"; zero when there is
/// none.
std::size_t label_length(std::string_view text) {
  if (!text.starts_with('[')) return 0;
  const std::size_t end = text.find(']');
  if (end == std::string_view::npos) return 0;
  for (const std::string_view stream : {"<stdout>:", "<stderr>:"}) {
    if (text.substr(end + 1).starts_with(stream)) return end + 1 + stream.size();
  }
  std::string_view inside = text.substr(1, end - 1);
  if (inside.starts_with("rank")) inside.remove_prefix(4);
  if (inside.empty() || inside.find_first_not_of("0123456789,") != std::string_view::npos) return 0;
  return end + (text.substr(end + 1).starts_with(':') ? 2 : 1);
}

/// Whether a text begins with a time as mpirun --timestamp-output writes it: "Tue Nov 28 04:05:03 2023".
bool begins_with_time(std::string_view text) {
  constexpr std::string_view form = "Aaa Aaa _0 00:00:00 0000";  // '_' is a digit or a blank.
  return text.size() >= form.size() && std::ranges::equal(form, text.substr(0, form.size()), [](char like, char c) {
           switch (like) {
             case 'A': return c >= 'A' && c <= 'Z';
             case 'a': return c >= 'a' && c <= 'z';
             case '0': return is_digit(c);
             case '_': return is_digit(c) || c == ' ';
             default: return c == like;
           }
         });
}

/// Such times and the stream behind them, before a row and within it: blanks in their place.
void blank_times(std::string& line) {
  constexpr std::size_t length_of_time = 24;
  for (std::size_t at = 0; at + length_of_time <= line.size(); ++at) {
    if (!begins_with_time(std::string_view(line).substr(at))) continue;
    std::size_t length = length_of_time;
    for (const std::string_view stream : {"<stdout>:", "<stderr>:"}) {
      if (std::string_view(line).substr(at + length_of_time).starts_with(stream)) length += stream.size();
    }
    line.replace(at, length, length, ' ');
  }
}

/// Labels before a row and within it, as launchers put one before each part that was written: blanks in their place.
void blank_labels(std::string& line) {
  for (std::size_t at = line.find('['); at != std::string::npos; at = line.find('[', at + 1)) {
    const std::size_t length = label_length(std::string_view(line).substr(at));
    line.replace(at, length, length, ' ');
  }
}

/// Takes the name or number of a process off that a line begins with; false when there is none.
bool take_prefix(std::string_view& line) {
  const std::size_t first = line.find_first_not_of(blanks);
  if (first == std::string_view::npos) return false;
  std::size_t end = first;
  while (end < line.size() && is_name_character(line[end])) ++end;
  if (end == first || end >= line.size() || line[end] != ':') return false;
  const std::string_view rest = line.substr(end + 1);
  if (!rest.empty() && blanks.find(rest.front()) == std::string_view::npos) return false;
  const bool is_rank = std::all_of(line.begin() + static_cast<std::ptrdiff_t>(first),
                                   line.begin() + static_cast<std::ptrdiff_t>(end), is_digit);
  if (!is_rank && !looks_like_ours(rest)) return false;
  line = rest;
  return true;
}

/// Cuts NCCL's own message off: "host:pid:tid [device] NCCL INFO ...". Where it was printed right behind a word of a
/// row ("sumhost:1:2 [0] NCCL INFO"), the word stays.
bool cut_log(std::string& line) {
  std::size_t at = std::string::npos;
  for (const char* level : {"NCCL INFO", "NCCL WARN", "NCCL TRACE", "NCCL ABORT"}) at = std::min(at, line.find(level));
  if (at == std::string::npos) return false;
  const std::string_view before = std::string_view(line).substr(0, at);
  const std::size_t colon = before.find(':');
  if (colon == std::string_view::npos) {
    line.clear();
    return true;
  }
  const std::size_t gap = before.substr(0, colon).find_last_of(blanks);
  const std::size_t word = gap == std::string_view::npos ? 0 : gap + 1;
  std::size_t kept = word;
  constexpr std::array<std::string_view, 6> types = {"float", "half", "bfloat16", "double", "int8", "uint8"};
  const auto keep = [&](std::string_view own) {
    if (kept == word && word > 0 && before.substr(word).starts_with(own)) kept = word + own.size();
  };
  for (const std::string_view operation : operations) keep(operation);
  for (const std::string_view type : types) keep(type);  // Of versions that print no operation.
  line.resize(kept);
  return true;
}

}  // namespace

CleanLine clean_line(std::string_view line) {
  std::string plain = without_ansi(line);
  blank_times(plain);
  blank_labels(plain);
  std::string_view rest = plain;
  constexpr int max_prefixes = 3;
  for (int i = 0; i < max_prefixes && take_prefix(rest); ++i) {
  }
  CleanLine clean{std::string(rest), false};
  clean.was_interrupted = cut_log(clean.text);
  return clean;
}

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(blanks); at != std::string_view::npos;
       at = line.find_first_not_of(blanks, at)) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<double> parse_decimal(std::string_view word) {
  double value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool is_operation(std::string_view word) { return std::ranges::find(operations, word) != operations.end(); }

}  // namespace nccl_tests

namespace {

std::string_view without_folder(std::string_view program) {
  const std::size_t slash = program.find_last_of('/');
  return slash == std::string_view::npos ? program : program.substr(slash + 1);
}

}  // namespace

bool sends_unequal_blocks(std::string_view program) { return without_folder(program) == "alltoallv_perf"; }

std::optional<std::string> collective_of_program(std::string_view program) {
  program = without_folder(program);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> programs = {
      {{"all_reduce_perf", "all_reduce"},
       {"hypercube_perf", "hypercube"},
       {"reduce_scatter_perf", "reduce_scatter"},
       {"all_gather_perf", "all_gather"},
       {"broadcast_perf", "broadcast"},
       {"reduce_perf", "reduce"},
       {"alltoall_perf", "all_to_all"},
       {"alltoallv_perf", "all_to_all"},
       {"gather_perf", "gather"},
       {"scatter_perf", "scatter"},
       {"sendrecv_perf", "send_recv"}}};
  for (const auto& [name, collective] : programs) {
    if (name == program) return std::string(collective);
  }
  return std::nullopt;
}

std::string collective_of_file_name(std::string_view name) {
  if (const std::size_t slash = name.find_last_of('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::string letters;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') letters.push_back(static_cast<char>(c - 'A' + 'a'));
    if (c >= 'a' && c <= 'z') letters.push_back(c);
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> names = {{{"allreduce", "all_reduce"},
                                                                                   {"reducescatter", "reduce_scatter"},
                                                                                   {"allgather", "all_gather"},
                                                                                   {"alltoall", "all_to_all"},
                                                                                   {"broadcast", "broadcast"},
                                                                                   {"sendrecv", "send_recv"},
                                                                                   {"gather", "gather"},
                                                                                   {"scatter", "scatter"},
                                                                                   {"reduce", "reduce"}}};
  for (const auto& [word, collective] : names) {
    if (letters.find(word) != std::string::npos) return std::string(collective);
  }
  return {};
}

}  // namespace espalier::compare
