#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/source_path.h"

namespace braid {

/// A file of the published programs' inputs and answers, which are not part of the project: below
/// the folder in the environment variable BRAID_REFERENCE_DIR, else ../shared beside the project.
/// Empty when it is not there.
inline std::string reference_file(const std::string& path) {
  const char* folder = std::getenv("BRAID_REFERENCE_DIR");
  const std::filesystem::path file =
      std::filesystem::path(folder != nullptr ? folder : test::source_path("../shared")) / path;
  return std::filesystem::exists(file) ? file.string() : "";
}

}  // namespace braid
