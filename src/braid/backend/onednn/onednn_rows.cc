#include "braid/backend/onednn/onednn_kernels.h"
#include "braid/base/index.h"
#include "braid/program/node_call.h"

namespace braid {

bool onednn_takes_layer_norm(const KernelJob& job) {
  const TensorForm& in = job.leaf_form(0);
  if (in.type != ElementType::f32 || in.count() == 0 || in.shape.size() < 2 ||
      in.shape.size() > 5 || job.output_form().type != ElementType::f32) {
    return false;
  }
  const NodeCall call(job.region, job.region.nodes.front(), {});
  if (call.axis(call.integer("axis", -1), in.shape.size()) + 1 != in.shape.size()) return false;
  for (std::size_t leaf = 1; leaf < job.leaves.size(); ++leaf) {
    if (job.leaf_form(leaf) != TensorForm{ElementType::f32, {in.shape.back()}}) return false;
  }
  return job.region.nodes.front().outputs.size() == 1;
}

std::unique_ptr<ComputeKernel> onednn_layer_norm(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job) {
  OneDnnKernelBuilder builder(functions, job);
  const NodeCall call(job.region, job.region.nodes.front(), {});
  const auto form = plain_memory(*functions, job.leaf_form(0).shape);
  const auto row = plain_memory(*functions, {job.leaf_form(0).shape.back()});
  const bool shifts = job.leaves.size() > 2;
  const unsigned flags =
      static_cast<unsigned>(dnnl_use_scale) | (shifts ? static_cast<unsigned>(dnnl_use_shift) : 0U);
  dnnl_layer_normalization_desc_t operation{};
  if (functions->layer_norm_init(&operation, dnnl_forward_inference, &form, nullptr,
                                 static_cast<float>(call.real("epsilon", 1e-5)),
                                 flags) != dnnl_success) {
    return nullptr;
  }
  const auto description = builder.describe(&operation, {});
  if (description == nullptr) return nullptr;
  std::vector<OneDnnStep::Argument> arguments{
      {DNNL_ARG_SRC, form, builder.buffer_of(job.leaves[0])},
      {DNNL_ARG_DST, form, builder.output_buffer()},
      {DNNL_ARG_SCALE, row, builder.buffer_of(job.leaves[1])}};
  if (shifts) arguments.push_back({DNNL_ARG_SHIFT, row, builder.buffer_of(job.leaves[2])});
  builder.add(description, arguments);
  return builder.kernel();
}

bool onednn_takes_transpose(const KernelJob& job) {
  const TensorForm& in = job.leaf_form(0);
  return in.type == ElementType::f32 && in.count() > 0 && in.shape.size() >= 2 &&
         in.shape.size() <= 6;
}

/// A copy from strides in the order of the output.
std::unique_ptr<ComputeKernel> onednn_transpose(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job) {
  OneDnnKernelBuilder builder(functions, job);
  const NodeCall call(job.region, job.region.nodes.front(), {});
  const Shape& in = job.leaf_form(0).shape;
  const Shape& out = job.output_form().shape;
  const Shape* order = call.integers("perm");
  const Shape in_strides = row_major_strides(in);
  Shape strides;
  for (std::size_t d = 0; d < in.size(); ++d) {
    strides.push_back(in_strides[order == nullptr ? in.size() - 1 - d : at((*order)[d])]);
  }
  builder.reorder(builder.buffer_of(job.leaves[0]), strided_memory(*functions, out, strides),
                  builder.output_buffer(), plain_memory(*functions, out));
  return builder.kernel();
}

}  // namespace braid
