#include "braid/trainers/exchange/trained_job.h"

#include "braid/base/error.h"

namespace braid {

TrainedJob trained_job(const Plan& plan) {
  return {&plan.model,  &plan.model_source, plan.shape ? &*plan.shape : nullptr,
          plan.seq_len, plan.precision,     &plan.system};
}

void throw_refusal(const std::string& who, const JobRefusal& refusal) {
  if (!refusal.reason.empty()) throw Error(who + " " + refusal.reason, refusal.remedy);
}

}  // namespace braid
