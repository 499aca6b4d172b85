#include "braid/trainers/torchtitan/launch.h"

#include <fmt/format.h>

namespace braid {
namespace {

/// Nothing for what follows the first layer of the input or of the head: the modules of the first
/// stand for all of them.
std::vector<std::string> modules_of(const ModelShape& shape, std::int64_t layer,
                                    std::string_view head) {
  if (layer == 0 && shape.first_block > 0) return {"tok_embeddings"};
  if (layer < shape.first_block) return {};
  const std::int64_t block = layer - shape.first_block;
  if (block < shape.blocks) return {fmt::format("layers.{}", block)};
  if (block == shape.blocks) return {"norm", std::string(head)};
  return {};
}

}  // namespace

std::vector<std::vector<std::string>> torchtitan_modules(const Plan& plan, std::string_view head) {
  std::vector<std::vector<std::string>> all;
  for (std::size_t c = 0; c < plan.stages.front().chunks.size(); ++c) {
    for (const Stage& stage : plan.stages) {
      std::vector<std::string>& part = all.emplace_back();
      for (const std::int32_t layer : stage.chunks[c].layers) {
        for (std::string& name : modules_of(*plan.shape, layer, head)) {
          part.push_back(std::move(name));
        }
      }
    }
  }
  return all;
}

std::string_view torchtitan_schedule(ScheduleKind schedule) {
  return schedule == ScheduleKind::gpipe         ? "GPipe"
         : schedule == ScheduleKind::interleaved ? "Interleaved1F1B"
                                                 : "1F1B";
}

std::string torchtitan_launch(const Plan& plan, const Processes& processes,
                              std::string_view arguments) {
  std::string line;
  if (plan.precision.matmul == Dtype::tf32) line += "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 ";
  line += fmt::format("torchrun --nproc-per-node {} ", processes.per_node);
  if (processes.nodes > 1) {
    line += fmt::format("--nnodes {} --rdzv-backend c10d --rdzv-endpoint $MASTER_ADDR:29500 ",
                        processes.nodes);
  }
  return line + fmt::format("-m torchtitan.train {}", arguments);
}

std::string torchtitan_dry_run(const Plan& plan, std::string_view arguments) {
  return fmt::format(
      "# Dry run of rank 0, on one GPU alone: NGPU={} LOCAL_RANK=0 python3 -m torchtitan.train\n"
      "#   {} --comm.mode=fake_backend --training.steps=1\n",
      plan.parallel.devices(), arguments);
}

}  // namespace braid
