#include "braid/run/torch/adam_step.h"

#include <algorithm>
#include <cmath>

#include <ATen/Parallel.h>
#include <torch/torch.h>

namespace braid {
namespace {

/// Five rows of so many numbers in f32 take 640 KiB.
constexpr std::int64_t kBlock = 32768;

}  // namespace

void adam_step(const AdamRows& rows, const torch::Tensor& gradients, double learning_rate,
               double steps) {
  const double first_scale = 1 - std::pow(0.9, steps), second_scale = 1 - std::pow(0.999, steps);
  const std::int64_t count = gradients.size(0), blocks = (count + kBlock - 1) / kBlock;
  at::parallel_for(0, blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    const torch::NoGradGuard no_gradients;
    const torch::Tensor scratch = torch::empty({std::min(kBlock, count)}, gradients.options());
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kBlock, size = std::min(kBlock, count - first);
      const torch::Tensor gradient = gradients.narrow(0, first, size);
      const torch::Tensor mean = rows.first_moment.narrow(0, first, size);
      const torch::Tensor square = rows.second_moment.narrow(0, first, size);
      torch::Tensor spread = scratch.narrow(0, 0, size);
      mean.mul_(0.9).add_(gradient, 0.1);
      square.mul_(0.999).addcmul_(gradient, gradient, 0.001);
      at::div_out(spread, square, torch::scalar_tensor(second_scale, gradients.options()));
      spread.sqrt_().add_(1e-8);
      rows.weights.narrow(0, first, size).addcdiv_(mean, spread, -learning_rate / first_scale);
    }
  });
}

}  // namespace braid
