#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace braid {

/// What a child process wrote, or why it wrote nothing that counts.
struct ChildAnswer {
  std::string text;
  std::string problem;  ///< "crashed (signal 11)", "ran for more than 10 s"; empty where it ended.
};

/// Runs `work` in a copy of this process (fork) and returns the text that it gives. What `work`
/// does to the memory of this process, and whether it crashes or hangs, stays in the copy: after
/// `limit_s` it is killed. Exceptions in `work` are a problem with their text.
///
/// The copy has the calling thread alone: libraries that keep threads of their own must not have
/// started them here. Throws Error where the system gives no process.
ChildAnswer run_in_child(const std::function<std::string()>& work, double limit_s);

/// The same for several at once, each in a copy of its own; all are killed `limit_s` after the last
/// was started. In the order of `works`.
std::vector<ChildAnswer> run_in_children(std::span<const std::function<std::string()>> works,
                                         double limit_s);

}  // namespace braid
