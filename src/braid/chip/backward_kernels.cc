#include "braid/chip/backward_kernels.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "braid/base/index.h"
#include "braid/graph/gradients.h"
#include "braid/graph/pointwise_figures.h"
#include "braid/graph/tensor_size.h"

namespace braid {
namespace {

/// One kernel's part of a tensor's gradient; kernel -1: it comes from DRAM.
struct GradientPart {
  std::int32_t kernel = -1;
  double elements = 0;
};
using GradientParts = std::vector<GradientPart>;

class BackwardBuilder {
 public:
  BackwardBuilder(KernelBuilder& builder, const ForwardPass& forward)
      : builder_(builder), graph_(builder.graph()), forward_(forward) {
    for (const TensorId tensor : forward.leaving) {
      if (builder.writer(tensor) < 0 || !is_floating(graph_.tensors[at(tensor)].dtype)) continue;
      GradientParts& parts = parts_[builder.shown(tensor)];
      if (parts.empty()) parts.push_back({-1, elements(tensor)});
    }
  }

  void add(OperatorId id) {
    const Operator& op = graph_.operators[at(id)];
    if (const auto* movement = std::get_if<DataMovement>(&op.kind);
        movement != nullptr && movement->view) {
      return;
    }
    op_ = &op;
    id_ = id;
    gradients_ = gradients_of(graph_, op);
    // Views of parameters are parameters.
    const auto is_parameter = [&](TensorId tensor) {
      return graph_.tensors[at(builder_.shown(tensor))].is_parameter;
    };
    for (const TensorId tensor : gradients_.inputs) {
      if (is_parameter(tensor)) gradients_.parameters.push_back(builder_.shown(tensor));
    }
    std::erase_if(gradients_.inputs, is_parameter);
    if (gradients_.inputs.empty() && gradients_.parameters.empty()) return;
    given_.clear();
    for (const TensorId output : gradients_.outputs) {
      const auto found = parts_.find(builder_.shown(output));
      if (found == parts_.end()) continue;
      add_up(found->first, found->second);
      given_.insert(given_.end(), found->second.begin(), found->second.end());
    }
    if (given_.empty()) return;
    std::visit([this](const auto& kind) { make(kind); }, op.kind);
  }

  /// Gradients of what came in are written out.
  void finish() {
    for (auto& [tensor, parts] : parts_) {
      if (builder_.writer(tensor) >= 0) continue;
      add_up(tensor, parts);
      for (const GradientPart& part : parts) {
        if (part.kernel < 0) continue;
        builder_.kernel(part.kernel).dram_bytes += part.elements * builder_.kernels().word_bytes;
      }
    }
  }

  void add_steps() {
    for (OperatorId id = forward_.last; id-- > forward_.first;) {
      const Operator& op = graph_.operators[at(id)];
      double numbers = 0;
      std::vector<std::int32_t> writers;
      for (const TensorId tensor : distinct(op.inputs)) {
        const auto found = parameters_.find(builder_.shown(tensor));
        if (found == parameters_.end()) continue;
        numbers += elements(found->first);
        writers.insert(writers.end(), found->second.begin(), found->second.end());
        parameters_.erase(found);
      }
      if (writers.empty()) continue;
      constexpr std::int64_t kWidth = 1024;
      const auto count = static_cast<std::int64_t>(numbers);
      const std::int64_t width = std::min(kWidth, count);
      Kernel kernel = elementwise_kernel(op.name + ".step", 1, width, ceil_div(count, width));
      // An fp32 copy and two moments are read and written, gradients and parameters read,
      // parameters written.
      kernel.dram_bytes = numbers * (3 * builder_.kernels().word_bytes + 2 * kAdamStateBytes);
      const std::int32_t number = push(std::move(kernel));
      for (const std::int32_t writer : writers) builder_.connect(writer, number);
    }
  }

 private:
  double elements(TensorId tensor) const { return elements_of(graph_.tensors[at(tensor)]); }
  bool wants(TensorId tensor) const {
    return std::find(gradients_.inputs.begin(), gradients_.inputs.end(), tensor) !=
           gradients_.inputs.end();
  }

  std::int32_t push(Kernel kernel) {
    kernel.backward = true;
    return builder_.push(std::move(kernel));
  }
  std::string named(const char* suffix) const { return op_->name + suffix; }

  /// Leaves the parts of a gradient as they are where they lie side by side, else adds them up.
  void add_up(TensorId tensor, GradientParts& parts) {
    if (parts.size() < 2) return;
    double together = 0;
    for (const GradientPart& part : parts) together += part.elements;
    if (together <= elements(tensor)) return;
    const std::int32_t sum =
        push(builder_.over(graph_.tensors[at(tensor)].name + ".gradient_sum", tensor));
    read(parts, sum);
    parts = {{sum, elements(tensor)}};
  }

  void read(const GradientParts& parts, std::int32_t kernel) {
    for (const GradientPart& part : parts) {
      if (part.kernel >= 0) {
        builder_.connect(part.kernel, kernel);
      } else {
        builder_.kernel(kernel).dram_bytes += part.elements * builder_.kernels().word_bytes;
      }
    }
  }
  void read_tensors(const std::vector<TensorId>& tensors, std::int32_t kernel) {
    for (const TensorId tensor : tensors) {
      if (!graph_.tensors[at(builder_.shown(tensor))].is_parameter) builder_.read(tensor, kernel);
    }
  }

  void give(TensorId tensor, std::int32_t kernel) {
    GradientPart part{kernel, output_elements(builder_.kernel(kernel))};
    parts_[builder_.shown(tensor)].push_back(part);
  }
  void give_all(std::int32_t kernel) {
    for (const TensorId tensor : gradients_.inputs) give(tensor, kernel);
  }

  /// The kernel makes the gradients of all parameters of the operator.
  void give_parameters(std::int32_t kernel, bool adds_up_on_chip) {
    const double word = builder_.kernels().word_bytes;
    Kernel& maker = builder_.kernel(kernel);
    maker.writes_out = true;
    for (const TensorId tensor : gradients_.parameters) {
      std::vector<std::int32_t>& makers = parameters_[builder_.shown(tensor)];
      // What another reader of the parameter made is read and added to.
      if (!makers.empty()) maker.dram_bytes += elements(tensor) * word;
      makers.push_back(kernel);
      if (adds_up_on_chip) maker.gradient_bytes += elements(tensor) * word;
    }
  }

  /// A GEMM by parameters: gradients of its rows and of its parameters.
  void make_layer(Kernel rows, Kernel parameters) {
    if (!gradients_.inputs.empty()) {
      const std::int32_t kernel = push(std::move(rows));
      read(given_, kernel);
      give_all(kernel);
    }
    if (!gradients_.parameters.empty()) {
      parameters.tiled = KernelDim::k;
      const std::int32_t kernel = push(std::move(parameters));
      read(given_, kernel);
      read_tensors(gradients_.weight_reads, kernel);
      give_parameters(kernel, true);
    }
  }

  void make(const MatMul& kind) {
    if (kind.weight) {
      make_layer(gemm_kernel(named(".input_gradient"), kind.batch, kind.k, kind.n, kind.m, true),
                 gemm_kernel(named(".weight_gradient"), kind.batch, kind.n, kind.m, kind.k, false));
      return;
    }
    const TensorId first = op_->inputs.front();
    const TensorId second = op_->inputs[op_->inputs.size() > 1 ? 1 : 0];
    if (wants(first)) {
      const std::int32_t kernel =
          push(gemm_kernel(named(".first_gradient"), kind.batch, kind.k, kind.n, kind.m, false));
      read(given_, kernel);
      builder_.read(second, kernel);
      give(first, kernel);
    }
    if (wants(second)) {
      const std::int32_t kernel =
          push(gemm_kernel(named(".second_gradient"), kind.batch, kind.n, kind.m, kind.k, false));
      read(given_, kernel);
      builder_.read(first, kernel);
      give(second, kernel);
    }
  }

  void make(const Attention& kind) {
    if (gradients_.inputs.empty()) return;
    const AttentionOperands operands = attention_operands(graph_, *op_, kind);
    const std::int64_t heads = kind.samples * kind.heads;
    const std::int64_t kv_heads = kind.samples * kind.kv_heads;
    // Query heads that share keys and values add to their gradients inside the GEMM.
    const std::int64_t rows = kind.q_len * std::max<std::int64_t>(1, kind.heads / kind.kv_heads);
    std::int32_t weights = forward_.first_kernel[at(id_)] + 1;
    if (kind.flash) {
      const std::int32_t scores = push(
          gemm_kernel(named(".scores_again"), heads, kind.kv_len, kind.qk_dim, kind.q_len, false));
      builder_.read(operands.queries, scores);
      builder_.read(operands.keys, scores);
      weights = push(elementwise_kernel(named(".softmax_again"), heads, kind.kv_len, kind.q_len));
      builder_.connect(scores, weights);
      builder_.kernel(scores).late = builder_.kernel(weights).late = true;
    }
    if (wants(operands.values)) {
      const std::int32_t values = push(
          gemm_kernel(named(".values_gradient"), kv_heads, kind.v_dim, rows, kind.kv_len, false));
      read(given_, values);
      builder_.connect(weights, values);
      give(operands.values, values);
    }
    const std::int32_t probabilities = push(
        gemm_kernel(named(".weights_gradient"), heads, kind.kv_len, kind.v_dim, kind.q_len, false));
    read(given_, probabilities);
    builder_.read(operands.values, probabilities);
    const std::int32_t scores =
        push(elementwise_kernel(named(".softmax_gradient"), heads, kind.kv_len, kind.q_len));
    builder_.connect(probabilities, scores);
    builder_.connect(weights, scores);
    if (wants(operands.queries)) {
      const std::int32_t kernel = push(gemm_kernel(named(".queries_gradient"), heads, kind.qk_dim,
                                                   kind.kv_len, kind.q_len, false));
      builder_.connect(scores, kernel);
      builder_.read(operands.keys, kernel);
      give(operands.queries, kernel);
    }
    if (wants(operands.keys)) {
      const std::int32_t kernel = push(
          gemm_kernel(named(".keys_gradient"), kv_heads, kind.qk_dim, rows, kind.kv_len, false));
      builder_.connect(scores, kernel);
      builder_.read(operands.queries, kernel);
      give(operands.keys, kernel);
    }
    for (const TensorId tensor : gradients_.inputs) {  // What is added to the scores.
      if (tensor == operands.queries || tensor == operands.keys || tensor == operands.values) {
        continue;
      }
      const std::int32_t kernel = push(builder_.over(named(".bias_gradient"), tensor));
      builder_.connect(scores, kernel);
      give(tensor, kernel);
    }
    if (gradients_.parameters.empty()) return;
    const std::int32_t kernel =
        push(builder_.over(named(".weight_gradient"), gradients_.parameters.front()));
    builder_.connect(scores, kernel);
    give_parameters(kernel, true);
  }

  void make(const Convolution& kind) {
    const std::int64_t groups = std::max<std::int64_t>(1, kind.groups);
    const std::int64_t multiplied =
        kind.samples * (kind.transposed ? kind.in_positions : kind.out_positions);
    make_layer(convolution_kernel(named(".input_gradient"), kind, true),
               gemm_kernel(named(".weight_gradient"), groups, kind.out_channels / groups,
                           multiplied, kind.in_channels / groups * kind.kernel_positions, false));
  }

  void make(const Recurrent& kind) {
    const std::int64_t rows = kind.steps * kind.rows;
    const std::int32_t gates = forward_.first_kernel[at(id_)];
    const auto before = static_cast<std::int32_t>(builder_.kernels().kernels.size());
    make_layer(gemm_kernel(named(".input_gradient"), 1, kind.k, kind.n, rows, true),
               gemm_kernel(named(".weight_gradient"), 1, kind.n, rows, kind.k, false));
    builder_.connect(gates, before);
  }

  void make(const MoeRouter& kind) {
    make_layer(
        gemm_kernel(named(".input_gradient"), 1, kind.hidden, kind.experts, kind.tokens, true),
        gemm_kernel(named(".weight_gradient"), 1, kind.experts, kind.tokens, kind.hidden, false));
  }

  void make(const MoeExperts& kind) {
    const std::int32_t up = forward_.first_kernel[at(id_)], down = up + 1;
    const std::int64_t rows = ceil_div(kind.tokens * kind.top_k, kind.experts);
    const std::int64_t wide = kind.inner * (kind.matrices - 1);
    const TensorId tokens = op_->inputs.front();
    for (const TensorId tensor : gradients_.inputs) {
      if (tensor == tokens) continue;  // The others scale what the experts give.
      const std::int32_t kernel = push(builder_.over(named(".scales_gradient"), tensor));
      read(given_, kernel);
      builder_.connect(down, kernel);
      give(tensor, kernel);
    }
    const std::int32_t inner = push(gemm_kernel(named(".down.input_gradient"), kind.experts,
                                                kind.inner, kind.hidden, rows, true));
    read(given_, inner);
    const std::int32_t activation =
        push(elementwise_kernel(named(".activation_gradient"), kind.experts, wide, rows));
    builder_.connect(inner, activation);
    builder_.connect(up, activation);
    if (wants(tokens)) {
      const std::int32_t kernel = push(
          gemm_kernel(named(".up.input_gradient"), kind.experts, kind.hidden, wide, rows, true));
      builder_.connect(activation, kernel);
      give(tokens, kernel);
    }
    // Which parameters are whose is not said: they are shared out by the GEMMs' sizes.
    if (gradients_.parameters.empty()) return;
    Kernel of_down = gemm_kernel(named(".down.weight_gradient"), kind.experts, kind.hidden, rows,
                                 kind.inner, false);
    Kernel of_up =
        gemm_kernel(named(".up.weight_gradient"), kind.experts, wide, rows, kind.hidden, false);
    of_down.tiled = of_up.tiled = KernelDim::k;
    const std::int32_t first = push(std::move(of_down)), second = push(std::move(of_up));
    read(given_, first);
    builder_.connect(up, first);
    builder_.connect(activation, second);
    builder_.read(tokens, second);
    for (const std::int32_t kernel : {first, second}) {
      Kernel& maker = builder_.kernel(kernel);
      maker.writes_out = true;
      maker.gradient_bytes = output_elements(maker) * builder_.kernels().word_bytes;
      for (const TensorId tensor : gradients_.parameters) {
        parameters_[builder_.shown(tensor)].push_back(kernel);
      }
    }
  }

  void make(const Embedding& kind) {
    if (gradients_.parameters.empty()) return;
    Kernel kernel = elementwise_kernel(named(".weight_gradient"), 1, kind.width, kind.lookups);
    kernel.dram_bytes = output_elements(kernel) * builder_.kernels().word_bytes;
    const std::int32_t number = push(std::move(kernel));
    read(given_, number);
    give_parameters(number, false);
  }

  template <typename Kind>
  void make(const Kind& kind) {
    if (!passes_on(kind)) {
      for (std::size_t i = 0; i < gradients_.inputs.size(); ++i) {
        const TensorId tensor = gradients_.inputs[i];
        std::string name = named(".input_gradient");
        if (i > 0) name += "." + std::to_string(i + 1);
        const std::int32_t kernel = push(builder_.over(std::move(name), tensor));
        read(given_, kernel);
        read_tensors(gradients_.input_reads, kernel);
        if constexpr (std::is_same_v<Kind, Elementwise>) {
          // A mask of a byte an element, written by the forward kernel and read here.
          if (kind.keeps == Elementwise::Keeps::mask) {
            const auto mask = static_cast<double>(kind.elements);
            if (i == 0) builder_.kernel(forward_.first_kernel[at(id_)]).dram_bytes += mask;
            builder_.kernel(kernel).dram_bytes += mask;
          }
        }
        give(tensor, kernel);
      }
    }
    if (gradients_.parameters.empty()) return;
    const std::int32_t kernel =
        push(builder_.over(named(".weight_gradient"), gradients_.outputs.front()));
    read(given_, kernel);
    read_tensors(gradients_.weight_reads, kernel);
    give_parameters(kernel, true);
  }

  /// A sum hands its gradient to what it adds, as it is.
  template <typename Kind>
  bool passes_on([[maybe_unused]] const Kind& kind) {
    if constexpr (std::is_same_v<Kind, Elementwise>) {
      if (kind.keeps != Elementwise::Keeps::nothing || kind.flops_per_element != 1 ||
          op_->inputs.size() < 2) {
        return false;
      }
      double wide = 0;
      for (const GradientPart& part : given_) wide += part.elements;
      for (const TensorId tensor : gradients_.inputs) {
        if (elements(tensor) != wide) return false;
      }
      for (const TensorId tensor : gradients_.inputs) {
        GradientParts& parts = parts_[builder_.shown(tensor)];
        parts.insert(parts.end(), given_.begin(), given_.end());
      }
      return true;
    }
    return false;
  }

  KernelBuilder& builder_;
  const Graph& graph_;
  const ForwardPass& forward_;
  std::map<TensorId, GradientParts> parts_;  ///< By tensor that is shown.
  std::map<TensorId, std::vector<std::int32_t>> parameters_;
  // Of the operator at hand.
  const Operator* op_ = nullptr;
  OperatorId id_ = 0;
  Gradients gradients_;
  GradientParts given_;
};

}  // namespace

Kernel convolution_kernel(std::string name, const Convolution& kind, bool input_gradient) {
  const std::int64_t groups = std::max<std::int64_t>(1, kind.groups);
  const std::int64_t in = kind.in_channels / groups, out = kind.out_channels / groups;
  const std::int64_t positions =
      std::max<std::int64_t>(1, input_gradient ? kind.in_positions : kind.out_positions);
  const std::int64_t multiplied = kind.transposed ? kind.in_positions : kind.out_positions;
  const std::int64_t depth = (input_gradient ? out : in) * kind.kernel_positions * multiplied;
  return gemm_kernel(std::move(name), groups, input_gradient ? in : out, ceil_div(depth, positions),
                     kind.samples * positions, true);
}

void add_backward_kernels(KernelBuilder& builder, const ForwardPass& forward, bool step) {
  BackwardBuilder backward(builder, forward);
  for (OperatorId id = forward.last; id-- > forward.first;) backward.add(id);
  backward.finish();
  if (step) backward.add_steps();
}

}  // namespace braid
