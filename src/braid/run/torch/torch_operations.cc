#include "braid/run/torch/torch_operations.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include <torch/torch.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"
#include "braid/run/torch/torch_experts.h"

namespace braid {
namespace {

using Sizes = std::vector<std::int64_t>;

/// A node with its operands.
class TorchCall {
 public:
  TorchCall(const Program& program, const ProgramNode& node,
            std::span<const BatchedTensor> operands)
      : program_(program), node_(node), operands_(operands) {}

  const BatchedTensor& operand(std::size_t i) const {
    if (!has(i)) fail("needs more operands");
    return operands_[i];
  }
  bool has(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] >= 0; }
  const std::string& operation() const { return node_.operation; }

  std::int64_t integer(std::string_view name, std::int64_t otherwise) const {
    const AttributeValue* value = node_.attribute(name);
    if (value == nullptr) return otherwise;
    if (const auto* number = std::get_if<std::int64_t>(value)) return *number;
    fail("has no whole number as its " + std::string(name));
  }
  double real(std::string_view name, double otherwise) const {
    const AttributeValue* value = node_.attribute(name);
    if (value == nullptr) return otherwise;
    if (const auto* number = std::get_if<double>(value)) return *number;
    fail("has no number as its " + std::string(name));
  }
  /// Of an attribute; nullopt where there is none.
  std::optional<Sizes> integers(std::string_view name) const {
    const AttributeValue* value = node_.attribute(name);
    if (value == nullptr) return std::nullopt;
    if (const auto* numbers = std::get_if<Sizes>(value)) return *numbers;
    fail("has no whole numbers as its " + std::string(name));
  }
  /// Of an operand that is a constant.
  std::optional<Sizes> constant(std::size_t i) const {
    if (!has(i)) return std::nullopt;
    const auto& tensor = program_.values[at(node_.inputs[i])].constant;
    if (!tensor) fail("takes numbers that are computed, where only constants are done");
    return numbers_of<std::int64_t>(*tensor);
  }
  bool has_attribute(std::string_view name) const { return node_.attribute(name) != nullptr; }

  /// The dimension of the library's tensor that an axis, which may count from the end, stands for.
  static std::int64_t dimension(const BatchedTensor& x, std::int64_t axis) {
    return (axis < 0 ? axis + x.rank() : axis) + (x.batched ? 1 : 0);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(program_.name + ": the node " + node_.name + " (" + node_.operation + ") " + what,
                "it cannot be trained by braid run");
  }

 private:
  const Program& program_;
  const ProgramNode& node_;
  std::span<const BatchedTensor> operands_;
};

/// The tensor with as many dimensions beside that of samples, so that it broadcasts from the right.
torch::Tensor widened(const BatchedTensor& x, std::int64_t rank) {
  if (!x.batched || x.rank() >= rank) return x.tensor;
  Sizes sizes{x.tensor.size(0)};
  sizes.resize(at(rank - x.rank() + 1), 1);
  for (std::int64_t d = 1; d < x.tensor.dim(); ++d) sizes.push_back(x.tensor.size(d));
  return x.tensor.reshape(sizes);
}

template <typename Function>
BatchedTensor of_two(const TorchCall& call, const Function& function) {
  const BatchedTensor& a = call.operand(0);
  const BatchedTensor& b = call.operand(1);
  const std::int64_t rank = std::max(a.rank(), b.rank());
  return {function(widened(a, rank), widened(b, rank)), a.batched || b.batched};
}

template <typename Function>
BatchedTensor of_one(const TorchCall& call, const Function& function) {
  const BatchedTensor& x = call.operand(0);
  return {function(x.tensor), x.batched};
}

BatchedTensor product(const TorchCall& call) {
  if (call.operand(0).rank() < 2 || call.operand(1).rank() < 2) call.fail("multiplies a vector");
  return of_two(call, [](const torch::Tensor& a, const torch::Tensor& b) { return a.matmul(b); });
}

BatchedTensor gemm(const TorchCall& call) {
  const auto turned = [&](std::size_t i, std::string_view attribute) {
    const torch::Tensor& x = call.operand(i).tensor;
    return call.integer(attribute, 0) != 0 ? x.transpose(-1, -2) : x;
  };
  torch::Tensor y = turned(0, "transA").matmul(turned(1, "transB"));
  const double alpha = call.real("alpha", 1);
  if (alpha != 1) y = y * alpha;
  if (call.has(2)) y = y + call.operand(2).tensor * call.real("beta", 1);
  return {y, call.operand(0).batched || call.operand(1).batched};
}

BatchedTensor reshape(const TorchCall& call) {
  const BatchedTensor& x = call.operand(0);
  Sizes sizes = call.constant(1).value_or(Sizes{});
  const std::int64_t before = x.batched ? 1 : 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) sizes[d] = x.tensor.size(static_cast<std::int64_t>(d) + before);
  }
  if (x.batched) sizes.insert(sizes.begin(), x.tensor.size(0));
  return {x.tensor.reshape(sizes), x.batched};
}

BatchedTensor transpose(const TorchCall& call) {
  const BatchedTensor& x = call.operand(0);
  Sizes order = call.integers("perm").value_or(Sizes{});
  for (std::int64_t d = x.rank(); order.empty() && d > 0; --d) order.push_back(d - 1);
  if (x.batched) {
    for (std::int64_t& each : order) ++each;
    order.insert(order.begin(), 0);
  }
  return {x.tensor.permute(order), x.batched};
}

BatchedTensor slice(const TorchCall& call) {
  const BatchedTensor& x = call.operand(0);
  const Sizes starts = call.constant(1).value_or(Sizes{});
  const Sizes ends = call.constant(2).value_or(Sizes{});
  Sizes axes;
  for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  axes = call.constant(3).value_or(axes);
  const Sizes steps = call.constant(4).value_or(Sizes(starts.size(), 1));
  torch::Tensor y = x.tensor;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (steps[i] < 1) call.fail("steps backwards");
    y = y.slice(TorchCall::dimension(x, axes[i]), starts[i], ends[i], steps[i]);
  }
  return {y, x.batched};
}

BatchedTensor concat(const TorchCall& call) {
  std::int64_t samples = 0;
  std::size_t count = 0;
  for (; call.has(count); ++count) {
    const BatchedTensor& each = call.operand(count);
    if (each.batched) samples = each.tensor.size(0);
  }
  std::vector<torch::Tensor> parts;
  for (std::size_t i = 0; i < count; ++i) {
    const BatchedTensor& each = call.operand(i);
    if (samples == 0 || each.batched) {
      parts.push_back(each.tensor);
      continue;
    }
    Sizes sizes(at(each.tensor.dim() + 1), -1);
    sizes.front() = samples;
    parts.push_back(each.tensor.unsqueeze(0).expand(sizes));
  }
  const BatchedTensor like{parts.front(), samples > 0};
  return {torch::cat(parts, TorchCall::dimension(like, call.integer("axis", 0))), samples > 0};
}

BatchedTensor gather(const TorchCall& call) {
  const BatchedTensor& table = call.operand(0);
  const BatchedTensor& ids = call.operand(1);
  if (table.batched || call.integer("axis", 0) != 0) {
    call.fail("looks up something other than the rows of a table");
  }
  Sizes sizes = ids.tensor.sizes().vec();
  for (std::int64_t d = 1; d < table.tensor.dim(); ++d) sizes.push_back(table.tensor.size(d));
  return {table.tensor.index_select(0, ids.tensor.reshape({-1})).reshape(sizes), ids.batched};
}

/// The axes of a reduction, from an operand or an attribute; all where neither is there.
Sizes reduced_dimensions(const TorchCall& call) {
  const BatchedTensor& x = call.operand(0);
  std::optional<Sizes> axes = call.constant(1);
  if (!axes) axes = call.integers("axes");
  if (!axes) {
    axes.emplace();
    for (std::int64_t d = 0; d < x.rank(); ++d) axes->push_back(d);
  }
  for (std::int64_t& each : *axes) each = TorchCall::dimension(x, each);
  return *axes;
}

BatchedTensor reduce(const TorchCall& call) {
  const bool keeps = call.integer("keepdims", 1) != 0;
  const Sizes dimensions = reduced_dimensions(call);
  return of_one(call, [&](const torch::Tensor& x) {
    return call.operation() == "ReduceSum" ? x.sum(dimensions, keeps) : x.mean(dimensions, keeps);
  });
}

BatchedTensor softmax(const TorchCall& call) {
  const BatchedTensor& x = call.operand(0);
  return {x.tensor.softmax(TorchCall::dimension(x, call.integer("axis", -1))), x.batched};
}

void need_last_axis(const TorchCall& call) {
  const std::int64_t axis = call.integer("axis", -1);
  if (axis != -1 && axis != call.operand(0).rank() - 1) call.fail("normalises several axes");
}

BatchedTensor layer_norm(const TorchCall& call) {
  need_last_axis(call);
  const BatchedTensor& x = call.operand(0);
  const torch::Tensor bias = call.has(2) ? call.operand(2).tensor : torch::Tensor();
  return {torch::layer_norm(x.tensor, {x.tensor.size(-1)}, call.operand(1).tensor, bias,
                            call.real("epsilon", 1e-5)),
          x.batched};
}

BatchedTensor rms_norm(const TorchCall& call) {
  need_last_axis(call);
  return of_one(call, [&](const torch::Tensor& x) {
    const torch::Tensor mean = x.square().mean(-1, true);
    return x * (mean + call.real("epsilon", 1e-5)).rsqrt() * call.operand(1).tensor;
  });
}

/// By constant means and variances.
BatchedTensor batch_norm(const TorchCall& call) {
  const BatchedTensor& x = call.operand(0);
  Sizes sizes(at(x.rank()), 1);
  sizes.at(1) = -1;
  const auto by_channel = [&](std::size_t i) { return call.operand(i).tensor.reshape(sizes); };
  const torch::Tensor scale = by_channel(1) * (by_channel(4) + call.real("epsilon", 1e-5)).rsqrt();
  return {(x.tensor - by_channel(3)) * scale + by_channel(2), x.batched};
}

/// Samples and the images of each as one dimension.
torch::Tensor images(const BatchedTensor& x) {
  return x.batched ? x.tensor.flatten(0, 1) : x.tensor;
}

BatchedTensor of_images(const BatchedTensor& x, const torch::Tensor& y) {
  if (!x.batched) return {y, false};
  Sizes sizes = y.sizes().vec();
  sizes.front() = x.tensor.size(1);
  sizes.insert(sizes.begin(), x.tensor.size(0));
  return {y.reshape(sizes), true};
}

struct WindowAttributes {
  Sizes strides, dilations;
};

/// The images with their padding of `filler`, and what windows they are read by.
torch::Tensor padded(const TorchCall& call, std::int64_t dimensions, double filler,
                     WindowAttributes& windows) {
  if (call.has_attribute("auto_pad") || call.integer("ceil_mode", 0) != 0) {
    call.fail("leaves its padding open");
  }
  windows.strides = call.integers("strides").value_or(Sizes(at(dimensions), 1));
  windows.dilations = call.integers("dilations").value_or(Sizes(at(dimensions), 1));
  const Sizes pads = call.integers("pads").value_or(Sizes(at(2 * dimensions), 0));
  Sizes from_last;
  bool any = false;
  for (std::int64_t d = dimensions - 1; d >= 0; --d) {
    from_last.push_back(pads[at(d)]);
    from_last.push_back(pads[at(d + dimensions)]);
    any = any || pads[at(d)] != 0 || pads[at(d + dimensions)] != 0;
  }
  const torch::Tensor x = images(call.operand(0));
  return any ? torch::constant_pad_nd(x, from_last, filler) : x;
}

BatchedTensor convolution(const TorchCall& call) {
  const torch::Tensor& weight = call.operand(1).tensor;
  const std::int64_t dimensions = weight.dim() - 2;
  WindowAttributes windows;
  const torch::Tensor x = padded(call, dimensions, 0, windows);
  const torch::Tensor bias = call.has(2) ? call.operand(2).tensor : torch::Tensor();
  const Sizes none(at(dimensions), 0);
  return of_images(call.operand(0),
                   torch::convolution(x, weight, bias, windows.strides, none, windows.dilations,
                                      false, none, call.integer("group", 1)));
}

BatchedTensor max_pool(const TorchCall& call) {
  const std::optional<Sizes> kernel = call.integers("kernel_shape");
  if (!kernel || kernel->size() != 2) call.fail("has no windows of two dimensions");
  WindowAttributes windows;
  const torch::Tensor x = padded(call, 2, -std::numeric_limits<double>::infinity(), windows);
  return of_images(call.operand(0),
                   torch::max_pool2d(x, *kernel, windows.strides, {0, 0}, windows.dilations));
}

BatchedTensor global_average(const TorchCall& call) {
  const BatchedTensor& x = call.operand(0);
  Sizes dimensions;
  for (std::int64_t d = 2; d < x.rank(); ++d) dimensions.push_back(TorchCall::dimension(x, d));
  return {x.tensor.mean(dimensions, true), x.batched};
}

BatchedTensor gelu(const TorchCall& call) {
  if (call.has_attribute("approximate")) call.fail("is an approximation");
  return of_one(call, [](const torch::Tensor& x) { return torch::gelu(x); });
}

/// As kBraidDomain says. Every expert computes its own tokens alone.
BatchedTensor experts(const TorchCall& call) {
  const torch::Tensor& x = call.operand(0).tensor;
  const torch::Tensor& scores = call.operand(1).tensor;
  const torch::Tensor& weights = call.operand(2).tensor;
  const torch::Tensor tokens = x.reshape({-1, x.size(-1)});
  const auto [best, chosen] =
      scores.reshape({-1, scores.size(-1)}).topk(call.integer("top_k", 1), 1);
  const torch::Tensor shares = best.softmax(1);
  torch::Tensor y = torch::zeros_like(tokens);
  for (std::int64_t e = 0; e < weights.size(0); ++e) {
    const torch::Tensor places = (chosen == e).nonzero();
    if (places.size(0) == 0) continue;
    const torch::Tensor rows = places.select(1, 0);
    const torch::Tensor share = shares.index({rows, places.select(1, 1)}).unsqueeze(1);
    const torch::Tensor biases = call.has(3) ? call.operand(3).tensor[e] : torch::Tensor();
    y = y.index_add(0, rows, one_expert(tokens.index_select(0, rows), weights[e], biases) * share);
  }
  return {y.reshape(x.sizes()), call.operand(0).batched};
}

using Compute = BatchedTensor (*)(const TorchCall&);

const std::map<std::string, Compute, std::less<>>& operations() {
  static const std::map<std::string, Compute, std::less<>> all = {
      {"Add",
       [](const TorchCall& c) {
         return of_two(c, [](const auto& a, const auto& b) { return a + b; });
       }},
      {"Sub",
       [](const TorchCall& c) {
         return of_two(c, [](const auto& a, const auto& b) { return a - b; });
       }},
      {"Mul",
       [](const TorchCall& c) {
         return of_two(c, [](const auto& a, const auto& b) { return a * b; });
       }},
      {"Div",
       [](const TorchCall& c) {
         return of_two(c, [](const auto& a, const auto& b) { return a / b; });
       }},
      {"MatMul", product},
      {"Gemm", gemm},
      {"Experts", experts},
      {"Reshape", reshape},
      {"Transpose", transpose},
      {"Slice", slice},
      {"Concat", concat},
      {"Gather", gather},
      {"ReduceSum", reduce},
      {"ReduceMean", reduce},
      {"Softmax", softmax},
      {"LayerNormalization", layer_norm},
      {"RMSNormalization", rms_norm},
      {"BatchNormalization", batch_norm},
      {"Conv", convolution},
      {"MaxPool", max_pool},
      {"GlobalAveragePool", global_average},
      {"Gelu", gelu},
      {"Relu",
       [](const TorchCall& c) { return of_one(c, [](const auto& x) { return x.relu(); }); }},
      {"Tanh",
       [](const TorchCall& c) { return of_one(c, [](const auto& x) { return x.tanh(); }); }},
      {"Sigmoid",
       [](const TorchCall& c) { return of_one(c, [](const auto& x) { return x.sigmoid(); }); }},
      {"Swish",
       [](const TorchCall& c) { return of_one(c, [](const auto& x) { return x * x.sigmoid(); }); }},
  };
  return all;
}

}  // namespace

BatchedTensor compute_node(const Program& program, const ProgramNode& node,
                           std::span<const BatchedTensor> operands) {
  const TorchCall call(program, node, operands);
  const auto found = operations().find(node.operation);
  if (found == operations().end()) call.fail("is of a kind that is not done");
  return found->second(call);
}

void compute_nodes(const Program& program, std::vector<BatchedTensor>& values) {
  for (const ProgramNode& node : program.nodes) {
    std::vector<BatchedTensor> operands;
    for (const ValueId id : node.inputs) {
      operands.push_back(id < 0 ? BatchedTensor() : values[at(id)]);
    }
    values[at(node.outputs.front())] = compute_node(program, node, operands);
  }
}

std::vector<std::string> torch_operations() {
  std::vector<std::string> names;
  for (const auto& [name, compute] : operations()) names.push_back(name);
  return names;
}

}  // namespace braid
