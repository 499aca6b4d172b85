#pragma once

#include <cstdint>
#include <optional>

#include "braid/graph/graph.h"

namespace braid {

/// Elements of a tensor (1 for a scalar without dims). nullopt when a size is not positive or the
/// tensor's bits do not fit in 63 bits.
std::optional<std::int64_t> element_count(const Tensor& tensor);

/// Elements and bytes as doubles, never failing: for graphs that have passed check_graph.
double elements_of(const Tensor& tensor);
double bytes_of(const Tensor& tensor);

/// True for number formats that carry gradients.
bool is_floating(Dtype dtype);

}  // namespace braid
