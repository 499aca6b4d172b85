#include "braid/plan/pass_runs.h"

#include <algorithm>

#include <fmt/format.h>

namespace braid {

void append_passes(std::vector<PassRun>& runs, std::int64_t forwards, std::int64_t backwards) {
  if (!runs.empty() && runs.back().forwards == forwards && runs.back().backwards == backwards) {
    ++runs.back().times;
  } else {
    runs.push_back({forwards, backwards, 1});
  }
}

std::string passes_fault(std::span<const PassRun> runs, std::int64_t micro_batches) {
  std::int64_t forwards = 0, backwards = 0;
  for (const PassRun& run : runs) {
    if (std::min({run.forwards, run.backwards, run.times}) < 1) {
      return "has a run of passes with a count below 1";
    }
    // Divided, so that no count overflows.
    if (run.forwards > (micro_batches - forwards) / run.times) {
      return fmt::format("runs more than {} forward passes, its micro-batches", micro_batches);
    }
    // Where backward passes are more than forward ones, some repetition may be one too many.
    const std::int64_t ahead = forwards - backwards;
    const std::int64_t excess = run.backwards - run.forwards;
    if (excess > 0 && excess > ahead / run.times) {
      return fmt::format("runs the backward pass of micro-batch {} before its forward pass",
                         forwards + (ahead / excess + 1) * run.forwards);
    }
    forwards += run.times * run.forwards;
    backwards += run.times * run.backwards;
  }
  if (forwards < micro_batches || backwards < micro_batches) {
    return fmt::format("runs {} forward and {} backward passes, not {} each, its micro-batches",
                       forwards, backwards, micro_batches);
  }
  return "";
}

std::int64_t most_in_flight(std::span<const PassRun> runs) {
  std::int64_t ahead = 0, most = 0;
  for (const PassRun& run : runs) {
    const std::int64_t gain = run.forwards - run.backwards;
    most = std::max(most, ahead + run.forwards + std::max<std::int64_t>(0, gain) * (run.times - 1));
    ahead += gain * run.times;
  }
  return most;
}

std::string passes_text(std::span<const PassRun> runs) {
  constexpr std::size_t kMost = 6;
  std::string text;
  for (std::size_t i = 0; i < runs.size() && i < kMost; ++i) {
    const PassRun& run = runs[i];
    text += i == 0 ? "" : ", ";
    if (run.times > 1) text += fmt::format("{} x ", run.times);
    text += fmt::format("{}F {}B", run.forwards, run.backwards);
  }
  if (runs.size() > kMost) text += ", …";
  return text;
}

}  // namespace braid
