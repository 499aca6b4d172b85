#include "braid/serve/launch/stated_service.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/serve/served_names.h"

namespace braid {
namespace {

bool has_experts(const ServedModel& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const ServedLayer& layer) { return layer.experts > 0; });
}

class Stating {
 public:
  Stating(const StatedBasis& basis, std::string file, StatedService& service)
      : basis_(basis), file_(std::move(file)), service_(service) {}

  WorkerPlan worker(const LaunchedWorker& of) {
    service_.engines.push_back(std::make_unique<Engine>(load_engine(of.engine)));
    Engine& engine = *service_.engines.back();
    WorkerPlan plan;
    plan.engine = &engine;
    plan.layout = layout_of(of);
    const bool copies = of.dp > 1 && plan.layout.dp == 1;
    plan.workers = copies ? std::max<std::int64_t>(1, of.workers) * of.dp : of.workers;
    if (of.memory_share > 0) engine.memory_share = of.memory_share;
    if (of.block_tokens > 0) engine.block_tokens = of.block_tokens;
    plan.limits.chunk_tokens =
        said_or(of.chunk_tokens, engine.chunk_tokens, "new tokens of a step");
    const double sequences = said_or(of.sequences, engine.most_sequences, "sequences at once");
    engine.most_sequences = std::max(engine.most_sequences, sequences);
    plan.limits.sequences = std::max(1.0, sequences * static_cast<double>(plan.layout.dp));
    plan.draft_tokens = of.draft_tokens;
    plan.format = format_of(of);
    return plan;
  }

 private:
  double said_or(double said, double usual, const char* what) {
    if (said > 0) return said;
    say(fmt::format("{}: {:.0f}, the engine's default", what, usual));
    return usual;
  }
  void say(std::string line) {
    std::vector<std::string>& lines = service_.not_given;
    if (std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(std::move(line));
  }

  ServingLayout layout_of(const LaunchedWorker& of) const {
    ServingLayout layout;
    layout.tp = of.tp;
    layout.pp = of.pp;
    layout.cp = of.cp;
    check_heads(layout.tp);
    const bool experts = has_experts(basis_.model);
    if (experts && !of.data_is_copies) layout.dp = of.dp;
    const std::int64_t ranks = layout.stage_devices();
    layout.moe_ep = !experts ? 1 : of.all_ranks_have_experts ? ranks : of.ep;
    if (ranks % layout.moe_ep != 0) {
      throw Error(Where{file_, 0, ""},
                  fmt::format("experts on {} ranks do not divide the {} ranks of a stage",
                              layout.moe_ep, ranks));
    }
    layout.moe_tp = ranks / layout.moe_ep;
    return layout;
  }

  /// Engines split heads whole.
  void check_heads(std::int64_t tp) const {
    for (const ServedLayer& layer : basis_.model.layers) {
      const auto heads = static_cast<std::int64_t>(layer.heads);
      if (heads == 0 || heads % tp == 0) continue;
      throw Error(Where{file_, 0, ""},
                  fmt::format("{} heads of {} do not split over {} tensor-parallel ranks", heads,
                              basis_.model.name, tp),
                  "choose a degree that divides the heads");
    }
  }

  ServingFormat format_of(const LaunchedWorker& of) {
    std::string precision = basis_.precision.empty() ? of.precision : basis_.precision;
    if (precision.empty()) {
      const NamedPrecision named = precision_of_checkpoint(of.model);
      precision = named.precision;
      say(fmt::format("precision of weights: {}, {}", precision, named.why));
    }
    ServingFormat format = serving_format(basis_.model, precision);
    if (of.cache.empty()) {
      format.cache = "bf16";
      say("numbers of the cache: bf16, the engines' default");
    } else {
      format.cache = of.cache;
    }
    return format;
  }

  const StatedBasis& basis_;
  std::string file_;
  StatedService& service_;
};

/// As many workers as there is room for, where the lines do not say.
void count_workers(const StatedBasis& basis, const std::string& file, StatedService& service) {
  ServingPlan& plan = service.plan;
  std::vector<WorkerPlan*> workers = {&plan.decode};
  if (plan.disaggregated) workers.insert(workers.begin(), &plan.prefill);
  plan.devices = 0;
  for (WorkerPlan* each : workers) {
    if (each->workers == 0) {
      const bool fill = !plan.disaggregated;
      each->workers = fill ? std::max<std::int64_t>(1, basis.devices / each->layout.devices()) : 1;
      service.not_given.push_back(fmt::format("workers: {}{}", each->workers,
                                              fill ? ", as many as there is room for" : ""));
    }
    plan.devices += each->workers * each->layout.devices();
  }
  if (plan.devices > basis.devices) {
    throw Error(
        Where{file, 0, ""},
        fmt::format("its workers take {} devices, and there are {}", plan.devices, basis.devices),
        "name a larger --cluster");
  }
}

}  // namespace

StatedService stated_service(const LaunchedService& launched, const StatedBasis& basis,
                             const std::string& file) {
  StatedService service;
  Stating stating(basis, file, service);
  for (const LaunchedWorker& each : launched.workers) {
    const WorkerPlan plan = stating.worker(each);
    (each.role == WorkerRole::prompts ? service.plan.prefill : service.plan.decode) = plan;
    service.plan.disaggregated = each.role != WorkerRole::all;
  }
  count_workers(basis, file, service);
  return service;
}

}  // namespace braid
