#include "braid/serve/worker_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace braid {
namespace {

StepParts between(const StepParts& a, const StepParts& b, double share) {
  const auto mix = [share](double from, double to) { return from + share * (to - from); };
  return {mix(a.projections, b.projections), mix(a.attention, b.attention),
          mix(a.experts, b.experts), mix(a.collectives, b.collectives),
          mix(a.pointwise, b.pointwise)};
}

}  // namespace

PromptTokens RequestShape::prompt() const {
  const double added = std::max(1.0, input_tokens * (1 - cached_share));
  return {added, std::max(0.0, input_tokens - added)};
}
double RequestShape::outputs() const { return std::max(1.0, output_tokens); }
double RequestShape::context() const { return input_tokens + outputs() / 2; }

std::vector<CountedStep> prompt_steps(const StepModel& step, const PromptTokens& tokens,
                                      double prompts, double chunk_tokens) {
  const double added = tokens.added, cached = tokens.cached;
  const auto counted = [&](double count, const StepShape& shape) {
    return CountedStep{count, shape, step.parts(shape)};
  };
  if (added * prompts <= chunk_tokens) {
    return {counted(1, {0, 0, prompts, added, cached})};
  }
  if (added <= chunk_tokens) {
    // As many steps as hold them, whole prompts in each.
    const double at_once = std::max(1.0, std::floor(chunk_tokens / added));
    return {counted(prompts / at_once, {0, 0, at_once, added, cached})};
  }
  // Of long prompts all chunks but the last are full. The mean of the first and the last full one
  // stands for those between.
  const double whole = std::floor(added / chunk_tokens);
  const double rest = added - whole * chunk_tokens;
  const double between = std::max(whole - 2, 0.0) / 2;
  std::vector<CountedStep> steps;
  steps.push_back(counted(prompts * (1 + between), {0, 0, 1, chunk_tokens, cached}));
  if (whole > 1) {
    steps.push_back(counted(prompts * (1 + between),
                            {0, 0, 1, chunk_tokens, cached + (whole - 1) * chunk_tokens}));
  }
  if (rest > 0) steps.push_back(counted(prompts, {0, 0, 1, rest, cached + whole * chunk_tokens}));
  return steps;
}

std::vector<double> batch_sizes(double most) {
  std::vector<double> sizes;
  for (int power = 0; std::ldexp(1.0, power) <= most; ++power) {
    const double size = std::ldexp(1.0, power);
    sizes.push_back(size);
    if (power > 0 && size * 1.5 <= most) sizes.push_back(size * 1.5);
  }
  return sizes;
}

WorkerSteps::WorkerSteps(const StepModel* step, const RequestShape& requests,
                         const BatchLimits& limits)
    : step_(step), requests_(requests), limits_(limits) {
  const ServingLayout& layout = step->worker().layout;
  const double most = limits.sequences / static_cast<double>(layout.dp * layout.pp);
  batches_ = batch_sizes(std::max(most, 1.0));
  if (batches_.back() < most) batches_.push_back(most);
  decodes_.reserve(batches_.size());
  for (const double batch : batches_) {
    decodes_.push_back(step->parts({batch, requests.context(), 0, 0, 0}));
  }
  ask_prompts();
}

void WorkerSteps::ask_prompts() {
  const auto dp = static_cast<double>(step_->worker().layout.dp);
  const PromptTokens prompt = requests_.prompt();
  const double chunk = limits_.chunk_tokens;
  most_side_ =
      std::clamp(std::floor(chunk / prompt.added), 1.0, std::max(1.0, limits_.sequences / dp));
  alone_ = prompt_steps(*step_, prompt, 1, chunk);
  full_ = most_side_ > 1 ? prompt_steps(*step_, prompt, most_side_, chunk) : alone_;
}

WorkerSteps WorkerSteps::with_chunk(double chunk_tokens) const {
  WorkerSteps other = *this;
  other.limits_.chunk_tokens = chunk_tokens;
  other.ask_prompts();
  return other;
}

double WorkerSteps::decode_s(double sequences, const EngineFigures& figures) const {
  const ServingLayout& layout = step_->worker().layout;
  const double own =
      std::clamp(sequences / static_cast<double>(layout.dp * layout.pp), 1.0, batches_.back());
  const auto above = std::lower_bound(batches_.begin(), batches_.end(), own);
  const auto at = static_cast<std::size_t>(above - batches_.begin());
  const StepShape shape{own, requests_.context(), 0, 0, 0};
  if (at == 0) return step_->time(decodes_.front(), shape, figures);
  const double share = (own - batches_[at - 1]) / (batches_[at] - batches_[at - 1]);
  return step_->time(between(decodes_[at - 1], decodes_[at], share), shape, figures);
}

double WorkerSteps::prompts_s(double side, const EngineFigures& figures) const {
  const double alone_s = time_of(alone_, figures);
  if (side <= 1 || most_side_ <= 1) return alone_s;
  const double share = std::min((side - 1) / (most_side_ - 1), 1.0);
  return alone_s + share * (time_of(full_, figures) - alone_s);
}

double WorkerSteps::time_of(const std::vector<CountedStep>& steps,
                            const EngineFigures& figures) const {
  double time_s = 0;
  for (const CountedStep& one : steps) {
    time_s += one.count * step_->time(one.parts, one.shape, figures);
  }
  return time_s;
}

}  // namespace braid
