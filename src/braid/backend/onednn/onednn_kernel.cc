#include "braid/backend/onednn/onednn_kernel.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "braid/base/error.h"

namespace braid {

class OneDnnKernel : public ComputeKernel {
 public:
  OneDnnKernel(OneDnnKernelBuilder builder, const KernelJob& job)
      : builder_(std::move(builder)), operands_(job), addresses_(builder_.buffers_.size()) {}

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    if (builder_.copied_ >= 0) {
      const float* from = operands_.reals(inputs, builder_.copied_);
      std::copy(from, from + output.count(), output.as<float>().begin());
    }
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      OneDnnKernelBuilder::Buffer& buffer = builder_.buffers_[i];
      if (i == builder_.output_buffer()) {
        addresses_[i] = output.data.data();
      } else if (buffer.value < 0) {
        addresses_[i] = buffer.own.data();
      } else {
        // The library takes what it only reads without const, too.
        addresses_[i] = const_cast<float*>(operands_.reals(inputs, buffer.value));
      }
    }
    for (const OneDnnStep& step : builder_.steps_) step.run(addresses_);
  }

 private:
  OneDnnKernelBuilder builder_;
  Operands operands_;
  std::vector<void*> addresses_;
};

OneDnnKernelBuilder::OneDnnKernelBuilder(std::shared_ptr<const OneDnnFunctions> functions,
                                         const KernelJob& job)
    : functions_(std::move(functions)), job_(&job), buffers_(1) {}

std::size_t OneDnnKernelBuilder::buffer_of(ValueId value) {
  for (std::size_t i = 1; i < buffers_.size(); ++i) {
    if (buffers_[i].value == value) return i;
  }
  buffers_.push_back({value, {}});
  return buffers_.size() - 1;
}

std::size_t OneDnnKernelBuilder::scratch(const dnnl_memory_desc_t& form) {
  buffers_.push_back({-1, TensorBytes(functions_->memory_desc_get_size(&form))});
  return buffers_.size() - 1;
}

dnnl_primitive_desc_t OneDnnKernelBuilder::describe(const void* operation,
                                                    const OneDnnEpilogue& epilogue) const {
  dnnl_post_ops_t after = nullptr;
  dnnl_primitive_attr_t attributes = nullptr;
  functions_->post_ops_create(&after);
  functions_->attr_create(&attributes);
  if (epilogue.adds_to_output) functions_->post_ops_append_sum(after, 1);
  if (epilogue.operand != nullptr) {
    functions_->post_ops_append_binary(after, epilogue.binary, epilogue.operand);
  }
  if (epilogue.activation != dnnl_alg_kind_undef) {
    functions_->post_ops_append_eltwise(after, 1, epilogue.activation, 0, 0);
  }
  functions_->attr_set_post_ops(attributes, after);
  dnnl_primitive_desc_t description = nullptr;
  const dnnl_status_t status = functions_->primitive_desc_create(
      &description, operation, attributes, functions_->engine, nullptr);
  functions_->attr_destroy(attributes);
  functions_->post_ops_destroy(after);
  return status == dnnl_success ? description : nullptr;
}

bool OneDnnKernelBuilder::is_slow(dnnl_primitive_desc_t description) const {
  const char* implementation = nullptr;
  const dnnl_status_t status = functions_->primitive_desc_query(
      description, dnnl_query_impl_info_str, 0, static_cast<void*>(&implementation));
  return status == dnnl_success && implementation != nullptr &&
         std::string_view(implementation).starts_with("ref");
}

const dnnl_memory_desc_t& OneDnnKernelBuilder::form_in(dnnl_primitive_desc_t description,
                                                       dnnl_query_t what) const {
  return *functions_->primitive_desc_query_md(description, what, 0);
}

void OneDnnKernelBuilder::add(dnnl_primitive_desc_t description,
                              const std::vector<OneDnnStep::Argument>& arguments) {
  steps_.emplace_back(functions_, description, arguments);
}

std::size_t OneDnnKernelBuilder::reordered(std::size_t buffer, const dnnl_memory_desc_t& from,
                                           const dnnl_memory_desc_t& to) {
  if (functions_->memory_desc_equal(&from, &to) != 0) return buffer;
  const std::size_t turned = scratch(to);
  reorder(buffer, from, turned, to);
  return turned;
}

void OneDnnKernelBuilder::reorder(std::size_t from_buffer, const dnnl_memory_desc_t& from,
                                  std::size_t to_buffer, const dnnl_memory_desc_t& to) {
  dnnl_primitive_desc_t description = nullptr;
  const dnnl_status_t status = functions_->reorder_create(&description, &from, functions_->engine,
                                                          &to, functions_->engine, nullptr);
  if (status != dnnl_success) throw Error("oneDNN cannot turn a tensor into another layout");
  add(description, {{DNNL_ARG_FROM, from, from_buffer}, {DNNL_ARG_TO, to, to_buffer}});
}

std::size_t OneDnnKernelBuilder::packed(ValueId constant, const dnnl_memory_desc_t& from,
                                        const dnnl_memory_desc_t& to) {
  if (functions_->memory_desc_equal(&from, &to) != 0) return buffer_of(constant);
  const std::size_t place = scratch(to);
  // The step is run now, on two buffers of its own, and taken off again.
  reorder(0, from, 1, to);
  const OneDnnStep step = std::move(steps_.back());
  steps_.pop_back();
  auto* numbers = const_cast<float*>(Operands(*job_).reals({}, constant));
  step.run({numbers, buffers_[place].own.data()});
  return place;
}

std::unique_ptr<ComputeKernel> OneDnnKernelBuilder::kernel() {
  const KernelJob& job = *job_;
  return std::make_unique<OneDnnKernel>(std::move(*this), job);
}

}  // namespace braid
