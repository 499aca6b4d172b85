#include "braid/trainers/exchange/found_file.h"

#include <filesystem>
#include <system_error>

namespace braid {

std::string found_file(const std::string& name, const std::string& beside) {
  const std::filesystem::path folder = std::filesystem::path(beside).parent_path();
  for (const std::filesystem::path& path : {std::filesystem::path(name), folder / name}) {
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) return path.string();
  }
  return "";
}

}  // namespace braid
