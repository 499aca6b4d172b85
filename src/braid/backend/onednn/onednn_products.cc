
#include "braid/backend/kernel/convolution_spec.h"
#include "braid/backend/onednn/onednn_kernels.h"

namespace braid {
namespace {

using Argument = OneDnnStep::Argument;

Shape stacked(const GemmSpec& spec, std::int64_t rows, std::int64_t columns, bool shared) {
  if (spec.batch == 1) return {rows, columns};
  return {shared ? 1 : spec.batch, rows, columns};
}

/// A [rows × columns] matrix of each pair, stored the other way round when `transposed`.
dnnl_memory_desc_t matrix_form(const OneDnnFunctions& functions, const Shape& shape,
                               bool transposed) {
  Shape strides = row_major_strides(shape);
  const std::size_t last = shape.size() - 1;
  if (transposed) {
    strides[last] = shape[last - 1];
    strides[last - 1] = 1;
  }
  return strided_memory(functions, shape, strides);
}

/// The spatial sizes of a window as the library takes them.
struct WindowSizes {
  Shape strides, dilations, before, after;
};

WindowSizes window_sizes(const SlidingWindow& window) {
  WindowSizes sizes{window.strides, window.dilations, window.before, {}};
  for (std::size_t d = 0; d < window.in.size(); ++d) {
    // The library counts what lies between elements, and wants padding that the output fills.
    --sizes.dilations[d];
    const std::int64_t extent = window.dilations[d] * (window.kernel[d] - 1) + 1;
    sizes.after.push_back((window.out[d] - 1) * window.strides[d] + extent - window.in[d] -
                          window.before[d]);
  }
  return sizes;
}

Shape with_spatial(Shape shape, const Shape& spatial) {
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

/// Descriptions of a convolution's tensors as they lie in the program.
struct ConvolutionForms {
  dnnl_memory_desc_t x{}, weight{}, bias{}, y{};
  Shape weight_shape;
};

ConvolutionForms convolution_forms(const OneDnnFunctions& functions, const ConvolutionSpec& spec) {
  ConvolutionForms forms;
  forms.x = plain_memory(functions, with_spatial({spec.samples, spec.in_channels}, spec.window.in));
  forms.y =
      plain_memory(functions, with_spatial({spec.samples, spec.out_channels}, spec.window.out));
  const std::int64_t in = spec.in_channels / spec.groups;
  forms.weight_shape = spec.groups == 1 ? Shape{spec.out_channels, in}
                                        : Shape{spec.groups, spec.out_channels / spec.groups, in};
  forms.weight_shape = with_spatial(forms.weight_shape, spec.window.kernel);
  forms.weight = plain_memory(functions, forms.weight_shape);
  forms.bias = plain_memory(functions, {spec.out_channels});
  return forms;
}

}  // namespace

std::unique_ptr<ComputeKernel> onednn_product(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job) {
  const GemmSpec spec = *gemm_spec(job);
  OneDnnKernelBuilder builder(functions, job);
  const auto a = matrix_form(*functions, stacked(spec, spec.m, spec.k, false), spec.transposes_a);
  const Shape b_shape = stacked(spec, spec.k, spec.n, spec.shares_b);
  const auto b = matrix_form(*functions, b_shape, spec.transposes_b);
  const auto out = plain_memory(*functions, stacked(spec, spec.m, spec.n, false));
  const auto bias = plain_memory(*functions, stacked(spec, 1, spec.n, true));
  const bool packs = job.region.values[static_cast<std::size_t>(spec.b)].constant != nullptr;
  const auto wanted = packs ? any_memory(*functions, b_shape) : b;
  const bool has_bias = spec.added == GemmSpec::Added::row;
  const bool adds = spec.added == GemmSpec::Added::matrix;
  dnnl_matmul_desc_t operation{};
  if (functions->matmul_init(&operation, &a, &wanted, has_bias ? &bias : nullptr, &out) !=
      dnnl_success) {
    return nullptr;
  }
  const dnnl_alg_kind_t activation = spec.relu   ? dnnl_eltwise_relu
                                     : spec.gelu ? onednn_gelu(*spec.gelu)
                                                 : dnnl_alg_kind_undef;
  const auto description =
      builder.describe(&operation, {.adds_to_output = adds, .activation = activation});
  if (description == nullptr) return nullptr;
  const dnnl_memory_desc_t packed = builder.form_in(description, dnnl_query_weights_md);
  std::vector<Argument> arguments{
      {DNNL_ARG_SRC, a, builder.buffer_of(spec.a)},
      {DNNL_ARG_WEIGHTS, packed,
       packs ? builder.packed(spec.b, b, packed) : builder.buffer_of(spec.b)},
      {DNNL_ARG_DST, out, builder.output_buffer()}};
  if (has_bias) arguments.push_back({DNNL_ARG_BIAS, bias, builder.buffer_of(spec.bias)});
  if (adds) builder.copies_to_output(spec.bias);
  builder.add(description, arguments);
  return builder.kernel();
}

namespace {

dnnl_primitive_desc_t convolution_description(const OneDnnKernelBuilder& builder,
                                              const ConvolutionSpec& spec,
                                              const ConvolutionForms& wanted) {
  const OneDnnFunctions& functions = builder.functions();
  const WindowSizes window = window_sizes(spec.window);
  dnnl_convolution_desc_t operation{};
  const dnnl_status_t status = functions.convolution_init(
      &operation, dnnl_forward_inference, dnnl_convolution_direct, &wanted.x, &wanted.weight,
      spec.bias >= 0 ? &wanted.bias : nullptr, &wanted.y, window.strides.data(),
      window.dilations.data(), window.before.data(), window.after.data());
  if (status != dnnl_success) return nullptr;
  return builder.describe(&operation,
                          {.adds_to_output = spec.residual >= 0,
                           .activation = spec.relu ? dnnl_eltwise_relu : dnnl_alg_kind_undef});
}

/// The convolution itself, from and to buffers with these forms.
void add_convolution(OneDnnKernelBuilder& builder, const ConvolutionSpec& spec,
                     const ConvolutionForms& plain, dnnl_primitive_desc_t description,
                     const Argument& x, const Argument& y) {
  const dnnl_memory_desc_t weight = builder.form_in(description, dnnl_query_weights_md);
  std::vector<Argument> arguments{
      x, y, {DNNL_ARG_WEIGHTS, weight, builder.packed(spec.weight, plain.weight, weight)}};
  if (spec.bias >= 0) {
    arguments.push_back({DNNL_ARG_BIAS, plain.bias, builder.buffer_of(spec.bias)});
  }
  builder.add(description, arguments);
}

}  // namespace

std::unique_ptr<ComputeKernel> onednn_convolution(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job,
    const KernelLayouts& layouts) {
  const ConvolutionSpec spec = *convolution_spec(job);
  OneDnnKernelBuilder builder(functions, job);
  const ConvolutionForms plain = convolution_forms(*functions, spec);
  ConvolutionForms wanted = plain;
  wanted.weight = any_memory(*functions, plain.weight_shape);
  wanted.x = laid_memory(*functions, job.form(spec.x).shape, layouts.reads);
  wanted.y = laid_memory(*functions, job.output_form().shape, layouts.writes);
  const auto description = convolution_description(builder, spec, wanted);
  if (description == nullptr) return nullptr;
  if (layouts != KernelLayouts{} && builder.is_slow(description)) {
    functions->primitive_desc_destroy(description);
    return nullptr;
  }
  if (spec.residual >= 0) builder.copies_to_output(spec.residual);
  add_convolution(builder, spec, plain, description,
                  {DNNL_ARG_SRC, wanted.x, builder.buffer_of(spec.x)},
                  {DNNL_ARG_DST, wanted.y, builder.output_buffer()});
  return builder.kernel();
}

std::unique_ptr<ComputeKernel> onednn_turning_convolution(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job) {
  const ConvolutionSpec spec = *convolution_spec(job);
  OneDnnKernelBuilder builder(functions, job);
  const ConvolutionForms plain = convolution_forms(*functions, spec);
  ConvolutionForms wanted = plain;
  wanted.weight = any_memory(*functions, plain.weight_shape);
  wanted.x = any_memory(*functions, job.form(spec.x).shape);
  wanted.y = any_memory(*functions, job.output_form().shape);
  const auto description = convolution_description(builder, spec, wanted);
  if (description == nullptr) return nullptr;
  const dnnl_memory_desc_t x = builder.form_in(description, dnnl_query_src_md);
  const dnnl_memory_desc_t y = builder.form_in(description, dnnl_query_dst_md);
  const bool turns_y = functions->memory_desc_equal(&y, &plain.y) == 0;
  const std::size_t y_buffer = turns_y ? builder.scratch(y) : builder.output_buffer();
  if (spec.residual >= 0 && turns_y) {
    builder.reorder(builder.buffer_of(spec.residual), plain.y, y_buffer, y);
  } else if (spec.residual >= 0) {
    builder.copies_to_output(spec.residual);
  }
  add_convolution(builder, spec, plain, description,
                  {DNNL_ARG_SRC, x, builder.reordered(builder.buffer_of(spec.x), plain.x, x)},
                  {DNNL_ARG_DST, y, y_buffer});
  if (turns_y) builder.reorder(y_buffer, y, builder.output_buffer(), plain.y);
  return builder.kernel();
}

std::unique_ptr<ComputeKernel> onednn_pooling(
    const std::shared_ptr<const OneDnnFunctions>& functions, const KernelJob& job,
    ImageLayout layout) {
  const PoolingSpec spec = *pooling_spec(job);
  OneDnnKernelBuilder builder(functions, job);
  const auto x = laid_memory(*functions, job.leaf_form(0).shape, layout);
  const auto y = laid_memory(*functions, job.output_form().shape, layout);
  const WindowSizes window = window_sizes(spec.window);
  const auto algorithm = spec.kind == PoolingSpec::Kind::max ? dnnl_pooling_max
                         : spec.counts_padding               ? dnnl_pooling_avg_include_padding
                                                             : dnnl_pooling_avg_exclude_padding;
  dnnl_pooling_v2_desc_t operation{};
  if (functions->pooling_init(&operation, dnnl_forward_inference, algorithm, &x, &y,
                              window.strides.data(), spec.window.kernel.data(),
                              window.dilations.data(), window.before.data(),
                              window.after.data()) != dnnl_success) {
    return nullptr;
  }
  const auto description = builder.describe(&operation, {});
  if (description == nullptr) return nullptr;
  builder.add(description, {{DNNL_ARG_SRC, x, builder.buffer_of(job.leaves[0])},
                            {DNNL_ARG_DST, y, builder.output_buffer()}});
  return builder.kernel();
}

}  // namespace braid
