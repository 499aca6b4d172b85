#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/graph/working_precision.h"
#include "braid/plan/direct_plan.h"
#include "braid/planners/job/outcomes.h"
#include "braid/planners/job/space.h"
#include "braid/planners/trainer_choice.h"
#include "braid/system/catalogue.h"
#include "braid/trainers/registry.h"

// A trainer can be told every configuration of the space that is searched for it, of every job that
// is planned for it: a plan that is made for a trainer is exported to it.

namespace braid {
namespace {

struct SpaceOfTrainer {
  Graph graph;
  System system;
  Job job;
  SpaceOptions space;
};

std::optional<SpaceOfTrainer> space_of_trainer(const Graph& model, const std::string& cluster,
                                               const std::string& trainer) {
  SpaceOfTrainer made{model, load_system(cluster), {}, {}};
  const bool old = cluster.starts_with("p3");
  made.job.precision = parse_precision(old ? "fp16" : "bf16");
  set_working_precision(made.graph, made.job.precision.activation, made.job.precision.weight);
  made.job.graph = &made.graph;
  made.job.global_batch = 32;
  made.job.model_source = model.name;
  const TrainerFile file = load_trainer(trainer);
  const TrainerNeeds needs{&made.job, &made.system, &made.space, {}};
  try {
    check_trainer(file, needs);
  } catch (const Error&) {  // That it cannot run the job.
    return std::nullopt;
  }
  set_trainer(file, made.system, made.job, made.space);
  adapt_graph(made.job.trainer.does, made.graph);
  return made;
}

/// Some configurations of the space, with their trades of time for memory.
std::vector<Configuration> some_configurations(const SpaceOfTrainer& of, std::size_t count,
                                               std::mt19937& random) {
  const SpaceLimits limits = space_limits(of.job, of.system);
  const std::vector<Configuration> base = base_configurations(limits, of.space);
  const bool has_host = of.system.groups.front().chip.host.has_value();
  std::vector<Configuration> some;
  for (std::size_t i = 0; i < count && !base.empty(); ++i) {
    Configuration one = base[random() % base.size()];
    for (auto steps = random() % 5; steps > 0; --steps) {
      const std::vector<Configuration> next = relaxations(one, limits, of.space, has_host);
      if (!next.empty()) one = next[random() % next.size()];
    }
    some.push_back(one);
  }
  return some;
}

/// What the trainer says against the configuration; empty: it is written.
std::string export_refusal(const SpaceOfTrainer& of, const Configuration& configuration,
                           const std::string& trainer) {
  Plan plan = direct_plan(
      *of.job.graph,
      {to_parallelism(configuration), of.job.precision, of.job.trainer, of.job.global_batch},
      of.system, {});
  plan.model_source = of.job.model_source;
  try {
    export_plan(plan, trainer);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// How many of some configurations are written; what is refused fails the test.
std::size_t written_of(SpaceOfTrainer& of, const std::string& trainer, std::mt19937& random) {
  of.job.graph = &of.graph;
  std::size_t written = 0;
  std::string refused;
  for (const Configuration& one : some_configurations(of, 6, random)) {
    const std::string reason = export_refusal(of, one, trainer);
    written += reason.empty() ? 1 : 0;
    if (reason.empty() || !refused.empty()) continue;
    refused = fmt::format("{} for {} on {}, tp {} pp {} dp {} cp {} ep {} zero {}: {}",
                          of.graph.name, trainer, of.system.name, one.tp, one.pp, one.dp, one.cp,
                          one.ep, static_cast<int>(one.zero), reason);
  }
  EXPECT_EQ(refused, "");
  return written;
}

TEST(PlannedExports, AllOfTheSpaceOfATrainerIsWritten) {
  std::mt19937 random(5);
  std::size_t written = 0, jobs_written = 0;
  for (const char* name :
       {"llama-3-8b", "qwen3-8b", "qwen3-30b-a3b", "mixtral-8x7b", "deepseek-v2", "deepseek-v3-mtp",
        "gpt-oss-120b", "gemma-3-1b", "gpt2", "phi-3-mini", "t5-large", "bert-base",
        "nemotron-h-8b", "nemotron-3-super-mtp", "mistral-7b", "llama-3-70b"}) {
    const Graph model = load_model(name, {.seq_len = 512, .dims = {}});
    for (const std::string& trainer : exported_trainers()) {
      for (const char* cluster :
           {"dgx-h100:16", "p3.8xlarge:12", "gb200-nvl72:20", "tpu-v5e-pod:16"}) {
        auto of = space_of_trainer(model, cluster, trainer);
        if (!of) continue;
        const std::size_t some = written_of(*of, trainer, random);
        written += some;
        jobs_written += some > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(written, 300U);
  EXPECT_GT(jobs_written, 50U);
}

}  // namespace
}  // namespace braid
