#include "braid/backend/backends.h"

#include "braid/backend/cblas/cblas_backend.h"
#ifdef BRAID_WITH_EIGEN
#include "braid/backend/eigen/eigen_backend.h"
#endif
#ifdef BRAID_WITH_LIBXSMM
#include "braid/backend/libxsmm/libxsmm_backend.h"
#endif
#ifdef BRAID_WITH_ONEDNN
#include "braid/backend/onednn/onednn_backend.h"
#endif
#ifdef BRAID_WITH_XNNPACK
#include "braid/backend/xnnpack/xnnpack_backend.h"
#endif

namespace braid {
namespace {

/// A backend whose headers were missing when braid was built.
[[maybe_unused]] FoundBackend not_built(const char* name, const char* package) {
  return {name, std::nullopt,
          std::string("braid was built without it; install ") + package + " and build again"};
}

}  // namespace

std::vector<FoundBackend> find_backends(const BackendOptions& options) {
  std::vector<FoundBackend> found;
  found.push_back(blis_backend(options));
#ifdef BRAID_WITH_EIGEN
  found.push_back(eigen_backend(options));
#else
  found.push_back(not_built("eigen", "libeigen3-dev"));
#endif
#ifdef BRAID_WITH_LIBXSMM
  found.push_back(libxsmm_backend(options));
#else
  found.push_back(not_built("libxsmm", "libxsmm-dev"));
#endif
#ifdef BRAID_WITH_ONEDNN
  found.push_back(onednn_backend(options));
#else
  found.push_back(not_built("onednn", "libdnnl-dev"));
#endif
  found.push_back(openblas_backend(options));
#ifdef BRAID_WITH_XNNPACK
  found.push_back(xnnpack_backend(options));
#else
  found.push_back(not_built("xnnpack", "libxnnpack-dev and libpthreadpool-dev"));
#endif
  return found;
}

}  // namespace braid
