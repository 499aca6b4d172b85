#include "support/source_path.h"

namespace braid::test {

std::string source_folder() { return BRAID_SOURCE_DIR; }

std::string source_path(const std::string& path) { return source_folder() + "/" + path; }

}  // namespace braid::test
