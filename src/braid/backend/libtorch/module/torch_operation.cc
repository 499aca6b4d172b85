#include "braid/backend/libtorch/module/torch_operation.h"

#include <utility>

namespace braid {

TorchOperation torch_operation(std::function<at::Tensor(TorchOperands)> compute,
                               std::function<void(TorchOperands, at::Tensor&)> into) {
  return {[f = std::move(compute)](TorchOperands x) { return std::vector<at::Tensor>{f(x)}; },
          std::move(into)};
}

const TorchEntries& torch_entries() {
  static const TorchEntries all = [] {
    TorchEntries entries = torch_pointwise_entries();
    for (const TorchEntries& part :
         {torch_movement_entries(), torch_window_entries(), torch_row_entries()}) {
      entries.insert(part.begin(), part.end());
    }
    return entries;
  }();
  return all;
}

}  // namespace braid
