#include "braid/trainers/pytorch/export.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "braid/base/embedded_file.h"
#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/run/parameter_groups.h"
#include "braid/run/run_job.h"
#include "braid/run/synthetic_data.h"
#include "braid/schedule/plan_orders.h"
#include "braid/system/part.h"
#include "braid/trainers/pytorch/plan_tables.h"
#include "braid/trainers/pytorch/python_text.h"
#include "braid/trainers/pytorch/stage_writer.h"

namespace braid {

std::span<const EmbeddedFile> embedded_pytorch();

namespace {

std::string_view program_file(std::string_view name) {
  for (const EmbeddedFile& each : embedded_pytorch()) {
    if (each.name == name) return each.text;
  }
  throw Error("the program has no " + std::string(name));
}

void refuse_chips(const Plan& plan) {
  for (const DeviceGroup& group : plan.system.groups) {
    if (group.chip.kind == ChipKind::gpu) continue;
    throw Error("pytorch does not run on " + on_one_line(group.chip.name), "plan for GPUs");
  }
}

void refuse_stages(const Plan& plan) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Parallelism form = form_of(plan, s);
    const auto refuse = [&](const std::string& what, const std::string& remedy) {
      throw Error(
          fmt::format("stage {} has {}, which the file for pytorch does not do", s + 1, what),
          remedy);
    };
    if (form.tp > 1) refuse(fmt::format("tensor parallelism {}", form.tp), "plan with --tp 1");
    if (form.cp > 1) refuse(fmt::format("context parallelism {}", form.cp), "plan with --cp 1");
    if (form.ep > 1) refuse(fmt::format("expert parallelism {}", form.ep), "plan with --ep 1");
    if (form.zero == Zero::parameters && form.dp > 1) {
      refuse("sharded parameters (ZeRO-3)", "plan with --zero 2 or less");
    }
    if (form.offload_optimizer || form.offload_weights || form.offload_activations) {
      refuse("something in host memory", "plan without offload");
    }
  }
}

/// Classes of the layers, each text once.
class LayerClasses {
 public:
  LayerClasses(const ModelFacts& facts, bool recomputes_attention, std::size_t stages) {
    // Other classes, and what the file imports.
    PythonNames names(
        {"FixedBatchNorm", "RMSNorm", "Scale", "Stage", "Update", "Whole", "Worker", "F"});
    for (std::size_t s = 1; s <= stages; ++s) names.unique(fmt::format("Stage{}", s));
    PythonNames members(module_members());
    std::map<std::string, std::string> known;
    for (LayerId l = 0; l < std::ssize(facts.graph->layers); ++l) {
      WrittenLayer layer = written_layer(facts, l, recomputes_attention);
      members_.push_back(members.unique(python_name(facts.graph->layers[at(l)].name)));
      const auto [found, is_new] = known.try_emplace(layer.body);
      if (is_new && !layer.body.empty()) {
        found->second = names.unique(layer.name);
        text_ += fmt::format("class {}(nn.Module):\n{}\n\n", found->second, layer.body);
      }
      classes_.push_back(found->second);
      helpers_.insert(layer.helpers.begin(), layer.helpers.end());
      layers_.push_back(std::move(layer));
    }
  }

  const std::string& text() const { return text_; }
  const std::set<std::string>& helpers() const { return helpers_; }
  const std::vector<WrittenLayer>& layers() const { return layers_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<std::string>& members() const { return members_; }

 private:
  std::string text_;
  std::set<std::string> helpers_;
  std::vector<WrittenLayer> layers_;
  std::vector<std::string> classes_, members_;
};

std::vector<PlacedLayer> layers_of(const OrderedPlan& ordered, const StagePart& part) {
  const Chunk& chunk = ordered.plan.stages[at(part.stage)].chunks[at(part.chunk)];
  std::vector<PlacedLayer> layers;
  for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
    const auto& options = options_of(ordered.plan.profile, chunk.layers[i]);
    layers.push_back({chunk.layers[i], options[at(chunk.options[i])].how.recompute});
  }
  return layers;
}

bool recomputes_attention(const OrderedPlan& ordered, const StagedModel& staged) {
  return std::any_of(staged.parts.begin(), staged.parts.end(), [&](const StagePart& part) {
    const std::vector<PlacedLayer> layers = layers_of(ordered, part);
    return std::any_of(layers.begin(), layers.end(), [](const PlacedLayer& each) {
      return each.recompute == Recompute::selective;
    });
  });
}

/// The helpers that are needed, in the order in which they stand.
std::string helper_text(std::set<std::string> needed, bool recomputes) {
  if (recomputes) needed.insert("recomputed");
  if (needed.contains("attention")) needed.insert("relative_buckets");
  std::string text;
  for (const char* name : {"recomputed", "rms_norm", "fixed_batch_norm", "scale",
                           "relative_buckets", "attention", "experts"}) {
    if (needed.contains(name)) text += std::string(program_file(name)) + "\n\n";
  }
  return text;
}

std::vector<std::string> warnings_of(const Plan& plan) {
  std::vector<std::string> warnings;
  if (plan.precision.matmul == Dtype::f8 || plan.precision.matmul == Dtype::f4) {
    warnings.push_back("GEMMs run in bfloat16, where the plan has " + name_of(plan.precision));
  }
  if (plan.precision.matmul == Dtype::f16) {
    warnings.emplace_back(
        "numbers are bfloat16, which need no scaling of the loss, where the plan has fp16");
  }
  return warnings;
}

}  // namespace

Export export_pytorch(const Plan& plan, const std::string& file) {
  refuse_chips(plan);
  refuse_stages(plan);
  if (plan.model_source.empty()) {
    throw Error(
        "the plan does not say which model it is for, whose layers the file for pytorch has",
        "plan by the model's name or file");
  }
  const Graph graph = graph_of_plan(plan, plan.model_source);
  const OrderedPlan ordered = ordered_plan(plan);
  const StagedModel staged =
      staged_model(graph, ordered, layered_program(graph, AttentionForm::whole));
  const ModelFacts facts = model_facts(graph, staged.model);
  const LayerClasses classes(facts, recomputes_attention(ordered, staged), staged.parts.size());
  const StageTexts texts{&facts, &classes.layers(), classes.classes(), classes.members()};

  std::vector<WrittenStage> stages;
  bool recomputes = false;
  for (std::size_t p = 0; p < staged.parts.size(); ++p) {
    stages.push_back(
        written_stage(texts, fmt::format("Stage{}", p + 1), layers_of(ordered, staged.parts[p])));
    recomputes = recomputes || stages.back().recomputes;
  }
  Export out;
  out.suggested_file = file.empty() ? "train.py" : file;
  out.warnings = warnings_of(plan);
  const PlanTables tables(ordered, staged, facts, texts, stages);
  const std::vector<std::string> launch = tables.launch(out.suggested_file, out.warnings);
  out.launch = launch.front();
  out.text = tables.heading(launch, out.warnings);
  out.text += program_file("imports");
  if (recomputes) out.text += "from functools import partial\n";
  out.text +=
      "\nimport torch\nimport torch.distributed as dist\nimport torch.nn.functional as F\nfrom "
      "torch import nn\n";
  if (recomputes) out.text += "from torch.utils.checkpoint import checkpoint\n";
  out.text += "\n# The model: its layers, of which equal ones share a class.\n\n\n";
  out.text += helper_text(classes.helpers(), recomputes) + classes.text();
  out.text += "# The plan: what each stage computes, on which ranks and in which order.\n\n\n";
  for (const WrittenStage& stage : stages) out.text += stage.text + "\n\n";
  out.text += tables.text() + "\n\n";
  out.text += program_file("runtime");
  return out;
}

}  // namespace braid
