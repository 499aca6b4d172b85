#include "braid/serve/planned_worker.h"

#include "braid/serve/worker_rates.h"

namespace braid {

PlannedWorker::PlannedWorker(const WorkerPlan& of, const ServingJob& job) {
  if (of.draft_tokens > 0 && job.draft.model != nullptr) {
    draft = std::make_unique<DraftModel>(DraftModel{job.draft.model,
                                                    draft_format(*job.draft.model, of.format.name),
                                                    {job.draft.acceptance, of.draft_tokens, 1}});
  }
  worker = {job.model, of.engine, job.system, job.kernels, of.format, of.layout, draft.get()};
}

}  // namespace braid
