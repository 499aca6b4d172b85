#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace braid {

/// Folder of published programs' inputs and answers, which some tests compare with when it is
/// there: BRAID_REFERENCE_DIR, else `shared` beside the source folder. Empty when absent.
inline std::string reference_folder(const std::string& name) {
  const char* given = std::getenv("BRAID_REFERENCE_DIR");
  const std::filesystem::path base = given != nullptr ? given : BRAID_SOURCE_DIR "/../shared";
  const std::filesystem::path folder = base / "reference" / name;
  return std::filesystem::is_directory(folder) ? folder.string() : std::string();
}

}  // namespace braid
