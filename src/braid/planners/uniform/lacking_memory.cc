#include "braid/planners/uniform/lacking_memory.h"

#include <utility>

namespace braid {
namespace {

Infeasibility lacking_memory(const ChainJob& chain, LayerTables& tables,
                             const Configuration& configuration, AssessmentScratch& scratch) {
  const Evaluator::Memory memory = tried_memory(chain, tables, configuration, scratch);
  Infeasibility why;
  why.needed_bytes = memory.needed_bytes;
  why.available_bytes = usable_bytes(chain.system->groups.front().chip);
  why.parallel = to_parallelism(configuration);
  if (memory.host_needed_bytes > 0) {
    why.host_needed_bytes = memory.host_needed_bytes;
    why.host_available_bytes = memory.host_available_bytes;
  }
  why.stage = why.needed_bytes > why.available_bytes ? memory.tightest_stage : memory.host_stage;
  return why;
}

}  // namespace

void keep_nearest(const ChainJob& chain, LayerTables& tables, const Configuration& configuration,
                  double device_bytes, AssessmentScratch& scratch,
                  std::optional<Infeasibility>& nearest) {
  const double available_bytes = usable_bytes(chain.system->groups.front().chip);
  if (nearest && device_bytes - available_bytes >= missing_bytes(*nearest)) return;
  Infeasibility why = lacking_memory(chain, tables, configuration, scratch);
  // Sums in another order may fit by a rounding.
  if (missing_bytes(why) <= 0) return;
  if (!nearest || missing_bytes(why) < missing_bytes(*nearest)) nearest = std::move(why);
}

}  // namespace braid
