#include "braid/trainers/megatron/pipeline_arguments.h"

#include <optional>
#include <vector>

#include <fmt/format.h>

#include "braid/trainers/exchange/stage_layout.h"

namespace braid {
namespace {

constexpr std::int64_t kMostBlocks = 1 << 24;

/// What is said of the stages at the ends.
struct StageEnds {
  std::optional<std::int64_t> first, last;  ///< Their blocks.
  bool counts_embedding = false, counts_loss = false;

  bool are_said() const { return first || last; }
  std::int64_t counted() const { return (counts_embedding ? 1 : 0) + (counts_loss ? 1 : 0); }
};

StageEnds read_ends(GivenArguments& given) {
  StageEnds ends;
  ends.first = given.count("--decoder-first-pipeline-num-layers", 1, kMostBlocks);
  ends.last = given.count("--decoder-last-pipeline-num-layers", 1, kMostBlocks);
  ends.counts_embedding = given.has("--account-for-embedding-in-pipeline-split");
  ends.counts_loss = given.has("--account-for-loss-in-pipeline-split");
  return ends;
}

/// Model chunks of each stage where their layers are said.
int chunks_of_layers(GivenArguments& given, std::int64_t each, std::int64_t blocks,
                     const StageEnds& ends, int pp) {
  constexpr std::string_view kName = "--num-layers-per-virtual-pipeline-stage";
  if (blocks == 0) {
    given.fail(kName, "how many layers the model has is not said",
               "name the model, MODEL, or add --num-layers");
  }
  const std::int64_t counted = blocks + ends.counted();
  if (counted % pp != 0 || counted / pp % each != 0) {
    given.fail(kName, fmt::format("{} layers do not make up {} over {} stages", each, counted, pp),
               "choose a divisor of the layers of a stage");
  }
  return static_cast<int>(counted / pp / each);
}

/// Blocks of each stage, embedding and loss counted as blocks where they are.
std::vector<std::int64_t> blocks_of_stages(const GivenArguments& given, std::int64_t blocks,
                                           const StageEnds& ends, int pp) {
  const std::int64_t inner_stages = pp - (ends.first ? 1 : 0) - (ends.last ? 1 : 0);
  const std::int64_t inner =
      blocks + ends.counted() - ends.first.value_or(0) - ends.last.value_or(0);
  const bool holds = inner_stages == 0 ? inner == 0 : inner >= 0 && inner % inner_stages == 0;
  if (!holds) {
    given.fail(ends.first         ? "--decoder-first-pipeline-num-layers"
               : ends.last        ? "--decoder-last-pipeline-num-layers"
               : ends.counts_loss ? "--account-for-loss-in-pipeline-split"
                                  : "--account-for-embedding-in-pipeline-split",
               fmt::format("{} layers that are left do not go over {} stages", inner, inner_stages),
               "Megatron-LM deals them out evenly: choose other numbers");
  }
  std::vector<std::int64_t> stages(static_cast<std::size_t>(pp),
                                   inner_stages > 0 ? inner / inner_stages : 0);
  if (ends.first) stages.front() = *ends.first;
  if (ends.last) stages.back() = *ends.last;
  return stages;
}

/// Blocks of each chunk where stages differ; empty: all have as many.
void deal_blocks(const GivenArguments& given, std::int64_t blocks, const StageEnds& ends,
                 Import& run) {
  const Parallelism& p = run.parallel;
  if (p.pp == 1 || blocks == 0) return;
  if (!ends.are_said() && ends.counted() == 0) {
    if (blocks % (std::int64_t{p.pp} * p.vp) == 0) return;
    run.notes.push_back(fmt::format(
        "{} layers do not go evenly over {} chunks of a pipeline, which Megatron-LM refuses: it "
        "needs --pipeline-model-parallel-layout, as --layout here",
        blocks, std::int64_t{p.pp} * p.vp));
    return;
  }
  const std::vector<std::int64_t> stages = blocks_of_stages(given, blocks, ends, p.pp);
  for (int chunk = 0; chunk < p.vp; ++chunk) {
    for (const std::int64_t of_stage : stages) {
      if (of_stage % p.vp != 0) {
        given.fail("--num-virtual-stages-per-pipeline-rank",
                   fmt::format("{} layers of a stage do not make up {} chunks", of_stage, p.vp),
                   "choose a divisor of the layers of every stage");
      }
      run.chunk_blocks.push_back(of_stage / p.vp);
    }
  }
  run.chunk_blocks.front() -= ends.counts_embedding ? 1 : 0;
  run.chunk_blocks.back() -= ends.counts_loss ? 1 : 0;
}

/// What lists every chunk.
void take_chunks(const GivenArguments& given, std::string_view name,
                 std::vector<std::int64_t> listed, Import& run) {
  const auto chunks = std::ssize(listed);
  if (chunks % run.parallel.pp != 0) {
    given.fail(name, fmt::format("{} chunks are no multiple of {} stages", chunks, run.parallel.pp),
               "list pp chunks between |, or a multiple of them");
  }
  run.chunk_blocks = std::move(listed);
  run.parallel.vp = static_cast<int>(chunks / run.parallel.pp);
}

}  // namespace

std::optional<std::string> hybrid_pattern_of(GivenArguments& given) {
  const auto pattern = given.text("--hybrid-layer-pattern");
  const auto earlier = given.text("--hybrid-override-pattern");
  return pattern ? pattern : earlier;
}

void read_pipeline(GivenArguments& given, const std::string& file, std::int64_t blocks,
                   Import& run) {
  Parallelism& p = run.parallel;
  p.pp = static_cast<int>(given.count("--pipeline-model-parallel-size", 1, 1 << 20).value_or(1));
  p.vp = static_cast<int>(
      given.count("--num-virtual-stages-per-pipeline-rank", 1, 1 << 20).value_or(1));
  const StageEnds ends = read_ends(given);
  if (const auto each = given.count("--num-layers-per-virtual-pipeline-stage", 1, kMostBlocks)) {
    p.vp = chunks_of_layers(given, *each, blocks, ends, p.pp);
  }
  const auto layout = given.text("--pipeline-model-parallel-layout");
  const std::optional<std::string> pattern = hybrid_pattern_of(given);
  if (layout) {
    take_chunks(given, "--pipeline-model-parallel-layout", blocks_of_layout(*layout, file), run);
  } else if (pattern && pattern->find('|') < pattern->find('/')) {
    take_chunks(given, "--hybrid-layer-pattern", layers_of_pattern(*pattern), run);
  } else if (!pattern) {
    deal_blocks(given, blocks, ends, run);
  }
  if (p.pp == 1) p.vp = 1;
  p.schedule = p.vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
}

}  // namespace braid
