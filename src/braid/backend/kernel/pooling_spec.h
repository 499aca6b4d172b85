#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/backend/kernel/gemm_spec.h"
#include "braid/backend/reference/window.h"

namespace braid {

/// A pooling of f32 in NCHW.
struct PoolingSpec {
  enum class Kind : std::uint8_t { max, average } kind = Kind::max;
  bool counts_padding = false;  ///< Averages are over the padding, too.
  SlidingWindow window;
};

/// The pooling that a job of pooling_patterns() is; nullopt where it has no such form.
std::optional<PoolingSpec> pooling_spec(const KernelJob& job);

/// MaxPool of one output, AveragePool and GlobalAveragePool.
std::vector<NamedPattern> pooling_patterns();

}  // namespace braid
