#pragma once

#include <cstddef>
#include <memory>

#include "braid/plan/totals.h"

namespace braid {

/// Data-parallel context of a stage of a plan: of the plan's parallel form, or of the stage's own
/// on its own devices. Where these are of several chips, `chip` is the one with the slowest memory.
/// The plan outlives it.
class StageContext {
 public:
  StageContext(const Plan& plan, std::size_t stage);
  const DataParallelContext& data_parallel() const { return context_; }

 private:
  std::unique_ptr<const NamedReplicas> replicas_;  ///< Of a form of the stage's own.
  DataParallelContext context_;
};

/// The least that any device of a stage may use (usable_bytes of its chip).
double usable_bytes_of_stage(const Plan& plan, std::size_t stage);

}  // namespace braid
