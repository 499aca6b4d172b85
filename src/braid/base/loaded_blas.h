#pragma once

#include <string>

namespace braid {

/// What computes the GEMMs of a library that calls BLAS through the system's libblas, as libtorch
/// does on Debian.
struct LoadedBlas {
  std::string name;           ///< "OpenBLAS", "BLIS", or the file's path; empty: none is loaded.
  bool is_reference = false;  ///< Netlib's, whose GEMMs use no vector instructions.
};

/// What this process has loaded by now.
LoadedBlas loaded_blas();

/// How many threads the loaded BLAS computes with. OpenBLAS and BLIS have threads of their own,
/// which libtorch's setting does not reach.
void set_blas_threads(int threads);

}  // namespace braid
