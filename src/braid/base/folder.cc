#include "braid/base/folder.h"

#include <filesystem>
#include <system_error>

#include "braid/base/error.h"

namespace braid {

void make_folder(const std::string& path, const std::string& remedy) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (problem) throw Error(Where{path, 0, ""}, "cannot be made: " + problem.message(), remedy);
}

}  // namespace braid
