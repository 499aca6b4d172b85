#pragma once

#include <vector>

#include "braid/serve/step_model.h"

namespace braid {

/// New tokens of a step at most, and sequences that a worker runs at once at most.
struct BatchLimits {
  double chunk_tokens = 8192;
  double sequences = 256;
};

/// What a step computes of a prompt, and what it only attends to.
struct PromptTokens {
  double added = 0;   ///< New ones.
  double cached = 0;  ///< That a prefix cache has.
};

/// Requests alike.
struct RequestShape {
  double input_tokens = 0, output_tokens = 0;
  double cached_share = 0;  ///< Of the input, what a prefix cache has already.

  PromptTokens prompt() const;  ///< At least one new token.
  double outputs() const;       ///< At least one.
  double context() const;       ///< Mean tokens in the cache while it decodes.
};

/// So many steps of one shape.
struct CountedStep {
  double count = 1;
  StepShape shape;
  StepParts parts;
};

/// The steps of `prompts` prompts side by side on each attention rank. Prompts longer than a chunk
/// take several steps; shorter ones share one.
std::vector<CountedStep> prompt_steps(const StepModel& step, const PromptTokens& tokens,
                                      double prompts, double chunk_tokens);

/// What the steps of one worker take that serves requests alike, kept apart from the engine's
/// figures: all kernels are asked once, at batches 1, 2, 3, 4, 6, 8, 12 … of an attention rank, and
/// times between these are interpolated.
///
///     WorkerSteps steps(&step, {4096, 512}, {8192, 256});
///     double tpot_s = steps.decode_s(64, figures);
class WorkerSteps {
 public:
  /// Keeps `step`. Batches are asked up to what `limits` lets an attention rank
  /// have. Throws as StepModel does.
  WorkerSteps(const StepModel* step, const RequestShape& requests, const BatchLimits& limits);

  /// The same with another chunk: decoding is not asked again.
  WorkerSteps with_chunk(double chunk_tokens) const;

  const StepModel& step() const { return *step_; }
  const RequestShape& requests() const { return requests_; }
  const BatchLimits& limits() const { return limits_; }

  /// Of a step of `sequences` of the worker, at most as many as the limits'; all attention ranks
  /// and stages have alike many. Cost: tens of ns.
  double decode_s(double sequences, const EngineFigures& figures) const;
  /// Of the steps of `side` prompts on each attention rank, up to most_side().
  double prompts_s(double side, const EngineFigures& figures) const;
  /// Prompts of an attention rank that share a step at most.
  double most_side() const { return most_side_; }

 private:
  void ask_prompts();
  double time_of(const std::vector<CountedStep>& steps, const EngineFigures& figures) const;

  const StepModel* step_ = nullptr;
  RequestShape requests_;
  BatchLimits limits_;
  double most_side_ = 1;
  std::vector<double> batches_;     ///< Of an attention rank.
  std::vector<StepParts> decodes_;  ///< By batch.
  std::vector<CountedStep> alone_, full_;
};

/// 1, 2, 3, 4, 6, 8, 12 … up to `most`.
std::vector<double> batch_sizes(double most);

}  // namespace braid
