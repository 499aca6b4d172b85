#include "braid/cli/change_of_trainer.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/frontend/model.h"
#include "braid/graph/working_precision.h"
#include "braid/plan/direct_plan.h"
#include "braid/plan/direct_stages.h"
#include "braid/plan/node_replicas.h"
#include "braid/plan/trainer_fit.h"
#include "braid/planners/trainer_choice.h"
#include "braid/schedule/timeline.h"
#include "braid/trainers/exchange/one_form.h"

namespace braid {
namespace {

/// The plan's model in its working precision; throws Error where it is not what it was.
Graph model_again(const Plan& plan) {
  Graph graph = load_model(plan.model_source, {.seq_len = plan.seq_len, .dims = {}});
  Graph as_planned = graph;
  adapt_graph(plan.trainer.does, as_planned);
  if (as_planned.layers.size() != plan.profile.layers.size()) {
    throw Error(fmt::format("{} has {} layers, and the plan {}", plan.model_source,
                            as_planned.layers.size(), plan.profile.layers.size()));
  }
  set_working_precision(graph, plan.precision.activation, plan.precision.weight);
  return graph;
}

}  // namespace

std::string change_of_trainer(const Plan& plan, const std::string& trainer) {
  if (plan.trainer.name == trainer) return "";
  const TrainerFile file = load_trainer(trainer);
  const std::string made_for =
      plan.trainer.name.empty() ? "no trainer in particular" : plan.trainer.name;
  // As the exporter writes it: stages may have their forms of their own, and the plan none.
  const Plan written = in_one_form(plan, trainer).plan;
  if (const std::string reason = refusal(limits_of(file, written), written); !reason.empty()) {
    return fmt::format("the plan was made for {}; {} {}", made_for, trainer, reason);
  }
  std::optional<Graph> graph;
  try {
    graph = model_again(plan);
  } catch (const Error& error) {
    return fmt::format(
        "the plan was made for {}; how long it takes under {} is not known, as its model cannot be "
        "read again: {}",
        made_for, trainer, error.what());
  }
  Job job;
  job.graph = &*graph;
  job.precision = plan.precision;
  SpaceOptions space;
  set_trainer(file, written.system, job, space);
  adapt_graph(job.trainer.does, *graph);
  // One of the two may have MTP as one layer with the head.
  std::vector<std::int32_t> counts = layer_counts(written);
  counts.back() += static_cast<std::int32_t>(std::ssize(graph->layers)) -
                   static_cast<std::int32_t>(std::ssize(plan.profile.layers));
  if (counts.back() < 1) {
    return fmt::format("the plan was made for {}; {} has MTP modules beside the loss", made_for,
                       trainer);
  }
  Parallelism form = written.parallel;
  form.replicate = job.trainer.does.node_replicas ? node_replicas(written.system, form) : 1;
  const double before_s = measure(plan).iteration_time_s;
  const double after_s =
      measure(direct_plan(*graph, {form, job.precision, job.trainer, plan.global_batch},
                          written.system, std::move(counts)))
          .iteration_time_s;
  const double change = after_s / before_s - 1;
  return fmt::format("the plan was made for {} and takes {} there; under {} it takes {}{}",
                     made_for, format_seconds(before_s), trainer, format_seconds(after_s),
                     std::abs(change) < 5e-4 ? ", as long"
                                             : fmt::format(", {:.1f} % {}", 100 * std::abs(change),
                                                           change > 0 ? "more" : "less"));
}

}  // namespace braid
