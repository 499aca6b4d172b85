#include "braid/backend/onednn/onednn_library.h"

#include <fmt/format.h>

#include "braid/base/error.h"

namespace braid {
namespace {

void check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return;
  throw Error(fmt::format("oneDNN fails to {} (status {})", what, static_cast<int>(status)));
}

/// Finds functions by name and counts those that are not there.
class FunctionFinder {
 public:
  explicit FunctionFinder(const SharedLibrary& library) : library_(&library) {}

  template <typename Function>
  void find(Function& function, const char* name) {
    function = library_->function<Function>(name);
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  const SharedLibrary* library_;
  std::string missing_;
};

std::string find_functions(const SharedLibrary& library, OneDnnFunctions& f) {
  FunctionFinder finder(library);
  finder.find(f.version, "dnnl_version");
  finder.find(f.engine_create, "dnnl_engine_create");
  finder.find(f.stream_create, "dnnl_stream_create");
  finder.find(f.stream_wait, "dnnl_stream_wait");
  finder.find(f.engine_destroy, "dnnl_engine_destroy");
  finder.find(f.stream_destroy, "dnnl_stream_destroy");
  finder.find(f.memory_desc_init_by_tag, "dnnl_memory_desc_init_by_tag");
  finder.find(f.memory_desc_init_by_strides, "dnnl_memory_desc_init_by_strides");
  finder.find(f.memory_desc_equal, "dnnl_memory_desc_equal");
  finder.find(f.memory_desc_get_size, "dnnl_memory_desc_get_size");
  finder.find(f.memory_create, "dnnl_memory_create");
  finder.find(f.memory_set_data_handle, "dnnl_memory_set_data_handle");
  finder.find(f.memory_destroy, "dnnl_memory_destroy");
  finder.find(f.primitive_desc_create, "dnnl_primitive_desc_create");
  finder.find(f.primitive_desc_destroy, "dnnl_primitive_desc_destroy");
  finder.find(f.primitive_desc_query_md, "dnnl_primitive_desc_query_md");
  finder.find(f.primitive_desc_query, "dnnl_primitive_desc_query");
  finder.find(f.primitive_create, "dnnl_primitive_create");
  finder.find(f.primitive_execute, "dnnl_primitive_execute");
  finder.find(f.primitive_destroy, "dnnl_primitive_destroy");
  finder.find(f.reorder_create, "dnnl_reorder_primitive_desc_create");
  finder.find(f.attr_create, "dnnl_primitive_attr_create");
  finder.find(f.attr_destroy, "dnnl_primitive_attr_destroy");
  finder.find(f.attr_set_post_ops, "dnnl_primitive_attr_set_post_ops");
  finder.find(f.post_ops_create, "dnnl_post_ops_create");
  finder.find(f.post_ops_destroy, "dnnl_post_ops_destroy");
  finder.find(f.post_ops_append_eltwise, "dnnl_post_ops_append_eltwise");
  finder.find(f.post_ops_append_sum, "dnnl_post_ops_append_sum");
  finder.find(f.post_ops_append_binary, "dnnl_post_ops_append_binary");
  finder.find(f.matmul_init, "dnnl_matmul_desc_init");
  finder.find(f.convolution_init, "dnnl_dilated_convolution_forward_desc_init");
  finder.find(f.eltwise_init, "dnnl_eltwise_forward_desc_init");
  finder.find(f.binary_init, "dnnl_binary_desc_init");
  finder.find(f.softmax_init, "dnnl_softmax_forward_desc_init");
  finder.find(f.pooling_init, "dnnl_pooling_v2_forward_desc_init");
  finder.find(f.layer_norm_init, "dnnl_layer_normalization_forward_desc_init");
  return finder.missing();
}

}  // namespace

OneDnnLibrary load_onednn(int threads) {
  OneDnnLibrary result;
  const SharedLibrary library("libdnnl.so.2");
  if (!library.is_loaded()) {
    result.problem = library.problem() + "; install libdnnl2";
    return result;
  }
  const auto shared = std::make_shared<OneDnnFunctions>();
  OneDnnFunctions& functions = *shared;
  const std::string missing = find_functions(library, functions);
  if (!missing.empty()) {
    result.problem = "libdnnl.so.2 has no function " + missing;
    return result;
  }
  // Debian's oneDNN has its threads from OpenMP.
  const auto set_threads = library.function<void (*)(int)>("omp_set_num_threads");
  if (set_threads != nullptr) set_threads(threads);
  check(functions.engine_create(&functions.engine, dnnl_cpu, 0), "create an engine");
  check(functions.stream_create(&functions.stream, functions.engine, dnnl_stream_default_flags),
        "create a stream");
  const dnnl_version_t* version = functions.version();
  result.version = fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
  result.functions = shared;
  return result;
}

dnnl_memory_desc_t strided_memory(const OneDnnFunctions& functions, const Shape& shape,
                                  const Shape& strides) {
  dnnl_memory_desc_t form{};
  check(functions.memory_desc_init_by_strides(&form, static_cast<int>(shape.size()), shape.data(),
                                              dnnl_f32, strides.data()),
        "describe a tensor");
  return form;
}

dnnl_memory_desc_t plain_memory(const OneDnnFunctions& functions, const Shape& shape) {
  return strided_memory(functions, shape, row_major_strides(shape));
}

dnnl_memory_desc_t laid_memory(const OneDnnFunctions& functions, const Shape& shape,
                               ImageLayout layout) {
  if (!can_lie({ElementType::f32, shape}, layout) || layout == ImageLayout::plain) {
    return plain_memory(functions, shape);
  }
  if (layout == ImageLayout::channels_last) {
    const std::int64_t channels = shape[1], width = shape[3];
    return strided_memory(functions, shape,
                          {channels * shape[2] * width, 1, channels * width, channels});
  }
  dnnl_memory_desc_t form{};
  check(functions.memory_desc_init_by_tag(&form, 4, shape.data(), dnnl_f32,
                                          channel_block() == 16 ? dnnl_nChw16c : dnnl_nChw8c),
        "describe a tensor");
  return form;
}

dnnl_memory_desc_t any_memory(const OneDnnFunctions& functions, const Shape& shape) {
  dnnl_memory_desc_t form{};
  check(functions.memory_desc_init_by_tag(&form, static_cast<int>(shape.size()), shape.data(),
                                          dnnl_f32, dnnl_format_tag_any),
        "describe a tensor");
  return form;
}

OneDnnStep::OneDnnStep(std::shared_ptr<const OneDnnFunctions> functions,
                       dnnl_primitive_desc_t description, const std::vector<Argument>& arguments)
    : functions_(std::move(functions)) {
  const dnnl_status_t status = functions_->primitive_create(&primitive_, description);
  functions_->primitive_desc_destroy(description);
  check(status, "create a primitive");
  for (const Argument& each : arguments) {
    dnnl_memory_t memory = nullptr;
    check(functions_->memory_create(&memory, &each.form, functions_->engine, DNNL_MEMORY_NONE),
          "create a tensor");
    arguments_.push_back({each.role, memory});
    buffers_.push_back(each.buffer);
  }
}

OneDnnStep::OneDnnStep(OneDnnStep&& other) noexcept
    : functions_(std::move(other.functions_)),
      primitive_(std::exchange(other.primitive_, nullptr)),
      arguments_(std::exchange(other.arguments_, {})),
      buffers_(std::move(other.buffers_)) {}

OneDnnStep::~OneDnnStep() {
  for (const dnnl_exec_arg_t& each : arguments_) functions_->memory_destroy(each.memory);
  if (primitive_ != nullptr) functions_->primitive_destroy(primitive_);
}

void OneDnnStep::run(const std::vector<void*>& buffers) const {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    check(functions_->memory_set_data_handle(arguments_[i].memory, buffers[buffers_[i]]),
          "bind a tensor");
  }
  check(functions_->primitive_execute(primitive_, functions_->stream,
                                      static_cast<int>(arguments_.size()), arguments_.data()),
        "run a primitive");
  check(functions_->stream_wait(functions_->stream), "wait for a primitive");
}

}  // namespace braid
