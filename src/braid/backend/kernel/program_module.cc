#include "braid/backend/kernel/program_module.h"

#include <filesystem>
#include <system_error>

namespace braid {

std::string module_path(const std::string& file_name, const std::string& folder) {
  std::error_code problem;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", problem);
  const std::filesystem::path beside = own.parent_path();
  const std::filesystem::path installed = beside / ".." / folder / file_name;
  return std::filesystem::exists(installed, problem) ? installed.string()
                                                     : (beside / file_name).string();
}

}  // namespace braid
