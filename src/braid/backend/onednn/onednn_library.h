#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.h>

#include "braid/backend/kernel/layout.h"
#include "braid/backend/kernel/shared_library.h"
#include "braid/program/shape.h"

namespace braid {

/// The functions of oneDNN's interface to C that kernels call.
struct OneDnnFunctions {
  decltype(&dnnl_version) version = nullptr;
  decltype(&dnnl_engine_create) engine_create = nullptr;
  decltype(&dnnl_stream_create) stream_create = nullptr;
  decltype(&dnnl_stream_wait) stream_wait = nullptr;
  decltype(&dnnl_engine_destroy) engine_destroy = nullptr;
  decltype(&dnnl_stream_destroy) stream_destroy = nullptr;
  decltype(&dnnl_memory_desc_init_by_tag) memory_desc_init_by_tag = nullptr;
  decltype(&dnnl_memory_desc_init_by_strides) memory_desc_init_by_strides = nullptr;
  decltype(&dnnl_memory_desc_equal) memory_desc_equal = nullptr;
  decltype(&dnnl_memory_desc_get_size) memory_desc_get_size = nullptr;
  decltype(&dnnl_memory_create) memory_create = nullptr;
  decltype(&dnnl_memory_set_data_handle) memory_set_data_handle = nullptr;
  decltype(&dnnl_memory_destroy) memory_destroy = nullptr;
  decltype(&dnnl_primitive_desc_create) primitive_desc_create = nullptr;
  decltype(&dnnl_primitive_desc_destroy) primitive_desc_destroy = nullptr;
  decltype(&dnnl_primitive_desc_query_md) primitive_desc_query_md = nullptr;
  decltype(&dnnl_primitive_desc_query) primitive_desc_query = nullptr;
  decltype(&dnnl_primitive_create) primitive_create = nullptr;
  decltype(&dnnl_primitive_execute) primitive_execute = nullptr;
  decltype(&dnnl_primitive_destroy) primitive_destroy = nullptr;
  decltype(&dnnl_reorder_primitive_desc_create) reorder_create = nullptr;
  decltype(&dnnl_primitive_attr_create) attr_create = nullptr;
  decltype(&dnnl_primitive_attr_destroy) attr_destroy = nullptr;
  decltype(&dnnl_primitive_attr_set_post_ops) attr_set_post_ops = nullptr;
  decltype(&dnnl_post_ops_create) post_ops_create = nullptr;
  decltype(&dnnl_post_ops_destroy) post_ops_destroy = nullptr;
  decltype(&dnnl_post_ops_append_eltwise) post_ops_append_eltwise = nullptr;
  decltype(&dnnl_post_ops_append_sum) post_ops_append_sum = nullptr;
  decltype(&dnnl_post_ops_append_binary) post_ops_append_binary = nullptr;
  decltype(&dnnl_matmul_desc_init) matmul_init = nullptr;
  decltype(&dnnl_dilated_convolution_forward_desc_init) convolution_init = nullptr;
  decltype(&dnnl_eltwise_forward_desc_init) eltwise_init = nullptr;
  decltype(&dnnl_binary_desc_init) binary_init = nullptr;
  decltype(&dnnl_softmax_forward_desc_init) softmax_init = nullptr;
  decltype(&dnnl_pooling_v2_forward_desc_init) pooling_init = nullptr;
  decltype(&dnnl_layer_normalization_forward_desc_init) layer_norm_init = nullptr;
  dnnl_engine_t engine = nullptr;
  dnnl_stream_t stream = nullptr;

  OneDnnFunctions() = default;
  OneDnnFunctions(const OneDnnFunctions&) = delete;
  OneDnnFunctions& operator=(const OneDnnFunctions&) = delete;
  ~OneDnnFunctions() {
    if (stream != nullptr) stream_destroy(stream);
    if (engine != nullptr) engine_destroy(engine);
  }
};

/// The loaded library with an engine and a stream of the CPU; nullptr functions and a problem where
/// it cannot be had.
struct OneDnnLibrary {
  std::shared_ptr<const OneDnnFunctions> functions;
  std::string version, problem;
};
OneDnnLibrary load_onednn(int threads);

/// A description of f32 numbers: row-major, or with strides.
dnnl_memory_desc_t plain_memory(const OneDnnFunctions& functions, const Shape& shape);
dnnl_memory_desc_t strided_memory(const OneDnnFunctions& functions, const Shape& shape,
                                  const Shape& strides);
/// An image as it lies in a layout; tensors of other ranks are plain.
dnnl_memory_desc_t laid_memory(const OneDnnFunctions& functions, const Shape& shape,
                               ImageLayout layout);
/// In whatever layout the library likes.
dnnl_memory_desc_t any_memory(const OneDnnFunctions& functions, const Shape& shape);

/// A step of a kernel: a primitive that reads and writes buffers.
///
/// Arguments are bound to buffers by number; run() is given their addresses.
class OneDnnStep {
 public:
  struct Argument {
    int role = 0;  ///< DNNL_ARG_…
    dnnl_memory_desc_t form{};
    std::size_t buffer = 0;
  };

  /// Takes the description over. Throws Error where the library fails.
  OneDnnStep(std::shared_ptr<const OneDnnFunctions> functions, dnnl_primitive_desc_t description,
             const std::vector<Argument>& arguments);
  OneDnnStep(OneDnnStep&& other) noexcept;
  OneDnnStep& operator=(OneDnnStep&&) = delete;
  OneDnnStep(const OneDnnStep&) = delete;
  OneDnnStep& operator=(const OneDnnStep&) = delete;
  ~OneDnnStep();

  void run(const std::vector<void*>& buffers) const;

 private:
  std::shared_ptr<const OneDnnFunctions> functions_;
  dnnl_primitive_t primitive_ = nullptr;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::vector<std::size_t> buffers_;
};

}  // namespace braid
