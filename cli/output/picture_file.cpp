#include "cli/output/picture_file.h"

#include "cli/output/output_file.h"
#include "report/png.h"

namespace espalier::cli {

Result<void> write_picture(const Console& console, const std::string& path, PictureForm form, const std::string& svg) {
  const auto bytes = form == PictureForm::png ? report::png_of_svg(svg) : Result<std::string>(svg);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto written = write_file(path, [&](std::ostream& stream) -> Result<void> {
    stream << *bytes;
    return {};
  });
  if (written && path != "-") console.note("wrote " + path);
  return written;
}

void PictureFlags::add_to(CLI::App& command, const std::string& what) {
  command.add_option("--svg", svg, "Draw " + what + " into this file (- is standard output)")->option_text("FILE");
  command.add_option("--png", png, "The same as PNG, by librsvg")->option_text("FILE");
}

Result<void> PictureFlags::write(const Console& console, const std::string& picture) const {
  if (!svg.empty()) {
    if (auto written = write_picture(console, svg, PictureForm::svg, picture); !written) return written;
  }
  return png.empty() ? Result<void>() : write_picture(console, png, PictureForm::png, picture);
}

}  // namespace espalier::cli
