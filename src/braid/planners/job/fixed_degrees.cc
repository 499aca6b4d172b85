#include "braid/planners/job/fixed_degrees.h"

namespace braid {

void fix_degrees(const Parallelism& parallel, SpaceOptions& space) {
  space.tp = parallel.tp;
  space.pp = parallel.pp;
  space.dp = parallel.dp;
  space.cp = parallel.cp;
  space.ep = parallel.ep;
  space.micro_batch = parallel.micro_batch;
  space.schedule = parallel.schedule;
}

}  // namespace braid
