#include "braid/backend/xnnpack/xnnpack_library.h"

#include <pthreadpool.h>

#include "braid/backend/kernel/shared_library.h"

namespace braid {
namespace {

template <typename Function>
bool find_function(const SharedLibrary& library, Function& function, const char* name) {
  function = library.function<Function>(name);
  return function != nullptr;
}

bool find_functions(const SharedLibrary& library, XnnpackFunctions& f) {
  return find_function(library, f.run, "xnn_run_operator") &&
         find_function(library, f.destroy, "xnn_delete_operator") &&
         find_function(library, f.create_product, "xnn_create_fully_connected_nc_f32") &&
         find_function(library, f.setup_product, "xnn_setup_fully_connected_nc_f32") &&
         find_function(library, f.create_convolution, "xnn_create_convolution2d_nhwc_f32") &&
         find_function(library, f.setup_convolution, "xnn_setup_convolution2d_nhwc_f32") &&
         find_function(library, f.create_max_pooling, "xnn_create_max_pooling2d_nhwc_f32") &&
         find_function(library, f.setup_max_pooling, "xnn_setup_max_pooling2d_nhwc_f32") &&
         find_function(library, f.create_clamp, "xnn_create_clamp_nc_f32") &&
         find_function(library, f.setup_clamp, "xnn_setup_clamp_nc_f32") &&
         find_function(library, f.create_sigmoid, "xnn_create_sigmoid_nc_f32") &&
         find_function(library, f.setup_sigmoid, "xnn_setup_sigmoid_nc_f32") &&
         find_function(library, f.create_softmax, "xnn_create_softmax_nc_f32") &&
         find_function(library, f.setup_softmax, "xnn_setup_softmax_nc_f32") &&
         find_function(library, f.create_add, "xnn_create_add_nd_f32") &&
         find_function(library, f.setup_add, "xnn_setup_add_nd_f32") &&
         find_function(library, f.create_multiply, "xnn_create_multiply_nd_f32") &&
         find_function(library, f.setup_multiply, "xnn_setup_multiply_nd_f32");
}

}  // namespace

XnnpackLibrary load_xnnpack(int threads) {
  const SharedLibrary library("libXNNPACK.so.0");
  if (!library.is_loaded()) return {nullptr, library.problem() + "; install libxnnpack0"};
  XnnpackFunctions functions;
  decltype(&xnn_initialize) initialize = nullptr;
  if (!find_functions(library, functions) ||
      !find_function(library, initialize, "xnn_initialize")) {
    return {nullptr, "libXNNPACK.so.0 lacks a function"};
  }
  if (initialize(nullptr) != xnn_status_success) {
    return {nullptr, "XNNPACK does not run on this processor"};
  }
  if (threads > 1) {
    const SharedLibrary pools("libpthreadpool.so.0");
    const auto create = pools.function<decltype(&pthreadpool_create)>("pthreadpool_create");
    if (create == nullptr)
      return {nullptr, "libpthreadpool.so.0 is missing; install libpthreadpool0"};
    functions.pool = create(static_cast<std::size_t>(threads));
  }
  return {std::make_shared<const XnnpackFunctions>(functions), {}};
}

}  // namespace braid
