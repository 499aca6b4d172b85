#include "braid/planners/job/chain_job.h"

#include <algorithm>

#include "braid/base/infinity.h"
#include "braid/graph/predicts_mtp.h"
#include "braid/planners/job/job_layers.h"

namespace braid {

ChainJob chain_job(const Job& job, const System& system) {
  ChainJob chain;
  chain.job = &job;
  chain.system = &system;
  chain.layers = layer_options(job);
  const Profile& layers = chain.layers->layers();
  for (const ProfileLayer& layer : layers.layers) chain.kind_of_layer.push_back(layer.kind);
  chain.edges = layers.edges;
  chain.shared = layers.shared;
  if (job.trainer.does.gradient_placeholders && job.graph != nullptr) {
    chain.weight_shapes = std::make_shared<WeightShapes>(*job.graph);
  }
  chain.heavy_end = job.graph != nullptr && predicts_mtp(*job.graph);
  std::size_t hops = 0;
  chain.least_hop_bytes = kInfinity;
  for (const ProfileEdge& edge : chain.edges) {
    if (edge.target != edge.source + 1) continue;
    ++hops;
    chain.least_hop_bytes = std::min(chain.least_hop_bytes, edge.bytes);
  }
  chain.branched = hops + 1 < layers.layers.size();
  if (chain.branched || hops == 0) chain.least_hop_bytes = 0;
  if (!chain.branched && hops == chain.edges.size()) {
    for (const ProfileEdge& edge : chain.edges) chain.hop_bytes.push_back(edge.bytes);
  }
  return chain;
}

}  // namespace braid
