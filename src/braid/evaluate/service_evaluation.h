#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/evaluate/service_changes.h"
#include "braid/serve/launch/stated_service.h"
#include "braid/trust/serving_interval.h"

namespace braid {

/// A stated service beside the best one for the same job, engine, precision and kinds of workers.
struct ServiceEvaluation {
  StatedTimes mine;
  ServingIntervals sure;                 ///< Of mine, as factors of its times.
  std::unique_ptr<Engine> engine;        ///< That the best refers to.
  std::optional<ServingOutcome> search;  ///< For the best; nullopt: not asked for.
  std::optional<StatedTimes> best;       ///< Without: nothing holds the targets.
  std::vector<ServiceChange> changes;    ///< From mine to the best.
  std::vector<std::string> not_given, not_known, not_modelled;
};

/// The service that `stated` is, and with `look_for_best` the best of plan_serving()'s space for
/// `job`, of which engines, formats and kinds of workers do not count: they are those of the
/// service, with the engine's own share of memory where that is more, and the usual numbers of the
/// cache beside the stated ones. Throws Error as stated_times() does.
ServiceEvaluation evaluate_service(const StatedService& stated, const ServingJob& job,
                                   bool look_for_best);

/// Four fifths of measured services like this plan were within these factors of their predictions.
ServingIntervals intervals_of(const ServingPlan& plan, const ServingJob& job);

/// For people: both services as a table, whether mine fits and holds the targets, the memory of its
/// workers, and the changes from one to the other.
std::string service_evaluation_text(const ServiceEvaluation& evaluation, const ServingJob& job);

}  // namespace braid
