#pragma once

namespace braid {

/// Bytes or seconds for each parameter of a stage.
struct PerParameter {
  double dense = 0, expert = 0;

  double of(double dense_parameters, double expert_parameters) const {
    return dense_parameters * dense + expert_parameters * expert;
  }
};

}  // namespace braid
