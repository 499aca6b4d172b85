#pragma once

#include <memory>
#include <vector>

#include "braid/kernels/chip_kernels.h"
#include "braid/serve/engine.h"
#include "braid/serve/layout.h"
#include "braid/serve/number_formats.h"
#include "braid/serve/served_model.h"
#include "braid/serve/speculation.h"
#include "braid/system/collective.h"
#include "braid/system/system.h"

namespace braid {

/// What one step of an engine computes on one attention rank.
struct StepShape {
  double sequences = 0;      ///< That decode, a token each.
  double context = 0;        ///< Mean tokens of these in the cache.
  double prompts = 0;        ///< With new tokens.
  double prompt_tokens = 0;  ///< New tokens of each of them.
  double past = 0;           ///< Tokens of each that earlier steps computed.
  double drafted = 0;        ///< Tokens more that each decoding sequence has in this step.

  /// New tokens of the decoding sequences.
  double decoded_tokens() const { return sequences * (1 + drafted); }
};

/// Where a step's time goes, in seconds, all layers together; kernels as they were measured alone.
struct StepParts {
  double projections = 0;  ///< GEMMs of attention, states, dense networks, routers, the head.
  double attention = 0;    ///< Cores of attention, states.
  double experts = 0;
  double collectives = 0;
  double pointwise = 0;  ///< Norms, rotations, activations: bytes over the memory's bandwidth.
  double kernels() const { return projections + attention + experts + collectives + pointwise; }
  void add(const StepParts& other, double times);
};

/// What a worker is: a model in a format on the devices of a system, run by an engine.
struct Worker {
  const ServedModel* model = nullptr;
  const Engine* engine = nullptr;
  const System* system = nullptr;        ///< Homogeneous.
  const ChipKernels* kernels = nullptr;  ///< Of its chip.
  ServingFormat format;
  ServingLayout layout;
  const DraftModel* draft = nullptr;  ///< nullptr: every step makes one token.
};

/// The draft model of a worker that has one, as a worker: alone on the ranks of its tensor
/// parallelism.
Worker draft_worker(const Worker& worker);

class StepKernels;

/// Times of an engine's steps, from closed forms of the chip's kernels (kernels/) and the engine's
/// figures. Of pipelines, a step is what one micro-batch takes through all stages.
///
/// With a draft model, a round is K steps of it and one of the target with all drafted tokens.
/// Where sequences decode, parts and times are those of a round over the tokens that it makes;
/// prompts pass both models. The engine's time of a step is paid once a round, that of layers by
/// every step.
///
///     StepModel step(worker);
///     double tpot_s = step.time({64, 1536}).
class StepModel {
 public:
  /// Keeps references into `worker`. Throws Error where the chip lacks a format or its kernels were
  /// not measured, and for layouts that do not divide the model.
  explicit StepModel(const Worker& worker);
  ~StepModel();
  StepModel(StepModel&&) noexcept;
  StepModel& operator=(StepModel&&) noexcept;
  StepModel(const StepModel&) = delete;
  StepModel& operator=(const StepModel&) = delete;

  /// Cost: some ten forms for each kind of layer, 10 to 40 us.
  StepParts parts(const StepShape& shape) const;
  /// With the engine's figures; those of a step with prompts where there are any.
  double time(const StepShape& shape) const { return time(parts(shape), shape, figures()); }
  double time(const StepParts& parts, const StepShape& shape, const EngineFigures& figures) const;

  const Worker& worker() const;
  const EngineFigures& figures() const { return worker().engine->figures; }

  /// One collective among `devices` of the worker, which must have more than one; bytes as in
  /// system/collective.h.
  double collective_s(Collective collective, double devices, double bytes) const;

  /// Tokens that one step makes of each decoding sequence: 1 without drafts.
  double step_tokens() const;

 private:
  StepParts step_parts(const StepKernels& kernels, const StepShape& shape) const;
  StepParts round_parts(const StepShape& shape) const;

  std::unique_ptr<StepKernels> kernels_;
  std::unique_ptr<StepKernels> draft_;  ///< nullptr: none.
};

}  // namespace braid
