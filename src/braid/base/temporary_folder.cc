#include "braid/base/temporary_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "braid/base/error.h"

namespace braid {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "braid-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw Error("no folder can be made in " + std::filesystem::temp_directory_path().string(),
                "free space there, or set TMPDIR");
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace braid
