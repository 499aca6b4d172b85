#include "braid/run/process_watch.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "braid/base/error.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t told_to_end = 0;
void note_signal(int signal) { told_to_end = signal; }

/// While it lives, SIGINT and SIGTERM are noted and do not end this process.
class NotedSignals {
 public:
  NotedSignals() {
    told_to_end = 0;
    struct sigaction action {};
    action.sa_handler = note_signal;
    ::sigaction(SIGINT, &action, &interrupt_);
    ::sigaction(SIGTERM, &action, &terminate_);
  }
  NotedSignals(const NotedSignals&) = delete;
  NotedSignals& operator=(const NotedSignals&) = delete;
  ~NotedSignals() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  struct sigaction interrupt_ {
  }, terminate_{};
};

struct Watched {
  std::string who;
  pid_t process = -1;
  int output = -1;
  std::string unread;  ///< A line that has not ended.
  std::string own_words;
  bool lost_another = false;
  std::optional<int> status;  ///< Of wait(), when it has ended.

  bool ended() const { return status.has_value(); }
  bool failed() const { return ended() && *status != 0; }
  /// Whether its end may be another's fault: it said so.
  bool is_cause() const { return failed() && !lost_another; }
};

std::string why_ended(const Watched& process) {
  const int status = *process.status;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return fmt::format("was ended by signal {} ({})", signal, ::strsignal(signal));
  }
  if (!process.own_words.empty()) {
    return (process.lost_another ? "lost another: " : "failed: ") + process.own_words;
  }
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

class ProcessWatch {
 public:
  explicit ProcessWatch(const std::function<void(std::size_t, const std::string&)>& heard)
      : heard_(heard) {}
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;
  ~ProcessWatch() {
    end_all();
    for (Watched& each : processes_) {
      if (each.output >= 0) ::close(each.output);
    }
  }

  void start(const ProcessStart& start) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("no pipe to " + start.who);
    std::vector<char*> words;
    for (const std::string& word : start.words) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const pid_t parent = ::getpid();
    const pid_t process = ::fork();
    if (process < 0) throw Error("no process can be started for " + start.who);
    if (process == 0) {
      // Out of the terminal's reach: ctrl-C is this process's to hear. It does not outlive it.
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execv(words.front(), words.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    processes_.push_back({start.who, process, ends[0], {}, {}, false, std::nullopt});
  }

  ProcessEnd wait() {
    ProcessEnd end;
    std::optional<Clock::time_point> failed;
    while (!all_ended()) {
      listen();
      reap();
      if (told_to_end != 0) {
        end.interrupted = true;
        end.failure = fmt::format("ended by signal {} ({})", static_cast<int>(told_to_end),
                                  ::strsignal(told_to_end));
        return end;
      }
      if (!failed && any(&Watched::failed)) failed = Clock::now();
      // Who lost another may be seen before the other is: that one is waited for.
      const bool enough =
          any(&Watched::is_cause) || (failed && Clock::now() - *failed > std::chrono::seconds(2));
      if (failed && enough) break;
    }
    drain();
    const auto cause = std::find_if(processes_.begin(), processes_.end(),
                                    [](const Watched& each) { return each.is_cause(); });
    const auto first = std::find_if(processes_.begin(), processes_.end(),
                                    [](const Watched& each) { return each.failed(); });
    const auto culprit = cause != processes_.end() ? cause : first;
    if (culprit != processes_.end()) end.failure = culprit->who + " " + why_ended(*culprit);
    return end;
  }

 private:
  bool all_ended() const {
    return std::all_of(processes_.begin(), processes_.end(),
                       [](const Watched& each) { return each.ended(); });
  }
  bool any(bool (Watched::*holds)() const) const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [&](const Watched& each) { return (each.*holds)(); });
  }

  /// Waits a little for anything to be said, and hears it.
  void listen() {
    std::vector<pollfd> ends;
    for (const Watched& each : processes_) ends.push_back({each.output, POLLIN, 0});
    constexpr int kPoll_ms = 20;
    ::poll(ends.data(), ends.size(), kPoll_ms);
    drain();
  }

  void drain() {
    for (std::size_t p = 0; p < processes_.size(); ++p) {
      Watched& each = processes_[p];
      char bytes[4096];
      while (each.output >= 0) {
        const ssize_t count = ::read(each.output, bytes, sizeof bytes);
        if (count > 0) {
          each.unread.append(bytes, static_cast<std::size_t>(count));
          continue;
        }
        if (count < 0 && errno == EINTR) continue;
        if (count == 0) {
          ::close(each.output);
          each.output = -1;
        }
        break;
      }
      for (std::size_t end = 0; (end = each.unread.find('\n')) != std::string::npos;) {
        hear(p, each.unread.substr(0, end));
        each.unread.erase(0, end + 1);
      }
    }
  }

  void hear(std::size_t p, const std::string& line) {
    Watched& each = processes_[p];
    if (line.starts_with("warning: ")) {
      fmt::print(stderr, "braid: {}\n", line);
      return;
    }
    const bool lost = line.starts_with("lost: ");
    if (!lost && !line.starts_with("failed: ")) return heard_(p, line);
    each.lost_another = lost;
    each.own_words = line.substr(line.find(' ') + 1);
  }

  void reap() {
    for (Watched& each : processes_) {
      int status = 0;
      if (!each.ended() && ::waitpid(each.process, &status, WNOHANG) == each.process) {
        each.status = status;
      }
    }
    drain();
  }

  void end_all() {
    for (const Watched& each : processes_) {
      if (!each.ended()) ::kill(each.process, SIGKILL);
    }
    for (Watched& each : processes_) {
      int status = 0;
      while (!each.ended()) {
        if (::waitpid(each.process, &status, 0) == each.process || errno != EINTR) {
          each.status = status;
        }
      }
    }
  }

  const std::function<void(std::size_t, const std::string&)>& heard_;
  std::vector<Watched> processes_;
};

}  // namespace

ProcessEnd watch_processes(const std::vector<ProcessStart>& starts,
                           const std::function<void(std::size_t, const std::string&)>& heard) {
  for (const ProcessStart& each : starts) {
    if (::access(each.words.front().c_str(), X_OK) == 0) continue;
    throw Error("there is no program " + each.words.front());
  }
  const NotedSignals signals;
  ProcessWatch watch(heard);
  for (const ProcessStart& each : starts) watch.start(each);
  return watch.wait();
}

}  // namespace braid
