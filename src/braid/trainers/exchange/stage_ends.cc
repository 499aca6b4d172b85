#include "braid/trainers/exchange/stage_ends.h"

#include <vector>

#include <fmt/format.h>

namespace braid {
namespace {

/// Blocks of each stage, embedding and loss counted as blocks where they are.
std::vector<std::int64_t> blocks_of_stages(const GivenArguments& given, const StageEndNames& names,
                                           std::int64_t blocks, const StageEnds& ends, int pp) {
  const std::int64_t inner_stages = pp - (ends.first ? 1 : 0) - (ends.last ? 1 : 0);
  const std::int64_t inner =
      blocks + ends.counted() - ends.first.value_or(0) - ends.last.value_or(0);
  const bool holds = inner_stages == 0 ? inner == 0 : inner >= 0 && inner % inner_stages == 0;
  if (!holds) {
    given.fail(ends.said_by(names),
               fmt::format("{} layers that are left do not go over {} stages", inner, inner_stages),
               "Megatron-LM deals them out evenly: choose other numbers");
  }
  std::vector<std::int64_t> stages(static_cast<std::size_t>(pp),
                                   inner_stages > 0 ? inner / inner_stages : 0);
  if (ends.first) stages.front() = *ends.first;
  if (ends.last) stages.back() = *ends.last;
  return stages;
}

}  // namespace

void deal_blocks(const GivenArguments& given, const StageEndNames& names, std::int64_t blocks,
                 const StageEnds& ends, Import& run) {
  const Parallelism& p = run.parallel;
  if (p.pp == 1) return;
  const std::vector<std::int64_t> stages = blocks_of_stages(given, names, blocks, ends, p.pp);
  for (int chunk = 0; chunk < p.vp; ++chunk) {
    for (const std::int64_t of_stage : stages) {
      if (of_stage % p.vp != 0) {
        given.fail(names.chunks,
                   fmt::format("{} layers of a stage do not make up {} chunks", of_stage, p.vp),
                   "choose a divisor of the layers of every stage");
      }
      run.chunk_blocks.push_back(of_stage / p.vp);
    }
  }
  run.chunk_blocks.front() -= ends.counts_embedding ? 1 : 0;
  run.chunk_blocks.back() -= ends.counts_loss ? 1 : 0;
}

}  // namespace braid
