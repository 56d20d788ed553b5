#include "topology/import/pci.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace espalier {

std::string normal_bus(std::string_view bus) {
  std::string text;
  for (const char letter : bus) text += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  const std::size_t domain = text.find(':');
  constexpr std::size_t digits = 4;
  if (domain == std::string::npos || text.find(':', domain + 1) == std::string::npos) return "0000:" + text;
  std::size_t zeros = 0;
  while (domain - zeros > digits && text[zeros] == '0') ++zeros;
  return text.substr(zeros);
}

bool draws_a_console(std::string_view model) {
  // ES1000 (two), Rage XL (four), Radeon 7000.
  constexpr std::array<std::string_view, 7> models = {"1002:515e", "1002:5969", "1002:4752", "1002:474f",
                                                      "1002:4750", "1002:474d", "1002:5159"};
  return std::ranges::find(models, model) != models.end();
}

std::optional<Bandwidth> pcie_rate(std::string_view speed, std::int64_t width) {
  double gigatransfers = 0;
  const auto parsed = std::from_chars(speed.data(), speed.data() + speed.size(), gigatransfers);
  if (parsed.ec != std::errc() || width < 0 || width > 32) return std::nullopt;
  if (width == 0) width = 16;
  struct Generation {
    double gigatransfers;
    std::int64_t kilobytes;  // Of one lane, after 8b/10b, 128b/130b or FLIT coding, rounded down to 1/16 of x16's.
  };
  constexpr std::array generations = {Generation{2.5, 250'000},  Generation{5, 500'000},    Generation{8, 984'375},
                                      Generation{16, 1'968'750}, Generation{32, 3'937'500}, Generation{64, 7'562'500}};
  for (const Generation& generation : generations) {
    if (gigatransfers == generation.gigatransfers) return Bandwidth{generation.kilobytes * 1000 * width};
  }
  return std::nullopt;
}

}  // namespace espalier
