#include "report/page_parts.h"

#include <fmt/format.h>

#include "report/html_text.h"
#include "report/page/page_files.h"

namespace espalier::report {

std::string page_head(const std::string& title, const std::vector<std::pair<std::string, std::string>>& parts) {
  const std::string safe = in_html(title);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style></head>\n<body>\n"
      "<header><h1>{}</h1>\n<nav aria-label=\"Parts\">",
      safe, page_style(), safe);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    page += fmt::format("{}<a href=\"#{}\">{}</a>", i == 0 ? "" : " ", parts[i].first, parts[i].second);
  }
  return page + "</nav></header>\n<main>\n";
}

std::string page_foot(const std::string& maker, const std::string& data) {
  std::string page = fmt::format("</main>\n<footer>{}</footer>\n", in_html(maker));
  if (!data.empty()) page += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n", data);
  return page + fmt::format("<script>\n{}</script>\n</body></html>\n", page_script());
}

std::string sentence_list(const std::vector<std::string>& sentences, std::string_view name) {
  if (sentences.empty()) return {};
  std::string list = fmt::format("<ul class=\"{}\">\n", name);
  for (const std::string& sentence : sentences) list += fmt::format("<li>{}</li>\n", in_html(sentence));
  return list + "</ul>\n";
}

std::string tables_html(const std::vector<ReportTable>& tables) {
  std::string text;
  for (const ReportTable& table : tables) text += html_table(table);
  return text;
}

std::string timeline_html(const std::vector<std::pair<std::string, std::string>>& looks) {
  std::string text = "<ul class=\"legend\">";
  for (const auto& [look, name] : looks) text += fmt::format("<li class=\"phase {}\">{}</li>", look, name);
  return text +
         "</ul>\n<div class=\"lanes\" tabindex=\"0\" role=\"application\" aria-label=\"Timeline of ranks and links; "
         "the "
         "tables say what it shows\" hidden><canvas></canvas><div class=\"spacer\"></div></div>\n"
         "<p id=\"span-text\" class=\"span\" role=\"status\"></p>\n"
         "<noscript><p>The timeline is drawn by a script; the tables are complete without it.</p></noscript>\n";
}

}  // namespace espalier::report
