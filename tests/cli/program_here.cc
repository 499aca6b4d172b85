#include "cli/program_here.h"

#include <cstdio>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"
#include "braid/cli/program.h"

namespace braid::test {
namespace {

/// Sends a stream of this process to a file while it lives.
class Redirected {
 public:
  Redirected(std::FILE* stream, const std::string& path)
      : stream_(stream), saved_(flushed(stream) ? dup(fileno(stream)) : -1) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT_GE(dup2(file, fileno(stream)), 0) << path;
    close(file);
  }
  ~Redirected() {
    std::fflush(stream_);
    dup2(saved_, fileno(stream_));
    close(saved_);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;

 private:
  static bool flushed(std::FILE* stream) { return std::fflush(stream) == 0; }

  std::FILE* stream_;
  int saved_;
};

}  // namespace

Ran run_braid_here(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {BRAID_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const TemporaryFolder streams;
  Ran ran;
  {
    const Redirected out(stdout, streams / "out");
    const Redirected err(stderr, streams / "err");
    ran.status = braid::run_program(static_cast<int>(words.size()), argv.data());
  }
  ran.out = read_file(streams / "out");
  ran.err = read_file(streams / "err");
  return ran;
}

}  // namespace braid::test
