#include "braid/cli/worker_program.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "braid/base/error.h"

namespace braid {

std::string worker_program() {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string program = (own.parent_path() / "braid-run").string();
  if (error || ::access(program.c_str(), X_OK) != 0) {
    throw Error("braid was built without libtorch, and cannot run plans",
                "install libtorch-dev and libgloo-dev, then configure and build again");
  }
  return program;
}

RunFolder::RunFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "braid-run-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw Error("no folder can be made in " + pattern);
  path_ = pattern;
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace braid
