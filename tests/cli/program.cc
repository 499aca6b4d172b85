#include "cli/program.h"

#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

extern char** environ;  // NOLINT: declared by no header

namespace braid::test {

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

}  // namespace braid::test
