#pragma once

#include <memory>
#include <string>

#include <xnnpack.h>

#include "braid/program/shape.h"

namespace braid {

/// The functions of XNNPACK that kernels call.
struct XnnpackFunctions {
  decltype(&xnn_run_operator) run = nullptr;
  decltype(&xnn_delete_operator) destroy = nullptr;
  decltype(&xnn_create_fully_connected_nc_f32) create_product = nullptr;
  decltype(&xnn_setup_fully_connected_nc_f32) setup_product = nullptr;
  decltype(&xnn_create_convolution2d_nhwc_f32) create_convolution = nullptr;
  decltype(&xnn_setup_convolution2d_nhwc_f32) setup_convolution = nullptr;
  decltype(&xnn_create_max_pooling2d_nhwc_f32) create_max_pooling = nullptr;
  decltype(&xnn_setup_max_pooling2d_nhwc_f32) setup_max_pooling = nullptr;
  decltype(&xnn_create_clamp_nc_f32) create_clamp = nullptr;
  decltype(&xnn_setup_clamp_nc_f32) setup_clamp = nullptr;
  decltype(&xnn_create_sigmoid_nc_f32) create_sigmoid = nullptr;
  decltype(&xnn_setup_sigmoid_nc_f32) setup_sigmoid = nullptr;
  decltype(&xnn_create_softmax_nc_f32) create_softmax = nullptr;
  decltype(&xnn_setup_softmax_nc_f32) setup_softmax = nullptr;
  decltype(&xnn_create_add_nd_f32) create_add = nullptr;
  decltype(&xnn_setup_add_nd_f32) setup_add = nullptr;
  decltype(&xnn_create_multiply_nd_f32) create_multiply = nullptr;
  decltype(&xnn_setup_multiply_nd_f32) setup_multiply = nullptr;
  pthreadpool_t pool = nullptr;  ///< nullptr for one thread.
};

struct XnnpackLibrary {
  std::shared_ptr<const XnnpackFunctions> functions;
  std::string problem;
};
XnnpackLibrary load_xnnpack(int threads);

}  // namespace braid
