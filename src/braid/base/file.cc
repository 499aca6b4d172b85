#include "braid/base/file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "braid/base/error.h"

namespace braid {
namespace {

// Most that is read from something that is not a regular file (a pipe may never end).
constexpr std::size_t kMostStreamed = std::size_t{2} << 30;

std::string reason(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail(const std::string& path, const std::string& what, int error,
                       const std::string& remedy = {}) {
  throw Error(Where{path, 0, {}}, what + ": " + reason(error), remedy);
}

// Closes on destruction.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  /// Closes now and says whether that worked.
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

// Reads to the end. `expected` is the likely size.
std::string read_all(int fd, const std::string& path, std::size_t expected, bool regular) {
  constexpr std::size_t kLeast = 1 << 16;
  std::string text;
  std::size_t size = 0;
  text.resize(expected + 1);
  for (;;) {
    if (size == text.size()) text.resize(std::max(size * 2, kLeast));
    const ssize_t got = ::read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "cannot read", errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (!regular && size > kMostStreamed) throw Error(Where{path, 0, {}}, "the input does not end");
  }
  text.resize(size);
  return text;
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t done = ::write(fd, content.data(), content.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

// Removes the file on destruction unless it was kept.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

// Opens a new file beside `path`; sets `temporary` to its name. Negative with errno on failure.
int open_beside(const std::string& path, std::string& temporary) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    temporary = path + "." + std::to_string(::getpid()) + "-" + std::to_string(attempt) + ".tmp";
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

void write_in_place(const std::string& path, std::string_view content) {
  Descriptor out(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (out.get() < 0) fail(path, "cannot write", errno);
  if (!write_all(out.get(), content) || !out.close()) fail(path, "cannot write", errno);
}

// The file that a chain of symbolic links leads to, so that the link itself stays.
std::string follow_links(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const auto target = std::filesystem::weakly_canonical(path, error);
  return error ? path : target.string();
}

}  // namespace

std::string read_file(const std::string& path) {
  if (path.empty()) throw Error("the name of the file to read is empty", "name a file");
  const bool standard_input = path == "-";
  Descriptor in(standard_input ? ::dup(STDIN_FILENO)
                               : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (in.get() < 0) fail(path, "cannot open", errno);
  struct stat status {};
  if (::fstat(in.get(), &status) != 0) fail(path, "cannot read", errno);
  if (S_ISDIR(status.st_mode)) fail(path, "cannot read", EISDIR, "give a file");
  if (!standard_input && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode))) {
    throw Error(Where{path, 0, {}}, "is a device", "give a file or a pipe");
  }
  const bool regular = S_ISREG(status.st_mode);
  const std::size_t expected = regular ? static_cast<std::size_t>(status.st_size) : 0;
  return read_all(in.get(), standard_input ? "<stdin>" : path, expected, regular);
}

void write_file(const std::string& path, std::string_view content) {
  if (path.empty()) throw Error("the name of the file to write is empty", "name a file");
  if (path == "-") {
    if (std::fflush(stdout) != 0 || !write_all(STDOUT_FILENO, content)) {
      fail("<stdout>", "cannot write", errno);
    }
    return;
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) fail(path, "cannot write", EISDIR, "give a file name");
    // A device or a pipe cannot be replaced.
    if (!S_ISREG(status.st_mode)) return write_in_place(path, content);
    if (::access(path.c_str(), W_OK) != 0) fail(path, "cannot write", errno);
  }
  const std::string target = follow_links(path);
  std::string name;
  Descriptor out(open_beside(target, name));
  if (out.get() < 0) fail(path, "cannot write", errno);
  TemporaryFile temporary(name);
  if (!write_all(out.get(), content) || ::fsync(out.get()) != 0 || !out.close() ||
      ::rename(temporary.path().c_str(), target.c_str()) != 0) {
    fail(path, "cannot write", errno);
  }
  temporary.keep();
}

}  // namespace braid
