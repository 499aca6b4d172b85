#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "braid/run/parameter_groups.h"
#include "braid/run/staged_model.h"

namespace braid {

enum class InstructionKind : std::uint8_t {
  receive,
  forward,
  backward,         ///< Gradients of inputs and of weights in one go.
  input_gradient,   ///< The first half of a backward pass, …
  weight_gradient,  ///< … and the second.
  send,
  gather,   ///< Bring a group's parameters together before a pass (ZeRO-3), …
  release,  ///< … and keep this rank's part alone after it.
  reduce,   ///< Sum a group's gradients.
  step,     ///< Update a group's parameters.
};

/// Something that a rank does. Plain values: what ranks do can be looked at, counted and tried
/// (dry_run.h) without computing anything.
struct Instruction {
  InstructionKind kind = InstructionKind::forward;
  std::int32_t part = -1;         ///< Whose pass it is; of a send or receive, on this rank.
  std::int64_t micro_batch = -1;  ///< Of the part's replica on this rank.
  // Of a send or receive: samples that cross one edge. A peer may be the rank itself.
  std::int32_t peer = -1, handover = -1;
  bool gradient = false;
  std::int64_t first_sample = 0, samples = 0;
  std::int32_t group = -1;  ///< Of what is done to a group.
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// What each rank does in an iteration, in this order. A rank receives right before the pass that
/// needs it and sends right after the pass that made it: sends do not block, receives do. Passes
/// follow the order; reductions and steps come last, the groups in turn. Linear in passes and in
/// what crosses edges.
std::vector<std::vector<Instruction>> instructions_of(const StagedModel& staged,
                                                      const WorkOrder& order,
                                                      std::span<const ParameterGroup> groups);

/// Rows of one value that a message of `rank` has; none where the peer has no use of it.
Interval rows_of_message(const StagedModel& staged, std::int32_t rank, const Instruction& message,
                         ValueId value);

/// "rank 2 receives samples 4 to 7 from rank 0".
std::string describe(std::int32_t rank, const Instruction& instruction);

}  // namespace braid
