#include "report/png.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>

namespace espalier::report {
namespace {

constexpr double max_pixels = 1 << 26U;
constexpr std::size_t max_bytes = 2'000'000;  ///< Of a PNG with two pixels to a unit.

/// What is called of librsvg 2.46 and cairo 1.10, declared here: their headers are not needed to build.
struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
};
struct CairoFunctions {
  void* (*new_handle)(const unsigned char* data, std::size_t size, void** error) = nullptr;
  int (*render)(void* handle, void* context, const Rectangle* viewport, void** error) = nullptr;
  void (*release)(void* object) = nullptr;
  void* (*new_surface)(int format, int width, int height) = nullptr;
  void* (*new_context)(void* surface) = nullptr;
  int (*write_png)(void* surface, int (*write)(void*, const unsigned char*, unsigned), void* target) = nullptr;
  void (*destroy_context)(void* context) = nullptr;
  void (*destroy_surface)(void* surface) = nullptr;
};

/// Nothing where the library is not there, or is too old.
std::optional<CairoFunctions> load_functions() {
  // It stays loaded: its threads and types have no way out.
  void* const library = dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  CairoFunctions functions;
  bool has_all = true;
  const auto find = [&](auto& function, const char* name) {
    // Found in the libraries that it stands on, too.
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    has_all = has_all && function != nullptr;
  };
  find(functions.new_handle, "rsvg_handle_new_from_data");
  find(functions.render, "rsvg_handle_render_document");
  find(functions.release, "g_object_unref");
  find(functions.new_surface, "cairo_image_surface_create");
  find(functions.new_context, "cairo_create");
  find(functions.write_png, "cairo_surface_write_to_png_stream");
  find(functions.destroy_context, "cairo_destroy");
  find(functions.destroy_surface, "cairo_surface_destroy");
  return has_all ? std::optional(functions) : std::nullopt;
}

/// The number of an attribute of the first element.
double size_of(std::string_view svg, std::string_view attribute) {
  const std::string_view head = svg.substr(0, svg.find('>'));
  const std::size_t at = head.find(attribute);
  double number = 0;
  if (at == std::string_view::npos) return number;
  const char* const begin = head.data() + at + attribute.size();
  std::from_chars(begin, head.data() + head.size(), number);
  return number;
}

int append(void* target, const unsigned char* bytes, unsigned count) {
  static_cast<std::string*>(target)->append(reinterpret_cast<const char*>(bytes), count);
  return 0;
}

Result<std::string> render(const CairoFunctions& functions, std::string_view svg, double width, double height) {
  using Owner = std::unique_ptr<void, void (*)(void*)>;
  const Owner handle(functions.new_handle(reinterpret_cast<const unsigned char*>(svg.data()), svg.size(), nullptr),
                     functions.release);
  if (!handle) return fail(ErrorCode::invalid_input, "librsvg does not read the SVG");
  constexpr int argb32 = 0;  // CAIRO_FORMAT_ARGB32
  const Owner surface(functions.new_surface(argb32, static_cast<int>(width), static_cast<int>(height)),
                      functions.destroy_surface);
  const Owner context(functions.new_context(surface.get()), functions.destroy_context);
  const Rectangle viewport{0, 0, width, height};
  std::string png;
  const bool is_drawn = functions.render(handle.get(), context.get(), &viewport, nullptr) != 0;
  if (!is_drawn || functions.write_png(surface.get(), append, &png) != 0) {
    return fail(ErrorCode::invalid_input, "librsvg does not draw the SVG");
  }
  return png;
}

}  // namespace

Result<std::string> png_of_svg(std::string_view svg) {
  const auto functions = load_functions();
  if (!functions) {
    return fail(ErrorCode::unavailable, "librsvg, which draws PNG, is not on this machine",
                "install librsvg2-2 (Debian), or write SVG");
  }
  const double width = size_of(svg, " width=\""), height = size_of(svg, " height=\"");
  if (width < 1 || height < 1) return fail(ErrorCode::invalid_input, "the SVG states no width and height");
  if (width * height > max_pixels) {
    return fail(ErrorCode::too_large, fmt::format("the picture would have {:.0f} x {:.0f} pixels", width, height),
                "write SVG, or draw less");
  }
  if (4 * width * height <= max_pixels) {
    auto png = render(*functions, svg, 2 * width, 2 * height);
    if (!png || png->size() <= max_bytes) return png;
  }
  return render(*functions, svg, width, height);
}

}  // namespace espalier::report
