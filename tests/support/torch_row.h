#pragma once

#include <vector>

#include "braid/run/stage_math.h"

namespace braid::test {

/// A row of libtorch's with these numbers.
TensorHandle torch_row(const std::vector<double>& numbers);
std::vector<double> numbers_of(const TensorHandle& row);

}  // namespace braid::test
