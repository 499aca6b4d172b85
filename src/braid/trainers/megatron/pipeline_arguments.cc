#include "braid/trainers/megatron/pipeline_arguments.h"

#include <optional>
#include <vector>

#include <fmt/format.h>

#include "braid/trainers/exchange/stage_ends.h"
#include "braid/trainers/exchange/stage_layout.h"

namespace braid {
namespace {

constexpr std::int64_t kMostBlocks = 1 << 24;

constexpr StageEndNames kNames = {
    "--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers",
    "--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split",
    "--num-virtual-stages-per-pipeline-rank"};

constexpr std::string_view kLayersOfChunk = "--num-layers-per-virtual-pipeline-stage";
constexpr std::string_view kLayout = "--pipeline-model-parallel-layout";

/// Throws Error where chunks are said in two ways, which validate_args() refuses.
void check_chunks_are_said_once(const GivenArguments& given) {
  std::string_view said;
  for (const std::string_view name : {kLayersOfChunk, kNames.chunks, kLayout}) {
    if (!given.is_given(name)) continue;
    if (!said.empty()) {
      given.fail(name, "is not taken beside " + std::string(said), "leave one of the two out");
    }
    said = name;
  }
}

StageEnds read_ends(GivenArguments& given) {
  StageEnds ends;
  ends.first = given.count(kNames.first, 1, kMostBlocks);
  ends.last = given.count(kNames.last, 1, kMostBlocks);
  ends.counts_embedding = given.has(kNames.embedding);
  ends.counts_loss = given.has(kNames.loss);
  return ends;
}

/// Model chunks of each stage where their layers are said.
int chunks_of_layers(GivenArguments& given, std::int64_t each, std::int64_t blocks,
                     const StageEnds& ends, int pp) {
  if (ends.first || ends.last) {
    given.fail(kLayersOfChunk, "is not taken beside " + std::string(ends.said_by(kNames)),
               "give " + std::string(kNames.chunks) + " in its place");
  }
  if (blocks == 0) {
    given.fail(kLayersOfChunk, "how many layers the model has is not said",
               "name the model, MODEL, or add --num-layers");
  }
  const std::int64_t counted = blocks + ends.counted();
  if (counted % pp != 0 || counted / pp % each != 0) {
    given.fail(kLayersOfChunk,
               fmt::format("{} layers do not make up {} over {} stages", each, counted, pp),
               "choose a divisor of the layers of a stage");
  }
  return static_cast<int>(counted / pp / each);
}

/// Blocks of each chunk where stages differ; none: all have as many.
void deal_out(const GivenArguments& given, std::int64_t blocks, const StageEnds& ends,
              Import& run) {
  const std::int64_t chunks = std::int64_t{run.parallel.pp} * run.parallel.vp;
  if (run.parallel.pp == 1 || blocks == 0) return;
  if (ends.are_said()) return deal_blocks(given, kNames, blocks, ends, run);
  if (blocks % chunks == 0) return;
  run.notes.push_back(
      fmt::format("{} layers do not go evenly over {} chunks of a pipeline, which Megatron-LM "
                  "refuses: it needs "
                  "--pipeline-model-parallel-layout, as --layout here",
                  blocks, chunks));
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
  check_chunks_are_said_once(given);
  const StageEnds ends = read_ends(given);
  if (const auto each = given.count(kLayersOfChunk, 1, kMostBlocks)) {
    p.vp = chunks_of_layers(given, *each, blocks, ends, p.pp);
  }
  const auto layout = given.text(kLayout);
  const std::optional<std::string> pattern = hybrid_pattern_of(given);
  if (layout) {
    take_chunks(given, kLayout, blocks_of_layout(*layout, file), run);
  } else if (pattern && pattern->find('|') < pattern->find('/')) {
    take_chunks(given, "--hybrid-layer-pattern", layers_of_pattern(*pattern), run);
  } else if (!pattern) {
    deal_out(given, blocks, ends, run);
  }
  if (p.pp == 1) p.vp = 1;
  p.schedule = p.vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
}

}  // namespace braid
