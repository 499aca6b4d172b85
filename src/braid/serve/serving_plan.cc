#include "braid/serve/serving_plan.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>

#include "braid/base/error.h"
#include "braid/base/pareto_front.h"
#include "braid/base/rounding.h"
#include "braid/serve/cache_split.h"
#include "braid/serve/worker_memory.h"
#include "braid/serve/worker_rates.h"

namespace braid {
namespace {

/// Whether `ranks` have whole heads of a layer each.
bool divides_heads(const ServedLayer& layer, std::int64_t ranks) {
  const auto whole = [&](double size) {
    return size == 0 || std::fmod(size, static_cast<double>(ranks)) == 0;
  };
  return whole(layer.heads) && whole(layer.state_heads);
}

/// One engine, format and layout, with what its steps take by chunk.
struct ServingOption {
  const Engine* engine = nullptr;
  ServingFormat format;
  ServingLayout layout;
  std::unique_ptr<DraftModel> draft;  ///< nullptr: none.
  std::unique_ptr<StepModel> step;
  std::vector<WorkerSteps> by_default;  ///< One: of the engine's own chunk.
  std::array<std::vector<WorkerSteps>, kChunkSizes.size()>
      chunks;                                     ///< One or, not yet asked, none.
  TimeFactors aggregated, disaggregated;          ///< Corrections of its times.
  std::array<double, kChunkSizes.size()> held{};  ///< Sequences, by chunk.
  std::vector<double> batches;
  std::vector<double> decode_s;  ///< Not corrected.
  double devices() const { return static_cast<double>(layout.devices()); }
  std::int64_t draft_tokens() const { return draft ? draft->speculation.draft_tokens : 0; }
  WorkerPlan plan(std::int64_t workers, const BatchLimits& limits) const {
    return {engine, format, layout, workers, limits, draft_tokens()};
  }
};

/// What became of a format of the job.
struct FormatSearch {
  const ServingFormat* format = nullptr;
  bool served = false;     ///< Some worker has it.
  std::string lacks = {};  ///< As UnservedFormat::lacks.
  double missing_bytes = std::numeric_limits<double>::infinity();
};

/// One batch of one option.
struct BatchChoice {
  ServingOption* option = nullptr;
  std::size_t batch = 0;
  double bound = 0;  ///< Requests a second and device at most.
};

/// A kind of worker for one half of a disaggregated service.
struct HalfChoice {
  const ServingOption* option = nullptr;
  double rate = 0;  ///< Requests a second of one worker.
  BatchLimits limits;
  double time_s = 0;  ///< TTFT or TPOT.
};

class ServingSearch {
 public:
  explicit ServingSearch(const ServingJob& job) : job_(job) {}
  ServingOutcome run();

 private:
  void add_options();
  void add_layouts(const Engine* engine, FormatSearch& of, ServingLayout layout);
  void add_option(const Engine* engine, FormatSearch& of, const ServingLayout& layout,
                  std::int64_t draft_tokens);
  std::string lacks_of(const ServingFormat& format) const;
  void say_unserved(const std::vector<FormatSearch>& formats);
  std::vector<std::int64_t> draft_choices(const ServingLayout& layout) const;
  void search_aggregated();
  void try_aggregated(const BatchChoice& choice);
  bool may_hold(const ServingOption& option, const WorkerSteps& steps, double batch) const;
  void search_disaggregated();
  HalfChoice prompts_of(ServingOption& option);
  HalfChoice decoding_of(const ServingOption& option) const;
  void join(const HalfChoice& prefill, const HalfChoice& decode);
  void consider(ServingPlan plan);
  void predict_ttft();
  void add_front();
  static const WorkerSteps& steps_of(ServingOption& option, std::size_t chunk);
  ServingTimes times(const ServingOption& option, const WorkerSteps& steps, double batch);

  const ServingJob& job_;
  std::vector<std::unique_ptr<ServingOption>> options_;
  ServingOutcome outcome_;
};

const WorkerSteps& ServingSearch::steps_of(ServingOption& option, std::size_t chunk) {
  std::vector<WorkerSteps>& steps = option.chunks[chunk];
  if (steps.empty()) {
    const WorkerSteps& own = option.by_default.front();
    steps.push_back(
        own.limits().chunk_tokens == kChunkSizes[chunk] ? own : own.with_chunk(kChunkSizes[chunk]));
  }
  return steps.front();
}

ServingTimes ServingSearch::times(const ServingOption& option, const WorkerSteps& steps,
                                  double batch) {
  outcome_.evaluated += kMostSteadySteps;
  return batch_times(steps, batch, option.aggregated);
}

/// How many tokens workers of a layout may draft.
std::vector<std::int64_t> ServingSearch::draft_choices(const ServingLayout& layout) const {
  if (job_.draft.model == nullptr) return {0};
  const std::vector<ServedLayer>& layers = job_.draft.model->layers;
  const bool may = layout.pp == 1 && layout.dp == 1 && layout.cp == 1 &&
                   std::all_of(layers.begin(), layers.end(), [&](const ServedLayer& layer) {
                     return divides_heads(layer, layout.tp);
                   });
  if (job_.draft.draft_tokens > 0) {
    return may ? std::vector<std::int64_t>{job_.draft.draft_tokens} : std::vector<std::int64_t>();
  }
  std::vector<std::int64_t> choices = {0};
  for (std::int64_t k = 1; may && k <= kMostDraftTokens; ++k) choices.push_back(k);
  return choices;
}

void ServingSearch::add_layouts(const Engine* engine, FormatSearch& of, ServingLayout layout) {
  if (layout.dp > 1 && layout.tp > 1 && !engine->groups_divide_heads) return;
  for (const std::int64_t cp : cache_splits(*job_.model, *engine, layout.tp)) {
    layout.cp = cp;
    for (const std::int64_t k : draft_choices(layout)) add_option(engine, of, layout, k);
  }
}

void ServingSearch::add_option(const Engine* engine, FormatSearch& of, const ServingLayout& layout,
                               std::int64_t draft_tokens) {
  const ServingFormat& format = *of.format;
  auto option = std::make_unique<ServingOption>();
  if (draft_tokens > 0) {
    option->draft =
        std::make_unique<DraftModel>(DraftModel{job_.draft.model,
                                                draft_format(*job_.draft.model, format.name),
                                                {job_.draft.acceptance, draft_tokens, 1}});
  }
  const Worker worker{job_.model, engine, job_.system,        job_.kernels,
                      format,     layout, option->draft.get()};
  const double kept = kept_tokens(*engine, job_.input_tokens, job_.output_tokens);
  const auto held_with = [&](double chunk) {
    return held_sequences(worker, worker_memory(worker, chunk), kept);
  };
  const double held = held_with(engine->chunk_tokens);
  if (held < 1) {
    const WorkerMemory memory = worker_memory(worker, engine->chunk_tokens);
    of.missing_bytes = std::min(of.missing_bytes,
                                memory.of_sequence(kept, engine->block_tokens) - memory.room_bytes);
    return;
  }
  for (std::size_t chunk = 0; chunk < kChunkSizes.size(); ++chunk) {
    option->held[chunk] = std::min(held, held_with(kChunkSizes[chunk]));
  }
  option->engine = engine;
  option->format = format;
  option->layout = layout;
  try {
    option->step = std::make_unique<StepModel>(worker);
  } catch (const Error& error) {
    of.lacks = error.what();
    return;
  }
  of.served = true;

  option->by_default.emplace_back(
      option->step.get(), RequestShape{job_.input_tokens, job_.output_tokens, job_.cached_share},
      BatchLimits{engine->chunk_tokens, held});
  const WorkerSteps& steps = option->by_default.front();
  option->batches = batch_sizes(held);
  for (const double batch : option->batches) {
    option->decode_s.push_back(steps.decode_s(batch, engine->figures));
    ++outcome_.evaluated;
  }
  option->aggregated = factors_of(engine->corrections, corrected_runs_of(worker, false));
  option->disaggregated = factors_of(engine->corrections, corrected_runs_of(worker, true));
  const double prompt_s = engine->figures.request_s + steps.prompts_s(1, engine->figures);
  for (const bool apart : {false, true}) {
    if (apart ? !job_.disaggregated : !job_.aggregated) continue;
    const TimeFactors& factors = apart ? option->disaggregated : option->aggregated;
    outcome_.least_tpot_s =
        std::min(outcome_.least_tpot_s, factors.tpot * option->decode_s.front());
    outcome_.least_ttft_s = std::min(outcome_.least_ttft_s, factors.ttft * prompt_s);
  }
  options_.push_back(std::move(option));
}

void ServingSearch::add_options() {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  outcome_.least_tpot_s = outcome_.least_ttft_s = kNone;
  const std::vector<ServingLayout> layouts = serving_layouts(*job_.model, *job_.system);
  std::vector<FormatSearch> formats;
  for (const ServingFormat& format : job_.formats) formats.push_back({&format});
  for (const Engine* engine : job_.engines) {
    for (FormatSearch& format : formats) {
      for (const ServingLayout& layout : layouts) add_layouts(engine, format, layout);
    }
  }
  outcome_.options = static_cast<std::int64_t>(options_.size());
  say_unserved(formats);
}

/// The error of the last engine where none has the kernels of a format, whether it fits or not.
std::string ServingSearch::lacks_of(const ServingFormat& format) const {
  std::string lacks;
  for (const Engine* engine : job_.engines) {
    try {
      const StepModel step({job_.model, engine, job_.system, job_.kernels, format, {}});
      return "";
    } catch (const Error& error) {
      lacks = error.what();
    }
  }
  return lacks;
}

void ServingSearch::say_unserved(const std::vector<FormatSearch>& formats) {
  bool any_fails_to_fit = false;
  std::string error;
  for (const FormatSearch& of : formats) {
    if (of.served) continue;
    const std::string own = lacks_of(*of.format);
    const std::string lacks = own.empty() ? of.lacks : own;
    any_fails_to_fit = any_fails_to_fit || lacks.empty();
    if (!lacks.empty()) error = lacks;
    // What the error says to do is not to be done here.
    const double missing_bytes = std::isfinite(of.missing_bytes) ? of.missing_bytes : 0;
    outcome_.unserved.push_back(
        {of.format->name, lacks.substr(0, lacks.find("; ")), lacks.empty() ? missing_bytes : 0});
  }
  if (options_.empty() && !any_fails_to_fit) throw Error(error);
}

void ServingSearch::consider(ServingPlan plan) {
  if (plan.ttft_s > job_.ttft_s || plan.tpot_s > job_.tpot_s) return;
  const auto better = [](const ServingPlan& a, const ServingPlan& b) {
    const double of_a = a.requests_per_s_per_device(), of_b = b.requests_per_s_per_device();
    if (of_a != of_b) return of_a > of_b;
    return a.decode.layout.devices() < b.decode.layout.devices();
  };
  if (!outcome_.plan || better(plan, *outcome_.plan)) outcome_.plan = std::move(plan);
}

/// False where a prompt alone misses one target, or as few sequences as may decode the other.
bool ServingSearch::may_hold(const ServingOption& option, const WorkerSteps& steps,
                             double batch) const {
  const EngineFigures& figures = option.engine->figures;
  const TimeFactors& factors = option.aggregated;
  const double prompt_s = figures.request_s + steps.prompts_s(1, figures);
  const double step_s = steps.decode_s(kLeastDecoding * batch, figures);
  return factors.ttft * prompt_s <= job_.ttft_s && factors.tpot * step_s <= job_.tpot_s;
}

void ServingSearch::try_aggregated(const BatchChoice& choice) {
  ServingOption& option = *choice.option;
  const double batch = option.batches[choice.batch];
  for (std::size_t chunk = 0; chunk < kChunkSizes.size(); ++chunk) {
    if (batch > option.held[chunk]) continue;
    const WorkerSteps& steps = steps_of(option, chunk);
    if (!may_hold(option, steps, batch)) continue;
    const ServingTimes found = times(option, steps, batch);
    ServingPlan plan;
    plan.decode = option.plan(job_.system->device_count / option.layout.devices(),
                              {kChunkSizes[chunk], batch});
    plan.ttft_s = found.ttft_s;
    plan.tpot_s = found.tpot_s;
    plan.devices = plan.decode.workers * option.layout.devices();
    plan.decode.requests_per_s = found.requests_per_s;
    plan.requests_per_s = found.requests_per_s * static_cast<double>(plan.decode.workers);
    consider(std::move(plan));
  }
}

void ServingSearch::search_aggregated() {
  std::vector<BatchChoice> choices;
  for (const auto& option : options_) {
    // While prompts run, fewer than the batch may decode, each step of them shorter: of a batch up
    // to B the most that any number of sequences up to B answers, which is so at a size that was
    // asked, as times between are interpolated.
    double most = 0;
    for (std::size_t i = 0; i < option->batches.size(); ++i) {
      const double decode_s = option->aggregated.tpot * option->decode_s[i];
      most =
          std::max(most, option->batches[i] / (job_.output_tokens * decode_s * option->devices()));
      choices.push_back({option.get(), i, most});
    }
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const BatchChoice& a, const BatchChoice& b) { return a.bound > b.bound; });
  for (const BatchChoice& choice : choices) {
    if (outcome_.plan && choice.bound < outcome_.plan->requests_per_s_per_device()) break;
    if (outcome_.evaluated > job_.budget) {
      outcome_.proven = false;
      return;
    }
    try_aggregated(choice);
  }
}

HalfChoice ServingSearch::prompts_of(ServingOption& option) {
  HalfChoice best;
  for (std::size_t chunk = 0; chunk < kChunkSizes.size(); ++chunk) {
    const double batch = std::min(option.batches.back(), option.held[chunk]);
    if (batch < 1) continue;
    outcome_.evaluated += 3;
    const double rate = prompts_rate(steps_of(option, chunk), job_.ttft_s, option.disaggregated);
    if (rate > best.rate) best = {&option, rate, {kChunkSizes[chunk], batch}, job_.ttft_s};
  }
  return best;
}

HalfChoice ServingSearch::decoding_of(const ServingOption& option) const {
  HalfChoice best;
  for (std::size_t i = 0; i < option.batches.size(); ++i) {
    const double decode_s = option.disaggregated.tpot * option.decode_s[i];
    if (decode_s > job_.tpot_s) continue;
    const double rate = option.batches[i] / (job_.output_tokens * decode_s);
    if (rate > best.rate) {
      best = {&option, rate, {option.engine->chunk_tokens, option.batches[i]}, decode_s};
    }
  }
  return best;
}

void ServingSearch::join(const HalfChoice& prefill, const HalfChoice& decode) {
  const std::int64_t all = job_.system->device_count;
  const std::int64_t of_prefill = prefill.option->layout.devices();
  const std::int64_t of_decode = decode.option->layout.devices();
  for (std::int64_t p = 1; p * of_prefill + of_decode <= all; ++p) {
    // As many as keep up with those, or one more, or all there is room for.
    const double balanced = static_cast<double>(p) * prefill.rate / decode.rate;
    const std::int64_t most = (all - p * of_prefill) / of_decode;
    const auto low = std::clamp<std::int64_t>(static_cast<std::int64_t>(balanced), 1, most);
    for (std::int64_t d = low; d <= std::min(low + 1, most); ++d) {
      ServingPlan plan;
      plan.disaggregated = true;
      plan.prefill = prefill.option->plan(p, prefill.limits);
      plan.decode = decode.option->plan(d, decode.limits);
      plan.prefill.requests_per_s = prefill.rate;
      plan.decode.requests_per_s = decode.rate;
      plan.ttft_s = prefill.time_s;  // At most: predict_ttft() says what it is.
      plan.tpot_s = decode.time_s;
      plan.devices = p * of_prefill + d * of_decode;
      plan.requests_per_s =
          std::min(static_cast<double>(p) * prefill.rate, static_cast<double>(d) * decode.rate);
      consider(std::move(plan));
    }
  }
}

void ServingSearch::search_disaggregated() {
  // Of an engine, format and number of devices only the fastest worker of either kind counts.
  std::map<std::string, std::map<std::int64_t, HalfChoice>> prefills, decodes;
  const auto keep = [](std::map<std::int64_t, HalfChoice>& best, const HalfChoice& choice) {
    if (choice.option == nullptr) return;
    HalfChoice& kept = best[choice.option->layout.devices()];
    if (choice.rate > kept.rate) kept = choice;
  };
  for (const auto& option : options_) {
    if (option->layout.cp > 1 || option->draft) continue;
    const std::string key =
        option->engine->name + ' ' + option->format.name + ' ' + option->format.cache;
    keep(prefills[key], prompts_of(*option));
    keep(decodes[key], decoding_of(*option));
  }
  for (const auto& [key, halves] : prefills) {
    for (const auto& [prefill_devices, prefill] : halves) {
      for (const auto& [decode_devices, decode] : decodes[key]) join(prefill, decode);
    }
  }
}

/// Of a disaggregated plan: what the TTFT is at the rate of the whole service, which its decode
/// workers may hold below what the prefill workers could take within the target.
void ServingSearch::predict_ttft() {
  if (!outcome_.plan || !outcome_.plan->disaggregated) return;
  ServingPlan& plan = *outcome_.plan;
  const WorkerPlan& of = plan.prefill;
  const auto is_planned = [&of](const std::unique_ptr<ServingOption>& option) {
    return option->engine == of.engine && option->layout == of.layout && !option->draft &&
           option->format.name == of.format.name && option->format.cache == of.format.cache;
  };
  const auto option = std::find_if(options_.begin(), options_.end(), is_planned);
  const auto chunk = std::find(kChunkSizes.begin(), kChunkSizes.end(), of.limits.chunk_tokens);
  assert(option != options_.end() && chunk != kChunkSizes.end());
  const WorkerSteps& steps =
      steps_of(**option, static_cast<std::size_t>(chunk - kChunkSizes.begin()));
  const double rate = plan.requests_per_s / static_cast<double>(of.workers);
  plan.ttft_s = std::min(job_.ttft_s, prompts_ttft_s(steps, rate, (*option)->disaggregated));
}

void ServingSearch::add_front() {
  if (!outcome_.plan) return;
  const WorkerPlan& of = outcome_.plan->decode;
  const auto no_worse = [](const ServingPoint& a, const ServingPoint& b) {
    return a.tpot_s <= b.tpot_s && a.tokens_per_s_per_device >= b.tokens_per_s_per_device;
  };
  for (const auto& option : options_) {
    const bool same_format =
        option->format.name == of.format.name && option->format.cache == of.format.cache;
    if (option->engine != of.engine || !same_format) continue;
    for (const double batch : option->batches) {
      const ServingTimes found = times(*option, option->by_default.front(), batch);
      if (found.ttft_s > job_.ttft_s) continue;
      const ServingPoint point{found.tpot_s,
                               found.ttft_s,
                               found.requests_per_s * job_.output_tokens / option->devices(),
                               option->layout,
                               batch,
                               option->draft_tokens()};
      outcome_.points.push_back(point);
      if (!is_dominated(outcome_.front, point, no_worse)) {
        put_in_front(outcome_.front, point, no_worse);
      }
    }
  }
  std::sort(outcome_.front.begin(), outcome_.front.end(),
            [](const ServingPoint& a, const ServingPoint& b) { return a.tpot_s < b.tpot_s; });
}

ServingOutcome ServingSearch::run() {
  check_context(job_);
  const double context = job_.input_tokens + job_.output_tokens;
  if (job_.draft.model != nullptr) check_draft(*job_.draft.model, *job_.model, context);
  add_options();
  if (job_.disaggregated) search_disaggregated();
  if (job_.aggregated) search_aggregated();
  predict_ttft();
  add_front();
  return std::move(outcome_);
}

}  // namespace

std::vector<ServingLayout> serving_layouts(const ServedModel& model, const System& system) {
  const bool experts = std::any_of(model.layers.begin(), model.layers.end(),
                                   [](const ServedLayer& layer) { return layer.experts > 0; });
  const auto divides = [&](std::int64_t tp, std::int64_t ep) {
    return std::all_of(model.layers.begin(), model.layers.end(), [&](const ServedLayer& layer) {
      return divides_heads(layer, tp) && std::fmod(layer.experts, static_cast<double>(ep)) == 0;
    });
  };
  const std::int64_t node = std::min(system.groups.front().devices_per_node, system.device_count);
  std::vector<ServingLayout> layouts;
  for (std::int64_t tp = 1; tp <= node; tp *= 2) {
    for (std::int64_t dp = 1; tp * dp <= system.device_count && (dp == 1 || experts); dp *= 2) {
      for (std::int64_t pp = 1; tp * dp * pp <= system.device_count && pp <= model.layer_count();
           pp *= 2) {
        const std::int64_t ranks = tp * dp;
        if (dp == 1 && divides(tp, 1)) layouts.push_back({tp, pp, dp, ranks, 1});
        if (experts && ranks > 1 && divides(tp, ranks)) layouts.push_back({tp, pp, dp, 1, ranks});
      }
    }
  }
  return layouts;
}

void check_context(const ServingJob& job) {
  const ServedModel& model = *job.model;
  if (model.positions == 0) return;
  if (job.input_tokens + job.output_tokens <= static_cast<double>(model.positions)) return;
  throw Error(Where{"", 0, "--input-len"}, "input and output are longer than the " +
                                               std::to_string(model.positions) + " tokens that " +
                                               model.name + " takes");
}

ServingOutcome plan_serving(const ServingJob& job) { return ServingSearch(job).run(); }

std::int64_t workers_for_rate(const WorkerPlan& of, double rate) {
  return static_cast<std::int64_t>(std::ceil(rate / of.requests_per_s * kBelowTolerance));
}

std::int64_t devices_for_rate(const ServingPlan& plan, double rate) {
  const auto devices = [&](const WorkerPlan& of) {
    return workers_for_rate(of, rate) * of.layout.devices();
  };
  return devices(plan.decode) + (plan.disaggregated ? devices(plan.prefill) : 0);
}

}  // namespace braid
