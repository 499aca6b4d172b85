#include "braid/schedule/order_form.h"

#include <algorithm>

#include "braid/base/error.h"

namespace braid {
namespace {

std::string stage_number(std::size_t stage) { return "stage " + std::to_string(stage + 1); }

}  // namespace

void require_own_devices(const StageGraph& graph, const std::string& name) {
  std::vector<std::int64_t> owner(graph.stages.size(), -1);
  for (std::size_t s = 0; s < graph.stages.size(); ++s) {
    std::int64_t& first = owner[static_cast<std::size_t>(graph.stages[s].device)];
    if (first >= 0) {
      throw Error(stage_number(s) + " shares device " + std::to_string(graph.stages[s].device) +
                      " with stage " + std::to_string(first + 1),
                  name + " is defined for one stage per device");
    }
    first = static_cast<std::int64_t>(s);
  }
}

void require_one_size(const StageGraph& graph, const std::string& name) {
  const std::int64_t size = graph.stages.front().micro_batch;
  for (std::size_t s = 1; s < graph.stages.size(); ++s) {
    if (graph.stages[s].micro_batch == size) continue;
    throw Error(stage_number(s) + " has micro-batches of " +
                    std::to_string(graph.stages[s].micro_batch) + " samples, stage 1 of " +
                    std::to_string(size),
                name + " is defined for one size; kFkB takes several");
  }
}

void require_one_round(const StageGraph& graph, const std::string& name) {
  if (graph.rounds == 1) return;
  throw Error("stage 1 is to run " + std::to_string(graph.rounds) + " rounds without a flush",
              name + " flushes after each; PipeDream-2BW does not");
}

void require_chain(const StageGraph& graph, const std::string& name,
                   const std::function<std::size_t(std::size_t)>& device_of) {
  std::vector<int> handovers(graph.stages.size(), 0);
  for (const StageEdge& edge : graph.edges) {
    if (edge.target != edge.source + 1 || ++handovers[static_cast<std::size_t>(edge.source)] > 1) {
      throw Error("stage " + std::to_string(edge.source + 1) + " hands over to stage " +
                      std::to_string(edge.target + 1) + " beside the chain",
                  name + " is defined for a chain of stages");
    }
  }
  for (std::size_t s = 0; s < graph.stages.size(); ++s) {
    if (s + 1 < graph.stages.size() && handovers[s] == 0) {
      throw Error(stage_number(s) + " does not hand over to stage " + std::to_string(s + 2),
                  name + " is defined for a chain of stages");
    }
    if (static_cast<std::size_t>(graph.stages[s].device) != device_of(s)) {
      throw Error(stage_number(s) + " is on device " + std::to_string(graph.stages[s].device),
                  name + " wants it on device " + std::to_string(device_of(s)));
    }
  }
}

void append_update(std::vector<Work>& order, std::int32_t stage, std::int64_t round) {
  order.push_back({WorkKind::reduce_gradients, stage, round});
  order.push_back({WorkKind::optimizer, stage, round});
}

}  // namespace braid
