#pragma once

#include <span>
#include <string_view>

namespace braid {

/// A data file compiled into the program; see cmake/embed.cmake.
struct EmbeddedFile {
  std::string_view name;  ///< Without folder and extension: `h100-sxm`.
  std::string_view file;  ///< With extension: `h100-sxm.yaml`.
  std::string_view text;
};

}  // namespace braid
