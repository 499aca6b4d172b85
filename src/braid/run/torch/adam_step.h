#pragma once

#include <cstdint>

#include <torch/types.h>

namespace braid {

/// Weights and what Adam keeps of them, in rows of equal length.
struct AdamRows {
  torch::Tensor weights, first_moment, second_moment;
};

/// Adam's update number `steps`, counted from 1, with decays of 0.9 and 0.999 and an epsilon of
/// 1e-8 (Kingma and Ba 2015, Algorithm 1). Goes through the rows in blocks that stay in a core's
/// cache, so that main memory is read and written once: 28 bytes a parameter in f32.
void adam_step(const AdamRows& rows, const torch::Tensor& gradients, double learning_rate,
               double steps);

}  // namespace braid
