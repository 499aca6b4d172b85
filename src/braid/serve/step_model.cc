#include "braid/serve/step_model.h"

#include "braid/serve/step_kernels.h"

namespace braid {

void StepParts::add(const StepParts& other, double times) {
  projections += times * other.projections;
  attention += times * other.attention;
  experts += times * other.experts;
  collectives += times * other.collectives;
  pointwise += times * other.pointwise;
}

Worker draft_worker(const Worker& worker) {
  Worker draft = worker;
  draft.model = worker.draft->model;
  draft.format = worker.draft->format;
  draft.layout = {worker.layout.tp, 1, 1, worker.layout.tp, 1, 1};
  draft.draft = nullptr;
  return draft;
}

StepModel::StepModel(const Worker& worker) : kernels_(std::make_unique<StepKernels>(worker)) {
  if (worker.draft != nullptr) draft_ = std::make_unique<StepKernels>(draft_worker(worker));
}
StepModel::~StepModel() = default;
StepModel::StepModel(StepModel&&) noexcept = default;
StepModel& StepModel::operator=(StepModel&&) noexcept = default;

const Worker& StepModel::worker() const { return kernels_->worker; }

double StepModel::collective_s(Collective collective, double devices, double bytes) const {
  return kernels_->group_time(collective, devices, bytes);
}

double StepModel::step_tokens() const {
  return draft_ ? expected_tokens(worker().draft->speculation) : 1;
}

StepParts StepModel::step_parts(const StepKernels& kernels, const StepShape& shape) const {
  const double tokens = shape.decoded_tokens() + shape.prompts * shape.prompt_tokens;
  StepParts all;
  for (const ServedLayer& layer : kernels.worker.model->layers) {
    StepParts one;
    kernels.add_layer(layer, shape, tokens, one);
    all.add(one, static_cast<double>(layer.count));
  }
  kernels.add_ends(shape, tokens, all);
  return all;
}

StepParts StepModel::round_parts(const StepShape& shape) const {
  const Speculation& speculation = worker().draft->speculation;
  StepShape judged = shape;
  judged.drafted = drafted_tokens(speculation);
  StepParts round;
  round.add(step_parts(*kernels_, judged), 1 / step_tokens());
  for (std::int64_t k = 0; k < speculation.draft_tokens; ++k) {
    StepShape drafts = shape;
    drafts.drafted = draft_step_tokens(speculation, k) - 1;
    round.add(step_parts(*draft_, drafts), 1 / step_tokens());
  }
  return round;
}

StepParts StepModel::parts(const StepShape& shape) const {
  if (!draft_) return step_parts(*kernels_, shape);
  if (shape.prompts == 0) return round_parts(shape);
  StepParts both = step_parts(*kernels_, shape);
  both.add(step_parts(*draft_, shape), 1);
  return both;
}

double StepModel::time(const StepParts& parts, const StepShape& shape,
                       const EngineFigures& figures) const {
  if (shape.prompts > 0) return parts.kernels() * figures.prefill_slow + figures.prefill_step_s;
  auto layers = static_cast<double>(worker().model->layer_count());
  if (draft_) {
    const DraftModel& draft = *worker().draft;
    layers += static_cast<double>(draft.speculation.draft_tokens) *
              static_cast<double>(draft.model->layer_count());
  }
  return (parts.projections + parts.pointwise) * figures.gemm_slow +
         parts.attention * figures.attention_slow + parts.experts * figures.expert_slow +
         parts.collectives * figures.collective_slow +
         (layers * figures.layer_s + figures.step_s) / step_tokens();
}

}  // namespace braid
