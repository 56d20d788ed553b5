#include "report/html_text.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/format_units.h"

namespace espalier::report {

std::string in_html(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default:
        if (static_cast<unsigned char>(letter) >= 0x20 && letter != 0x7f) safe += letter;
    }
  }
  return safe;
}

std::string size_text(Bytes size) {
  const std::string exact = format_size(size), rounded = format_rounded_size(size);
  return exact.size() < rounded.size() ? exact : rounded;
}

std::string html_table(const ReportTable& table) {
  std::string text = fmt::format("<div class=\"table\"><table data-name=\"{}\"><caption>{}</caption>\n<thead><tr>",
                                 in_html(table.name), in_html(table.caption));
  const auto kind = [&](std::size_t column) { return table.columns[column].is_number ? " class=\"number\"" : ""; };
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    text += fmt::format("<th scope=\"col\"{}>{}</th>", kind(i), in_html(table.columns[i].title));
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    text += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) text += fmt::format("<td{}>{}</td>", kind(i), in_html(row[i]));
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = (group << 8U) | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= count ? letters[group >> (18 - 6 * i) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace espalier::report
