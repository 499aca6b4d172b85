#include "braid/backend/measure/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "braid/base/error.h"

namespace braid {
namespace {

constexpr int thrown = 3;  ///< Exit status of a child whose text is that of an exception.

void write_all(int pipe_end, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(pipe_end, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    done += static_cast<std::size_t>(written);
  }
}

[[noreturn]] void be_the_child(const std::function<std::string()>& work, int pipe_end) {
  // A crash is an answer here, not a core dump.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) std::signal(signal, SIG_DFL);
  int status = 0;
  try {
    write_all(pipe_end, work());
  } catch (const std::exception& problem) {
    status = thrown;
    write_all(pipe_end, problem.what());
  }
  ::_exit(status);
}

/// Reads to the end; false where the time is up before.
bool read_until(int pipe_end, std::chrono::steady_clock::time_point end, std::string& text) {
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd waiting{pipe_end, POLLIN, 0};
    const auto wait_ms = std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 1'000'000);
    const int ready = ::poll(&waiting, 1, static_cast<int>(wait_ms));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = ::read(pipe_end, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

struct Child {
  pid_t process = 0;
  int pipe_end = -1;  ///< What it writes comes here.
};

/// nullopt where the system gives no process.
std::optional<Child> started(const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const pid_t process = ::fork();
  if (process == 0) {
    ::close(ends[0]);
    be_the_child(work, ends[1]);
  }
  ::close(ends[1]);
  if (process > 0) return Child{process, ends[0]};
  ::close(ends[0]);
  return std::nullopt;
}

/// What the child wrote by `end`, when it is killed.
ChildAnswer answer_of(const Child& child, std::chrono::steady_clock::time_point end,
                      double limit_s) {
  ChildAnswer answer;
  const bool ended = read_until(child.pipe_end, end, answer.text);
  ::close(child.pipe_end);
  if (!ended) ::kill(child.process, SIGKILL);
  const int status = wait_for(child.process);
  if (!ended) {
    answer.problem = fmt::format("ran for more than {:g} s", limit_s);
  } else if (WIFSIGNALED(status)) {
    answer.problem = fmt::format("crashed (signal {})", WTERMSIG(status));
  } else if (WEXITSTATUS(status) == thrown) {
    answer.problem = answer.text;
  } else if (WEXITSTATUS(status) != 0) {
    answer.problem = fmt::format("ended its process (status {})", WEXITSTATUS(status));
  }
  return answer;
}

}  // namespace

std::vector<ChildAnswer> run_in_children(std::span<const std::function<std::string()>> works,
                                         double limit_s) {
  std::vector<Child> children;
  children.reserve(works.size());
  for (const std::function<std::string()>& work : works) {
    const std::optional<Child> child = started(work);
    if (!child) break;
    children.push_back(*child);
  }
  const bool all = children.size() == works.size();
  const auto limit = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(all ? limit_s : 0));
  const auto end = std::chrono::steady_clock::now() + limit;
  std::vector<ChildAnswer> answers;
  answers.reserve(children.size());
  for (const Child& child : children) answers.push_back(answer_of(child, end, limit_s));
  if (!all) {
    throw Error("no child process can be made to measure in", "free memory or processes");
  }
  return answers;
}

ChildAnswer run_in_child(const std::function<std::string()>& work, double limit_s) {
  return run_in_children(std::span(&work, 1), limit_s).front();
}

}  // namespace braid
