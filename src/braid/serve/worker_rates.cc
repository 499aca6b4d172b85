#include "braid/serve/worker_rates.h"

#include <cassert>

#include "braid/serve/disaggregated.h"

namespace braid {
namespace {

/// What a prompt takes beside its steps and its wait.
double fixed_s(const WorkerSteps& steps) {
  const EngineFigures& figures = steps.step().figures();
  return figures.request_s + figures.handover_s +
         cache_transfer_s(steps.step().worker(), steps.requests().input_tokens);
}

/// A prefill worker's steps with as many prompts as they take.
struct FullSteps {
  double step_s = 0;
  double prompts = 0;  ///< In one step of each group and stage of it.
};

FullSteps full_steps(const WorkerSteps& steps) {
  const ServingLayout& layout = steps.step().worker().layout;
  const double together = steps.most_side();
  return {steps.prompts_s(together, steps.step().figures()),
          together * static_cast<double>(layout.dp * layout.pp)};
}

}  // namespace

ServingTimes batch_times(const WorkerSteps& steps, double batch, const TimeFactors& factors) {
  return corrected(steady_state(steps, steps.step().figures(), {batch}), factors);
}

double prompt_alone_s(const WorkerSteps& steps, const TimeFactors& factors) {
  return factors.ttft * (fixed_s(steps) + steps.prompts_s(1, steps.step().figures()));
}

double prompts_rate(const WorkerSteps& steps, double ttft_s, const TimeFactors& factors) {
  const FullSteps full = full_steps(steps);
  const double slack_s = ttft_s / factors.ttft - fixed_s(steps) - full.step_s;
  if (slack_s < 0) return 0;
  // busy / (2 (1 - busy)) step = slack
  const double busy = 2 * slack_s / (2 * slack_s + full.step_s);
  return busy * full.prompts / full.step_s;
}

double prompts_ttft_s(const WorkerSteps& steps, double rate, const TimeFactors& factors) {
  const FullSteps full = full_steps(steps);
  const double busy = rate * full.step_s / full.prompts;
  assert(busy < 1);
  const double wait_s = busy / (2 * (1 - busy)) * full.step_s;
  return factors.ttft * (fixed_s(steps) + full.step_s + wait_s);
}

ServingFormat draft_format(const ServedModel& draft, const std::string& precision) {
  for (const ServingFormat& format : serving_formats(draft)) {
    if (format.name == precision) return format;
  }
  return serving_format(draft, "bf16");
}

}  // namespace braid
