#include "braid/cli/worker_program.h"

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

}  // namespace braid
