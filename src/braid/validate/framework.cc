#include "braid/validate/framework.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "braid/base/text.h"

namespace braid {
namespace {

struct Entry {
  std::string_view word;
  TrainerDefaults defaults;
};

/// Placeholders: get_dummy_wgrad() of Transformer Engine (pytorch/module/base.py).
constexpr TrainerDefaults kTransformerEngine = {.zero = Zero::optimizer,
                                                .gradient_placeholders = true};

/// Megatron-Bridge's recipes train models as they were published (mtp_num_layers), with experts
/// whole (expert_tensor_parallel_size, or etp, of 1).
constexpr TrainerDefaults kBridge = {.zero = Zero::optimizer,
                                     .gradient_placeholders = true,
                                     .further_tokens = true,
                                     .whole_experts = true};

/// Megatron-LM to 2022 (Shoeybi et al. 2019, Narayanan et al. 2021, Korthikanti et al. 2022):
/// scores in memory, one fused kernel of scale, mask and softmax; dropout 0.1; fp16 gradients,
/// reduced after the last backward pass, added up by a kernel for each parameter.
constexpr TrainerDefaults kMegatron = {.flash_attention = false,
                                       .sequence_parallel = false,
                                       .dropout = true,
                                       .overlap_gradients = false,
                                       .half_gradients = true,
                                       .fused_accumulation = false,
                                       .overlap_tensor_parallel = false};

// In this order; the first whose word occurs in the trainer's name.
constexpr std::array kTrainers = {
    // Megatron-Bridge and NeMo recipes: distributed optimizer, Transformer Engine's attention.
    Entry{"megatron-bridge", kBridge},
    Entry{"nemo", kTransformerEngine},
    Entry{"transformer engine", kTransformerEngine},
    Entry{"megatron-core", kTransformerEngine},
    Entry{"megatron core", kTransformerEngine},
    Entry{"/ te", kTransformerEngine},
    Entry{"megatron-deepspeed", kMegatron},
    Entry{"megatron", kMegatron},
    // The user's layers as they are; gradients in fp32 and behind no backward pass ("overlap_comm"
    // is off below ZeRO-3).
    Entry{"deepspeed",
          {.flash_attention = false,
           .sequence_parallel = false,
           .dropout = true,
           .overlap_gradients = false,
           .fused_accumulation = false}},
    // MaxText's base.yml: fully sharded over the devices of a slice, slices as replicas
    // (ici_fsdp_parallelism, dcn_data_parallelism) whose gradients are those of a loop over the
    // layers, complete when it ends; everything recomputed; gradient_accumulation_steps of 1. XLA
    // fuses what is element by element.
    Entry{"maxtext",
          {.zero = Zero::parameters,
           .recompute = Recompute::full,
           .fused_experts = true,
           .node_replicas = true,
           .whole_batches = true}},
    Entry{"libai", kMegatron},
    // PyTorch's autograd engine.
    Entry{"internevo", {.fused_accumulation = false}},
    // Llama 3 report, section 3.3.2: the first chunk holds the embedding alone, the last one the
    // output projection alone.
    Entry{"meta internal", {.one_layer_chunks = true}},
    // Composer and PyTorch FSDP in 2023: FlashAttention 1 and 2 or their Triton forms.
    Entry{"composer", {.old_attention = true}},
    Entry{"pytorch fsdp", {.old_attention = true}},
};

/// Chips of 2022 and later. Megatron-LM keeps no scores in memory on them: it runs the layers of
/// Transformer Engine, which came out with the first of them.
constexpr std::array<std::string_view, 7> kLaterChips = {"h100", "h200",  "h800", "b200",
                                                         "b300", "gb200", "gb300"};

/// Year and month of the first Megatron-Bridge whose recipes capture whole iterations of mixtures
/// of experts and overlap their dispatch; formats with a scale for every few elements alone have
/// both (scripts/performance in its repository: cuda_graph_impl, moe_a2a_overlap), and kernels that
/// fuse what is between the products of experts (cutedsl_fused_grouped_mlp).
constexpr int kWholeGraphs = 2606;

/// Megatron-LM's --no-gradient-accumulation-fusion is of 2022.
constexpr int kFusedAccumulation = 2201;

/// Year and month in an identifier such as "arxiv:2205.05198" or "arxiv.org/abs/2205.05198": 2205.
/// 0 where there is none.
int published(std::string_view source) {
  constexpr std::string_view kArchive = "arxiv";
  const std::size_t at = source.find(kArchive);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = source.substr(at + kArchive.size());
  for (const std::string_view page : {".org/abs/", ".org/pdf/"}) {
    if (rest.starts_with(page)) rest.remove_prefix(page.size());
  }
  const std::size_t begin = rest.find_first_of("0123456789");
  if (begin > 1 || rest.size() < begin + 5 || rest[begin + 4] != '.') return 0;
  int month = 0;
  for (const char c : rest.substr(begin, 4)) {
    if (c < '0' || c > '9') return 0;
    month = 10 * month + (c - '0');
  }
  return month;
}

bool is_later_chip(std::string_view hardware) {
  return std::any_of(kLaterChips.begin(), kLaterChips.end(), [&](std::string_view chip) {
    return hardware.find(chip) != std::string_view::npos;
  });
}

/// Year and month at the end of a trainer's name, such as "… 26.04.01": 2604. 0 where there is
/// none.
int version(std::string_view name) {
  const std::size_t space = name.find_last_of(' ');
  const std::string_view last = space == std::string_view::npos ? name : name.substr(space + 1);
  if (last.size() < 5 || last[2] != '.') return 0;
  int month = 0;
  for (const std::size_t i : {0, 1, 3, 4}) {
    if (last[i] < '0' || last[i] > '9') return 0;
    month = 10 * month + (last[i] - '0');
  }
  return month;
}

bool has_block_scales(const std::string& precision) {
  const std::string name = lowered(precision);
  return name.find("mx") != std::string::npos || name.find("nvfp4") != std::string::npos;
}

/// SimuMax's names of cases end so where cross entropy is fused (its docs/b200, "_cef").
bool says_fused_loss(const std::string& notes) { return notes.find("_cef") != std::string::npos; }

/// Whether the model mixes state-space layers with others: of these Megatron-Bridge captures
/// attention, state-space layers and routing alone, and overlaps no dispatch
/// (scripts/performance/configs/nemotronh in its repository).
bool is_hybrid(const std::string& model) { return lowered(model).starts_with("nemotron"); }

/// One of Megatron-Bridge's recipes that drop tokens (apply_moe_token_drop(): a capacity factor of
/// 1, padded; in scripts/performance/configs in its repository, in the versions that have it).
struct DroppingRecipe {
  std::string_view model;  ///< The name begins so.
  /// All sizes are known beforehand, so that whole iterations are captured as graphs (its
  /// cuda_graph_scope), but on chips whose name has `uncaptured_on`.
  bool captured = false;
  std::string_view uncaptured_on = {};
};
/// qwen3_30b_a3b_llm_pretrain.py, qwen3_235b_a22b_llm_pretrain.py, deepseek_v3_llm_pretrain.py.
constexpr std::array kDroppingRecipes = {DroppingRecipe{"qwen3_30b", true, "h100"},
                                         DroppingRecipe{"qwen3_235b"},
                                         DroppingRecipe{"deepseekv3"}};

/// Rows name the models of these recipes so: "Qwen3_30B_a3B (tokendrop)".
const DroppingRecipe* dropping_recipe(const MeasuredRun& run) {
  const std::string model = lowered(run.model);
  if (!contains(model, "tokendrop")) return nullptr;
  const auto* recipe =
      std::find_if(kDroppingRecipes.begin(), kDroppingRecipes.end(),
                   [&](const DroppingRecipe& each) { return model.starts_with(each.model); });
  return recipe == kDroppingRecipes.end() ? nullptr : recipe;
}

}  // namespace

TrainerDefaults trainer_defaults(const MeasuredRun& run) {
  const std::string name = lowered(run.framework);
  for (const Entry& entry : kTrainers) {
    if (name.find(entry.word) == std::string::npos) continue;
    TrainerDefaults defaults = entry.defaults;
    if (entry.word == "megatron" && is_later_chip(lowered(run.hardware))) {
      defaults = kTransformerEngine;
    }
    if (entry.word == "megatron" && !defaults.fused_accumulation &&
        published(lowered(run.source)) >= kFusedAccumulation) {
      defaults.fused_accumulation = true;
      defaults.overlap_tensor_parallel = true;
    }
    if (entry.word == "megatron-bridge" && version(name) >= kWholeGraphs &&
        has_block_scales(run.precision) && !is_hybrid(run.model)) {
      defaults.whole_graph = defaults.overlap_dispatch = defaults.fused_experts = true;
    }
    if (entry.word == "megatron-bridge") {
      if (const DroppingRecipe* recipe = dropping_recipe(run)) {
        defaults.padded_experts = true;
        defaults.whole_graph |=
            recipe->captured && !contains(lowered(run.hardware), recipe->uncaptured_on);
      }
    }
    if (says_fused_loss(run.notes)) defaults.fused_loss = true;
    return defaults;
  }
  return {};
}

}  // namespace braid
