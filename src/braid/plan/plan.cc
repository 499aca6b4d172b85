#include "braid/plan/plan.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "braid/plan/totals.h"

namespace braid {
namespace {

struct Place {
  std::int32_t stage = -1, chunk = -1;
};

std::vector<Place> places(const Plan& plan) {
  std::vector<Place> place(plan.profile.layers.size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (std::size_t c = 0; c < plan.stages[s].chunks.size(); ++c) {
      for (const std::int32_t layer : plan.stages[s].chunks[c].layers) {
        place[static_cast<std::size_t>(layer)] = {static_cast<std::int32_t>(s),
                                                  static_cast<std::int32_t>(c)};
      }
    }
  }
  return place;
}

}  // namespace

double boundary_bytes(const ProfileEdge& edge, const Parallelism& parallel) {
  const double split = static_cast<double>(parallel.cp) *
                       (parallel.sequence_parallel ? static_cast<double>(parallel.tp) : 1.0);
  return edge.bytes * parallel.micro_batch / split;
}

std::vector<ChunkEdge> chunk_edges(const Plan& plan) {
  const std::vector<Place> place = places(plan);
  std::map<std::tuple<int, int, int, int>, double> bytes;
  for (const ProfileEdge& edge : plan.profile.edges) {
    const Place from = place[static_cast<std::size_t>(edge.source)];
    const Place to = place[static_cast<std::size_t>(edge.target)];
    if (from.stage < 0 || to.stage < 0) continue;
    if (from.stage == to.stage && from.chunk == to.chunk) continue;
    bytes[{from.stage, from.chunk, to.stage, to.chunk}] += boundary_bytes(edge, plan.parallel);
  }
  std::vector<ChunkEdge> edges;
  edges.reserve(bytes.size());
  for (const auto& [key, sum] : bytes) {
    const auto [source_stage, source_chunk, target_stage, target_chunk] = key;
    edges.push_back({source_stage, source_chunk, target_stage, target_chunk, sum});
  }
  return edges;
}

std::int64_t in_flight_chunks(ScheduleKind schedule, int pp, int stage, int vp,
                              std::int64_t num_micro_batches) {
  const std::int64_t m = num_micro_batches;
  switch (schedule) {
    case ScheduleKind::gpipe:
      return m * vp;
    case ScheduleKind::one_f_one_b:
      return std::min<std::int64_t>(m, pp - stage);
    case ScheduleKind::interleaved:
      if (vp == 1) return std::min<std::int64_t>(m, pp - stage);
      return std::min<std::int64_t>(
          m * vp, std::int64_t{2} * (pp - stage - 1) + std::int64_t{vp - 1} * pp + 1);
  }
  return m;
}

MemoryBreakdown memory_of_stage(const Plan& plan, std::size_t stage) {
  std::vector<ChunkTotals> totals;
  for (const Chunk& chunk : plan.stages[stage].chunks) {
    totals.push_back(totals_of(plan.profile, chunk));
  }
  const int index = static_cast<int>(stage);
  const Parallelism& parallel = plan.parallel;
  const auto context = data_parallel_context(parallel, plan.precision, plan.system);
  const std::int64_t in_flight =
      in_flight_chunks(parallel.schedule, static_cast<int>(plan.stages.size()), index, parallel.vp,
                       parallel.num_micro_batches);
  return memory_of(totals, in_flight, context);
}

}  // namespace braid
