#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace braid {

/// A program to start, as a rank of a run.
struct ProcessStart {
  std::vector<std::string> words;  ///< The program's path and its arguments.
  std::string who;                 ///< "rank 2 (stage 1, device 5)", for messages.
};

/// How processes ended.
struct ProcessEnd {
  std::string failure;       ///< One line that says who failed first and why; empty: all did well.
  bool interrupted = false;  ///< By SIGINT or SIGTERM of this process.
};

/// Starts all and waits for them. `heard` gets every line that one of them writes to its standard
/// output, but for those that begin with "warning: ", which this process prints on its standard
/// error, and with "failed: " or "lost: ", with which a process says why it
/// is going to end: by its own fault, or because it has lost another. When one fails, all others
/// are killed, and so they are when this process is told to end; none outlives this process. Where
/// several fail at once, the failure is of one that did not just lose another. Throws Error when a
/// program cannot be started.
ProcessEnd watch_processes(const std::vector<ProcessStart>& starts,
                           const std::function<void(std::size_t, const std::string&)>& heard);

}  // namespace braid
