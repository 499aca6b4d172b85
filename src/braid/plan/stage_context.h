#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "braid/plan/totals.h"

namespace braid {

/// Data-parallel context of a stage of a plan: of the plan's parallel form, or of the stage's own
/// on its own devices. Where these are of several chips, `chip` is the one with the slowest memory.
/// The plan, or the system, outlives it.
class StageContext {
 public:
  StageContext(const Plan& plan, std::size_t stage);
  /// Of a stage of such a form on these devices, in no plan.
  StageContext(std::span<const std::int64_t> devices, const Parallelism& form,
               const Precision& precision, const System& system, const TrainerBehaviour& does = {});
  const DataParallelContext& data_parallel() const { return context_; }

 private:
  std::unique_ptr<const NamedReplicas> replicas_;  ///< Of a form of the stage's own.
  DataParallelContext context_;
};

/// The least that any device of a stage may use (usable_bytes of its chip).
double usable_bytes_of_stage(const Plan& plan, std::size_t stage);

}  // namespace braid
