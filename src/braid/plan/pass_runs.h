#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace braid {

/// A part of a stage's order of passes: so many forward and then so many backward passes, all that
/// so many times. Every order of a stage whose passes of a kind run in turn is a list of such runs,
/// each count at least 1: it begins with a forward and ends with a backward pass.
struct PassRun {
  std::int64_t forwards = 1, backwards = 1, times = 1;
  friend bool operator==(const PassRun&, const PassRun&) = default;
};

/// Appends so many forward and then backward passes, joined to the last run where they are as many.
void append_passes(std::vector<PassRun>& runs, std::int64_t forwards, std::int64_t backwards);

/// Why the runs are no order of so many micro-batches, as the end of "stage 2 …": counts below 1,
/// passes missing or too many, a backward before its forward pass. Empty when they are one. Cost:
/// linear in runs, whatever their counts.
std::string passes_fault(std::span<const PassRun> runs, std::int64_t micro_batches);

/// Most micro-batches between the start of their forward and the end of their backward pass, of
/// runs without fault. Cost: linear in runs.
std::int64_t most_in_flight(std::span<const PassRun> runs);

/// For people: "3F 1B, 11 x 1F 1B, 1F 3B"; of many runs the first.
std::string passes_text(std::span<const PassRun> runs);

}  // namespace braid
