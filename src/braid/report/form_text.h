#pragma once

#include <string>

#include "braid/plan/plan.h"

namespace braid {

/// The parallel form of a plan's stages for people: a number that all stages share, else the least
/// and the greatest ("2-8"); of names, all that occur ("none/full").
struct FormText {
  std::string tp;  ///< "8sp" under sequence parallelism, of any stage.
  std::string cp, dp, ep, micro_batch, num_micro_batches;
  std::string recompute, zero;
  std::string offload;  ///< What any stage keeps in host memory: "+opt+act+w"; "" for nothing.
};
FormText form_text(const Plan& plan);

}  // namespace braid
