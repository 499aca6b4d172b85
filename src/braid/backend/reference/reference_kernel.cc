#include "braid/backend/reference/reference_kernel.h"

#include <algorithm>
#include <unordered_map>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/program/contributed_operations.h"

namespace braid {
namespace {

using Kernels = std::unordered_map<std::string_view, ReferenceKernel>;

Kernels collect_kernels() {
  Kernels kernels;
  for (const auto& list :
       {unary_kernels(), binary_kernels(), quantization_kernels(), gemm_kernels(),
        convolution_kernels(), pooling_kernels(), normalization_kernels(), reduction_kernels(),
        loss_kernels(), view_kernels(), movement_kernels(), gather_kernels(), resize_kernels(),
        grid_sample_kernels(), constant_kernels(), recurrent_kernels(), attention_kernels()}) {
    for (const ReferenceEntry& entry : list) kernels.emplace(entry.operation, entry.kernel);
  }
  return kernels;
}

const Kernels& all_kernels() {
  static const Kernels all = collect_kernels();
  return all;
}

}  // namespace

ReferenceKernel reference_kernel(std::string_view domain, std::string_view operation) {
  if (!domain.empty() && !(domain == contributed_domain && is_contributed(operation))) {
    return nullptr;
  }
  const auto found = all_kernels().find(operation);
  return found == all_kernels().end() ? nullptr : found->second;
}

std::vector<std::string_view> reference_operations() {
  std::vector<std::string_view> names;
  for (const auto& [name, kernel] : all_kernels()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace braid
