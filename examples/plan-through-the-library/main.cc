// Plans the training of a model through braid's libraries:
//
//     plan MODEL CLUSTER GLOBAL_BATCH SEQ_LEN      e.g. plan llama-3-8b dgx-h100:8 128 8192
//
// MODEL and CLUSTER are what `braid plan` takes: a name from its catalogue or a file.

#include <cstdlib>
#include <iostream>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/frontend/model.h"
#include "braid/planners/registry.h"
#include "braid/system/system.h"

namespace {

void print(const braid::Candidate& best) {
  const braid::Parallelism& how = best.plan.parallel;
  const braid::Metrics& metrics = best.metrics;
  std::cout << best.plan.model << " on " << how.devices() << " devices: tp " << how.tp << ", pp "
            << how.pp << ", dp " << how.dp << ", cp " << how.cp << ", ep " << how.ep
            << ", micro-batch " << how.micro_batch << '\n'
            << "iteration  " << braid::format_seconds(metrics.iteration_time_s) << '\n'
            << "tokens/s   " << braid::format_count(metrics.tokens_per_s) << '\n'
            << "memory     " << braid::format_bytes(metrics.peak_memory_bytes) << '\n';
  for (std::size_t i = 0; i < best.plan.stages.size(); ++i) {
    std::size_t layers = 0;
    for (const braid::Chunk& chunk : best.plan.stages[i].chunks) layers += chunk.layers.size();
    std::cout << "stage " << i + 1 << ": " << layers << " layers on "
              << best.plan.stages[i].devices.size() << " devices\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: plan MODEL CLUSTER GLOBAL_BATCH SEQ_LEN\n";
    return 2;
  }
  try {
    braid::ModelOptions options;
    options.seq_len = std::atoll(argv[4]);
    const braid::Graph graph = braid::load_model(argv[1], options);
    const braid::System system = braid::load_system(argv[2]);

    braid::Job job;
    job.graph = &graph;
    job.model_source = argv[1];
    job.global_batch = std::atoll(argv[3]);
    const braid::Outcome outcome =
        braid::find_planner("braid").plan(job, system, braid::SpaceOptions{}, braid::Budget{}, {});

    std::cout << "status     " << braid::name_of(outcome.status) << '\n';
    if (outcome.candidates.empty()) return 1;
    print(outcome.candidates.front());
    return 0;
  } catch (const braid::Error& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
