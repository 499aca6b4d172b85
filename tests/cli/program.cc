#include "cli/program.h"

#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"
#include "braid/cli/program.h"

extern char** environ;  // NOLINT: declared by no header

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

Ran run_program(std::vector<std::string> words, const std::string& folder) {
  const TemporaryFolder streams;
  const std::string out = streams / "out";
  const std::string err = streams / "err";
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), kFlags, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), kFlags, 0600);
  if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t child = 0;
  const int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  Ran ran;
  EXPECT_EQ(failed, 0) << "cannot start " << argv[0];
  if (failed != 0) return ran;
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.out = read_file(out);
  ran.err = read_file(err);
  return ran;
}

Ran run_braid(const std::vector<std::string>& arguments, const std::string& folder) {
  std::vector<std::string> words = {BRAID_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run_program(std::move(words), folder);
}

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
