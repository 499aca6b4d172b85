#include "braid/trainers/exchange/expert_shards.h"

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace braid {

void take_expert_shards(const GivenArguments& given, std::string_view name, int ranks,
                        Import& run) {
  Parallelism& p = run.parallel;
  p.whole_experts = p.tp > 1 && ranks == 1;
  if (p.whole_experts || ranks == p.tp) return;
  const std::int64_t pieces = std::int64_t{ranks} * p.ep;
  if (p.ep > 1 && pieces % p.tp != 0) {
    given.fail(name,
               fmt::format("experts over {} of {} tensor-parallel ranks, and spread over {}, are "
                           "neither whole nor sharded over all",
                           ranks, p.tp, p.ep),
               fmt::format("use 1 or {}", p.tp));
  }
  const std::string spread =
      p.ep > 1 ? fmt::format(", and spread over {} in place of {}, so that each holds as much",
                             pieces / p.tp, p.ep)
               : std::string(", of which each holds less");
  if (p.ep > 1) p.ep = static_cast<int>(pieces / p.tp);
  run.notes.push_back(
      fmt::format("{} {}: here experts are sharded over all {} tensor-parallel ranks{}", name,
                  ranks, p.tp, spread));
}

}  // namespace braid
