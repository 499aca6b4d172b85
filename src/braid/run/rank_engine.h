#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "braid/run/instructions.h"
#include "braid/run/rank_link.h"
#include "braid/run/stage_math.h"

namespace braid {

/// When an instruction began and ended, in seconds since the iteration's start.
struct InstructionTime {
  double start_s = 0, end_s = 0;
};

/// What a rank saw of an iteration.
struct RankIteration {
  double loss = 0;                     ///< Over the whole batch; the same on all ranks.
  double start_s = 0, end_s = 0;       ///< By the machine's clock, the same for all its processes.
  std::vector<InstructionTime> times;  ///< [instruction]
};

/// Carries out one rank's instructions, iteration after iteration.
class RankEngine {
 public:
  /// All outlive it. Throws Error when an iteration has more messages than tags can tell apart.
  RankEngine(std::int32_t rank, const StagedModel& staged, std::span<const ParameterGroup> groups,
             std::span<const Instruction> instructions, StageMath& math, RankLink& link);

  /// Throws what the math and the link throw.
  RankIteration run_iteration(std::int64_t iteration);
  /// Makes all parameters whole, so that StageMath::piece() has them. All ranks call it.
  void gather_all();

 private:
  /// Handover, whether gradients, first sample, the sender's number in its replica.
  using BlockKey = std::tuple<std::int32_t, bool, std::int64_t, int>;
  using Block = std::vector<TensorHandle>;  ///< By the handover's values; null: none of its rows.

  void carry_out(const Instruction& instruction);
  void receive(const Instruction& of);
  void send(const Instruction& of);
  void forward(const Instruction& of);
  void backward(const Instruction& of, PassHalf half);
  void reduce(std::size_t group);
  void step(std::size_t group);
  void gather(std::size_t group);
  /// Takes what was received of each value for a pass: joined by rows and samples, summed over
  /// handovers.
  std::vector<TensorHandle> assembled(const Instruction& pass, bool gradients);
  /// What was received of each value over one handover.
  std::vector<TensorHandle> joined(const Instruction& pass, bool gradients, std::size_t handover);
  PassOf pass_of(const Instruction& of) const;
  std::int64_t first_sample(const Instruction& of) const;
  std::int32_t tag_of(const Instruction& of, std::size_t value) const;

  std::int32_t rank_;
  const StagedModel& staged_;
  std::span<const ParameterGroup> groups_;
  std::span<const Instruction> instructions_;
  StageMath& math_;
  RankLink& link_;
  std::int64_t iteration_ = 0;
  std::int64_t most_values_ = 1;  ///< Of a handover.
  std::map<BlockKey, Block> received_;
  std::vector<TensorHandle> made_;               ///< By the last pass, to be sent.
  std::map<std::size_t, TensorHandle> reduced_;  ///< By group.
};

}  // namespace braid
