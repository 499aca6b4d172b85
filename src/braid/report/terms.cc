#include "braid/report/terms.h"

namespace braid {

std::vector<std::pair<std::string, double>> time_terms(const Metrics& m) {
  return {{"compute", m.compute_s},
          {"recomputation", m.recompute_s},
          {"exposed TP communication", m.tp_comm_s},
          {"exposed CP communication", m.cp_comm_s},
          {"exposed EP communication", m.ep_comm_s},
          {"exposed PP communication", m.pp_comm_s},
          {"exposed DP communication", m.dp_comm_s},
          {"pipeline bubble", m.bubble_s},
          {"offload", m.offload_s},
          {"optimizer", m.optimizer_s}};
}

std::vector<std::pair<std::string, double>> memory_terms(const MemoryBreakdown& memory) {
  return {{"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer state", memory.optimizer},
          {"activations", memory.activations},
          {"working space", memory.working}};
}

}  // namespace braid
