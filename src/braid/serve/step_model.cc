#include "braid/serve/step_model.h"

#include "braid/serve/step_kernels.h"

namespace braid {

StepModel::StepModel(const Worker& worker) : kernels_(std::make_unique<StepKernels>(worker)) {}
StepModel::~StepModel() = default;
StepModel::StepModel(StepModel&&) noexcept = default;
StepModel& StepModel::operator=(StepModel&&) noexcept = default;

const Worker& StepModel::worker() const { return kernels_->worker; }

StepParts StepModel::parts(const StepShape& shape) const {
  const double tokens = shape.sequences + shape.prompts * shape.prompt_tokens;
  StepParts all;
  for (const ServedLayer& layer : worker().model->layers) {
    StepParts one;
    kernels_->add_layer(layer, shape, tokens, one);
    const auto count = static_cast<double>(layer.count);
    all.projections += count * one.projections;
    all.attention += count * one.attention;
    all.experts += count * one.experts;
    all.collectives += count * one.collectives;
    all.pointwise += count * one.pointwise;
  }
  kernels_->add_ends(shape, tokens, all);
  return all;
}

double StepModel::time(const StepParts& parts, const StepShape& shape,
                       const EngineFigures& figures) const {
  if (shape.prompts > 0) return parts.kernels() * figures.prefill_slow + figures.prefill_step_s;
  const auto layers = static_cast<double>(worker().model->layer_count());
  return (parts.projections + parts.pointwise) * figures.gemm_slow +
         parts.attention * figures.attention_slow + parts.experts * figures.expert_slow +
         parts.collectives * figures.collective_slow + layers * figures.layer_s + figures.step_s;
}

}  // namespace braid
