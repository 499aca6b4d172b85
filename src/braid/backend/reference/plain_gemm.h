#pragma once

#include <cstdint>

namespace braid {

/// Adds [m × k]·[k × n] to `out` [m × n], all row-major.
inline void add_product(std::int64_t m, std::int64_t n, std::int64_t k, const double* a,
                        const double* b, double* out) {
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t inner = 0; inner < k; ++inner) {
      const double factor = a[row * k + inner];
      const double* from = b + inner * n;
      double* to = out + row * n;
      for (std::int64_t column = 0; column < n; ++column) to[column] += factor * from[column];
    }
  }
}

}  // namespace braid
