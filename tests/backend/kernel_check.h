#pragma once

#include <map>
#include <string>
#include <vector>

#include "braid/backend/kernel/backend.h"

namespace braid {

/// What came of making and running every kernel that backends offer for a program.
struct KernelCheck {
  std::map<std::string, int> right;    ///< By "backend: pattern", how many kernels were right.
  std::map<std::string, int> refused;  ///< Accepted, but not implemented by the library.
  std::vector<std::string> wrong;
};

/// Matches every pattern of every backend in the program and holds each kernel against the
/// reference kernels, on random inputs.
void check_kernels(const Program& program, const std::vector<DenseTensor>& inputs,
                   const std::vector<FoundBackend>& backends, KernelCheck& check);

}  // namespace braid
