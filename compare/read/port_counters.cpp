#include "compare/read/port_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "compare/read/others/line_reader.h"

namespace espalier::compare {
namespace {

/// All that a text says of one port.
struct Port {
  std::optional<std::uint32_t> gpu;
  std::string device;
  std::optional<std::uint32_t> number;
  double errors = 0;
  double most = 0;    ///< Of one kind of error,
  std::string which;  ///< which is this.
  double rate = 0;    ///< GB/s; 0 where none is said.
  bool is_down = false;
  std::size_t line = 0;
};

std::string lower(std::string_view text) {
  std::string all(text);
  std::ranges::transform(all, all.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return all;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

/// The number that a text begins with, decimal or hexadecimal after 0x.
std::optional<double> number_at(std::string_view text) {
  text = trim(text);
  const bool is_hex = text.starts_with("0x");
  if (is_hex) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
    return error == std::errc() ? std::optional(static_cast<double>(value)) : std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return error == std::errc() && std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<std::uint32_t> index_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint32_t value = 0;
  const std::string_view rest = trim(text.substr(at + word.size()));
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

/// Whether a counter counts what bad cables do. A full network makes ports wait and drop, which is none of them.
bool is_of_cables(std::string_view counter) {
  const std::string name = lower(counter);
  constexpr std::array causes = {"symbol",    "recover",   "downed",     "link_down",      "replay",          "crc",
                                 "integrity", "rcverrors", "rcv_errors", "remotephysical", "remote_physical", "fec"};
  if (name.find("successful") != std::string::npos || name.find("correct") != std::string::npos) return false;
  return std::ranges::any_of(causes, [&](const char* cause) { return name.find(cause) != std::string::npos; });
}

void count(Port& port, std::string_view counter, double value) {
  if (!is_of_cables(counter)) return;
  port.errors += value;
  if (value <= port.most) return;
  port.most = value;
  port.which = trim(counter);
}

/// The ports of a text, one after the other.
class PortReader {
 public:
  void read(std::string_view text) {
    LineReader lines(text);
    while (lines.next()) read_line(lines.line(), lines.number());
  }
  [[nodiscard]] const std::vector<Port>& ports() const { return ports_; }

 private:
  Port& port_of(std::optional<std::uint32_t> number, std::size_t line) {
    const auto is_it = [&](const Port& port) {
      return port.gpu == gpu_ && port.device == device_ && port.number == number;
    };
    // What has neither name nor GPU is another port in each header.
    const bool is_named = gpu_ || !device_.empty();
    const auto known = is_named ? std::ranges::find_if(ports_, is_it) : ports_.end();
    if (known != ports_.end()) return *known;
    Port& port = ports_.emplace_back();
    port.gpu = gpu_;
    port.device = device_;
    port.number = number;
    port.line = line;
    return port;
  }

  /// "GPU 0: NVIDIA H100 80GB HBM3 (UUID: ...)" and the links below it.
  bool read_nvlink(std::string_view line, std::size_t number) {
    if (line.starts_with("GPU ") && line.find(':') != std::string_view::npos) {
      gpu_ = index_after(line, "GPU ");
      device_.clear();
      return gpu_.has_value();
    }
    if (!gpu_ || !line.starts_with("Link ")) return false;
    const std::size_t colon = line.find(':');
    const auto link = index_after(line, "Link ");
    if (colon == std::string_view::npos || !link) return false;
    const std::string_view rest = trim(line.substr(colon + 1));
    Port& port = port_of(link, number);
    if (const std::size_t second = rest.find(':'); second != std::string_view::npos) {
      if (const auto value = number_at(rest.substr(second + 1))) count(port, rest.substr(0, second), *value);
    } else if (rest.ends_with("GB/s")) {
      port.rate = number_at(rest).value_or(0);
    } else if (lower(rest).find("inactive") != std::string::npos) {
      port.is_down = true;
    }
    return true;
  }

  /// perfquery: "# Port extended counters: Lid 10 port 1 (...)", then "SymbolErrorCounter:..............0".
  bool read_perfquery(std::string_view line, std::size_t number) {
    if (line.starts_with("# Port") && line.find("counters: Lid ") != std::string_view::npos) {
      gpu_.reset();
      device_.clear();
      current_ = static_cast<std::size_t>(&port_of(index_after(line, " port "), number) - ports_.data());
      return true;
    }
    const std::size_t dots = line.find(":..");
    if (!current_ || dots == std::string_view::npos) return false;
    const std::size_t value = line.find_first_not_of('.', dots + 1);
    if (value == std::string_view::npos) return false;
    if (const auto found = number_at(line.substr(value))) count(ports_[*current_], line.substr(0, dots), *found);
    return true;
  }

  /// ibqueryerrors: 'Errors for 0x200002 "leaf-1"', then "GUID 0x200002 port 33: [SymbolErrorCounter == 250] ...".
  bool read_ibqueryerrors(std::string_view line, std::size_t number) {
    if (line.starts_with("Errors for ")) {
      const std::size_t from = line.find('"'), to = line.rfind('"');
      if (from == to) return false;
      gpu_.reset();
      device_ = line.substr(from + 1, to - from - 1);
      return true;
    }
    if (!line.starts_with("GUID ") || line.find("port ") == std::string_view::npos) return false;
    const auto of = index_after(line, "port ");
    if (!of) return true;  // All ports of a device together.
    Port& port = port_of(of, number);
    for (std::size_t at = line.find('['); at != std::string_view::npos; at = line.find('[', at + 1)) {
      const std::size_t equals = line.find(" == ", at);
      if (equals == std::string_view::npos) break;
      if (const auto value = number_at(line.substr(equals + 4)))
        count(port, line.substr(at + 1, equals - at - 1), *value);
    }
    return true;
  }

  /// ibdiagnet's port counters: "Port=1 Lid=0x0009 GUID=0x... Device=4115 Port Name=node1/U1/P1", then
  /// "symbol_error_counter=0x0".
  bool read_ibdiagnet(std::string_view line, std::size_t number) {
    constexpr std::string_view named = "Port Name=";
    if (line.starts_with("Port=") && line.find(named) != std::string_view::npos) {
      gpu_.reset();
      device_ = trim(line.substr(line.find(named) + named.size()));
      if (const std::size_t end = device_.rfind("/P"); end != std::string::npos) device_.resize(end);
      current_ = static_cast<std::size_t>(&port_of(index_after(line, "Port="), number) - ports_.data());
      return true;
    }
    const std::size_t equals = line.find('=');
    if (!current_ || equals == std::string_view::npos) return false;
    if (const auto value = number_at(line.substr(equals + 1))) count(ports_[*current_], line.substr(0, equals), *value);
    return true;
  }

  void read_line(std::string_view whole, std::size_t number) {
    const std::string_view line = trim(whole);
    if (read_nvlink(line, number) || read_perfquery(line, number) || read_ibqueryerrors(line, number)) return;
    read_ibdiagnet(line, number);
  }

  std::vector<Port> ports_;
  std::optional<std::uint32_t> gpu_;
  std::string device_;
  std::optional<std::size_t> current_;  ///< Of perfquery and ibdiagnet.
};

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

bool has_port_counters(std::string_view text) {
  const bool is_nvlink =
      text.find("GPU ") != std::string_view::npos && text.find("Link ") != std::string_view::npos &&
      (text.find("GB/s") != std::string_view::npos || text.find("Errors:") != std::string_view::npos);
  constexpr std::array marks = {"counters: Lid ", "Errors for ", "Port Name="};
  const bool is_infiniband =
      std::ranges::any_of(marks, [&](const char* mark) { return text.find(mark) != std::string_view::npos; });
  if (!is_nvlink && !is_infiniband) return false;
  PortReader reader;
  reader.read(text);
  return !reader.ports().empty();
}

Result<std::vector<PortTrouble>> read_port_counters(std::string_view text, std::string_view name) {
  PortReader reader;
  reader.read(text);
  if (reader.ports().empty()) {
    return fail(ErrorCode::invalid_input, fmt::format("{}:1: no counters of a port", name),
                "name the output of nvidia-smi nvlink -e or -s, perfquery, ibqueryerrors or ibdiagnet");
  }
  std::vector<double> errors, rates;
  for (const Port& port : reader.ports()) {
    errors.push_back(port.errors);
    if (port.rate > 0) rates.push_back(port.rate);
  }
  constexpr double apart = 10, near = 0.9;
  const bool has_others = reader.ports().size() > 1;
  const double usual_errors = has_others ? median_of(std::move(errors)) : 0, usual_rate = median_of(std::move(rates));
  std::vector<PortTrouble> troubles;
  for (const Port& port : reader.ports()) {
    const bool is_slow = port.rate > 0 && port.rate < near * usual_rate;
    const bool has_errors = port.errors > 0 && port.errors > apart * usual_errors;
    if (!is_slow && !port.is_down && !has_errors) continue;
    const std::string of = fmt::format("{} {}", port.gpu ? "link" : "port", port.number.value_or(0));
    const std::string says = port.is_down ? "down"
                             : is_slow    ? fmt::format("{:g} GB/s, others {:g}", port.rate, usual_rate)
                                          : fmt::format("{:.0f} {}", port.most, port.which);
    troubles.push_back({port.gpu, port.device, port.number, is_slow || port.is_down, of + ": " + says, port.line});
  }
  return troubles;
}

}  // namespace espalier::compare
