#pragma once

#include <string>

namespace braid {

/// The program that processes of a run are of: braid-run, which stands beside this one. Throws
/// Error where it is not there, as braid was built without libtorch.
std::string worker_program();

/// A folder for what processes tell each other, which is gone with this. Throws Error where none
/// can be made.
class RunFolder {
 public:
  RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  ~RunFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace braid
