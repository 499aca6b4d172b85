#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "braid/base/index.h"
#include "braid/trainers/pytorch/operator_writer.h"

// What each operation of a program is in PyTorch.

namespace braid {
namespace {

/// "2" for (2, 2), else the tuple.
std::string window_text(std::span<const std::int64_t> sizes) {
  const bool same =
      std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
  return same ? std::to_string(sizes.front()) : python_tuple(sizes);
}

/// Padding of windows over maps: as an argument of the operation, or around the map before it.
struct Padding {
  std::string argument;  ///< Empty: none.
  std::string around;    ///< As F.pad takes it; empty: none.
};

Padding padding_of(const ProgramNode& node, std::span<const std::int64_t> kernel) {
  std::vector<std::int64_t> pads = integers_of(node, "pads");
  if (pads.empty()) pads.assign(2 * kernel.size(), 0);
  bool even = true, any = false;
  std::vector<std::int64_t> from_last;
  for (std::size_t d = kernel.size(); d-- > 0;) {
    const std::int64_t before = pads[d], after = pads[d + kernel.size()];
    even = even && before == after && before <= kernel[d] / 2;
    any = any || before > 0 || after > 0;
    from_last.insert(from_last.end(), {before, after});
  }
  if (!any) return {};
  if (even) {
    return {window_text(std::span<const std::int64_t>(pads).first(kernel.size())), ""};
  }
  return {"", python_tuple(from_last)};
}

/// Positions that windows make of these.
std::int64_t positions(std::int64_t in, std::int64_t pads, std::int64_t kernel,
                       std::int64_t stride) {
  return (in + pads - kernel) / stride + 1;
}

}  // namespace

OperatorWriter::Term OperatorWriter::pointwise(const ProgramNode& node) {
  const Term& x = term(node.inputs.front());
  const char* function = node.operation == "Gelu"    ? "F.gelu"
                         : node.operation == "Relu"  ? "F.relu"
                         : node.operation == "Swish" ? "F.silu"
                         : node.operation == "Tanh"  ? "torch.tanh"
                                                     : "torch.sigmoid";
  Term y = x;
  y.text = fmt::format("{}({})", function, x.text);
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::binary(const ProgramNode& node) {
  const ValueId a = node.inputs[0], b = node.inputs[1];
  const bool is_row = facts_.stored.contains(b) && !facts_.is_parameter(b);
  if (node.operation == "Mul" && is_row && facts_.stored.at(b).size() == 1) {
    parts_.helpers.insert("scale");
    Term y = term(a);
    y.text = fmt::format("self.{}({})", member(fmt::format("Scale({})", facts_.stored.at(b)[0])),
                         term(a).text);
    y.is_atom = true;
    return y;
  }
  const std::size_t rank = std::max(term(a).shape.size(), term(b).shape.size());
  const Term &x = term(a), &z = term(b);
  const bool adds = node.operation == "Add";
  const char* sign = adds                      ? "+"
                     : node.operation == "Sub" ? "-"
                     : node.operation == "Mul" ? "*"
                                               : "/";
  Term y = x.shape.size() >= z.shape.size() ? x : z;
  y.varies = x.varies || z.varies;
  const bool first_is_plain = adds && x.shape.size() >= rank;
  y.text =
      fmt::format("{} {} {}", first_is_plain ? x.text : widened(a, rank), sign, widened(b, rank));
  y.is_atom = false;
  return y;
}

OperatorWriter::Term OperatorWriter::product(const ProgramNode& node) {
  const ValueId weight = node.inputs[1];
  if (facts_.is_parameter(weight) && facts_.stored.at(weight).size() == 2 &&
      !facts_.read_in_two_ways.contains(weight)) {
    return linear(node, true);
  }
  const std::string a = factor(node.inputs[0]), b = factor(weight);
  Term y = term(node.inputs[0]);
  y.shape.back() = term(weight).shape.back();
  y.varies = y.varies || term(weight).varies;
  y.text = fmt::format("{} @ {}", a, b);
  y.is_atom = false;
  return y;
}

/// `turned`: the weight is [k × n], and PyTorch keeps it as [n × k].
OperatorWriter::Term OperatorWriter::linear(const ProgramNode& node, bool turned) {
  const Shape& weight = facts_.stored.at(node.inputs[1]);
  const std::int64_t in = weight[turned ? 0 : 1], out = weight[turned ? 1 : 0];
  ValueId bias = node.inputs.size() > 2 ? node.inputs[2] : -1;
  if (bias < 0 && is_biased(node)) {
    bias = next_->inputs[1];
    took_next_ = true;
  }
  const std::string name =
      member(fmt::format("nn.Linear({}, {}{})", in, out, bias < 0 ? ", bias=False" : ""));
  keep(name, "weight", node.inputs[1]);
  if (bias >= 0) keep(name, "bias", bias);
  Term y = term(node.inputs[0]);
  y.text = fmt::format("self.{}({})", name, y.text);
  y.shape.back() = out;
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::gemm(const ProgramNode& node) {
  if (integer_of(node, "transB", 0) != 1 || integer_of(node, "transA", 0) != 0) {
    refuse(node, "it is turned otherwise than here");
  }
  const ValueId weight = node.inputs[1];
  if (facts_.is_parameter(weight) && !facts_.read_in_two_ways.contains(weight)) {
    return linear(node, false);
  }
  Term y = term(node.inputs[0]);
  y.text = fmt::format("F.linear({}, {}{})", y.text, term(weight).text,
                       node.inputs.size() > 2 ? ", " + term(node.inputs[2]).text : "");
  y.shape.back() = term(weight).shape.front();
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::reshape(const ProgramNode& node) {
  const Term& x = term(node.inputs[0]);
  const Shape whole = constant_numbers(facts_.program(), node, 1);
  const Shape shape = written_shape(whole);
  Term y = x;
  y.shape = shape;
  y.dropped = static_cast<int>(whole.size() - shape.size());
  if (shape == x.shape) return y;
  y.text = fmt::format("{}.reshape({}{})", factor(node.inputs[0]), x.varies ? "-1, " : "",
                       fmt::join(shape, ", "));
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::transpose(const ProgramNode& node) {
  Term y = term(node.inputs[0]);
  const Shape order = integers_of(node, "perm");
  if (order.size() != y.shape.size()) refuse(node, "it permutes other dimensions");
  const Shape before = y.shape;
  std::vector<std::string> places;
  if (y.varies) places.emplace_back("0");
  for (std::size_t d = 0; d < order.size(); ++d) {
    y.shape[d] = before[at(order[d])];
    places.push_back(std::to_string(order[d] + (y.varies ? 1 : 0)));
  }
  y.text = order == Shape{1, 0}
               ? factor(node.inputs[0]) + ".transpose(-2, -1)"
               : fmt::format("{}.permute({})", factor(node.inputs[0]), joined(places));
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::slice(const ProgramNode& node) {
  const Shape first = constant_numbers(facts_.program(), node, 1);
  const Shape last = constant_numbers(facts_.program(), node, 2);
  const Shape axes = constant_numbers(facts_.program(), node, 3);
  if (first.size() != 1 || node.inputs.size() > 4) refuse(node, "it slices several dimensions");
  Term y = term(node.inputs[0]);
  const std::size_t place = dimension(y, axes[0]);
  const std::size_t own = place - (y.varies ? 1 : 0);
  std::string range = fmt::format("{}:{}", first[0] > 0 ? std::to_string(first[0]) : "", last[0]);
  if (own + 1 == y.shape.size() && place > 1) {
    range.insert(0, "..., ");
  } else {
    for (std::size_t d = 0; d < place; ++d) range.insert(0, ":, ");
  }
  y.text = fmt::format("{}[{}]", factor(node.inputs[0]), range);
  y.shape[own] = last[0] - first[0];
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::concat(const ProgramNode& node) {
  const auto varying = std::find_if(node.inputs.begin(), node.inputs.end(),
                                    [&](ValueId id) { return term(id).varies; });
  const ValueId like = varying == node.inputs.end() ? node.inputs[0] : *varying;
  Term y = term(like);
  const std::size_t place = dimension(y, integer_of(node, "axis", 0));
  const std::size_t own = place - (y.varies ? 1 : 0);
  y.shape[own] = 0;
  std::vector<std::string> items;
  for (const ValueId id : node.inputs) {
    const Term& each = term(id);
    items.push_back(each.text);
    if (y.varies && !each.varies) {  // The same for all samples.
      items.back() = fmt::format("{}.expand(len({})", factor(id), term(like).text);
      for (std::size_t d = 0; d < each.shape.size(); ++d) items.back() += ", -1";
      items.back() += ")";
    }
    y.shape[own] += each.shape[own];
  }
  const std::string dim = own + 1 == y.shape.size() ? "-1" : std::to_string(place);
  y.text = fmt::format("torch.cat({}, dim={})", python_tuple(items), dim);
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::gather(const ProgramNode& node) {
  const ValueId table = node.inputs[0];
  const auto found = facts_.stored.find(table);
  if (found == facts_.stored.end() || found->second.size() != 2 ||
      integer_of(node, "axis", 0) != 0) {
    refuse(node, "it looks up something other than the rows of a table");
  }
  Term y = term(node.inputs[1]);
  y.shape.push_back(found->second[1]);
  if (facts_.is_parameter(table) && !facts_.read_in_two_ways.contains(table)) {
    const std::string name =
        member(fmt::format("nn.Embedding({}, {})", found->second[0], found->second[1]));
    keep(name, "weight", table);
    y.text = fmt::format("self.{}({})", name, y.text);
  } else {
    y.text = fmt::format("F.embedding({}, {})", y.text, term(table).text);
  }
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::reduce(const ProgramNode& node) {
  Term y = term(node.inputs[0]);
  Shape axes = integers_of(node, "axes");
  if (node.inputs.size() > 1) axes = constant_numbers(facts_.program(), node, 1);
  if (axes.size() != 1) refuse(node, "it reduces several dimensions");
  const std::size_t place = dimension(y, axes[0]);
  const bool keeps = integer_of(node, "keepdims", 1) != 0;
  y.text = fmt::format("{}.{}(dim={}{})", factor(node.inputs[0]),
                       node.operation == "ReduceSum" ? "sum" : "mean", place,
                       keeps ? ", keepdim=True" : "");
  const auto own = y.shape.begin() + static_cast<std::ptrdiff_t>(place - (y.varies ? 1 : 0));
  if (keeps) {
    *own = 1;
  } else {
    y.shape.erase(own);
  }
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::softmax(const ProgramNode& node) {
  Term y = term(node.inputs[0]);
  y.text = fmt::format("{}.softmax(dim={})", factor(node.inputs[0]), integer_of(node, "axis", -1));
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::normalization(const ProgramNode& node) {
  Term y = term(node.inputs[0]);
  const bool rms = node.operation == "RMSNormalization";
  const std::int64_t width = y.shape.back();
  const bool is_whole = rms || node.inputs.size() > 2;
  if (!is_whole) {
    y.text = fmt::format("F.layer_norm({}, ({},), {})", y.text, width, term(node.inputs[1]).text);
  } else {
    if (rms) parts_.helpers.insert("rms_norm");
    const std::string name = member(fmt::format("{}({})", rms ? "RMSNorm" : "nn.LayerNorm", width));
    keep(name, "weight", node.inputs[1]);
    if (!rms) keep(name, "bias", node.inputs[2]);
    y.text = fmt::format("self.{}({})", name, y.text);
  }
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::batch_normalization(const ProgramNode& node) {
  Term y = term(node.inputs[0]);
  if (y.dropped != 1) refuse(node, "it normalises no maps");
  parts_.helpers.insert("fixed_batch_norm");
  const std::string name = member(fmt::format("FixedBatchNorm({})", y.shape.front()));
  keep(name, "weight", node.inputs[1]);
  keep(name, "bias", node.inputs[2]);
  y.text = fmt::format("self.{}({})", name, y.text);
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::convolution(const ProgramNode& node) {
  Term y = term(node.inputs[0]);
  const auto found = facts_.stored.find(node.inputs[1]);
  if (y.dropped != 1 || found == facts_.stored.end() || found->second.size() != 4) {
    refuse(node, "it convolves no maps of two dimensions");
  }
  const Shape& weight = found->second;
  const Shape kernel(weight.begin() + 2, weight.end());
  const Shape strides = integers_of(node, "strides");
  const std::int64_t groups = integer_of(node, "group", 1);
  const Padding padding = padding_of(node, kernel);
  std::string module =
      fmt::format("nn.Conv2d({}, {}, {}", weight[1] * groups, weight[0], window_text(kernel));
  if (strides != Shape{1, 1}) module += ", stride=" + window_text(strides);
  if (!padding.argument.empty()) module += ", padding=" + padding.argument;
  if (groups > 1) module += fmt::format(", groups={}", groups);
  if (node.inputs.size() < 3) module += ", bias=False";
  const std::string name = member(module + ")");
  keep(name, "weight", node.inputs[1]);
  if (node.inputs.size() > 2) keep(name, "bias", node.inputs[2]);
  const std::string x =
      padding.around.empty() ? y.text : fmt::format("F.pad({}, {})", y.text, padding.around);
  const Shape pads = integers_of(node, "pads");
  y.text = fmt::format("self.{}({})", name, x);
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t padded = pads.empty() ? 0 : pads[d] + pads[d + 2];
    y.shape[d + 1] = positions(y.shape[d + 1], padded, kernel[d], strides[d]);
  }
  y.shape[0] = weight[0];
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::max_pool(const ProgramNode& node) {
  Term y = term(node.inputs[0]);
  const Shape kernel = integers_of(node, "kernel_shape"), strides = integers_of(node, "strides");
  if (y.dropped != 1 || kernel.size() != 2) refuse(node, "it pools no maps of two dimensions");
  const Padding padding = padding_of(node, kernel);
  const std::string x = padding.around.empty()
                            ? y.text
                            : fmt::format("F.pad({}, {}, value=-math.inf)", y.text, padding.around);
  y.text =
      fmt::format("F.max_pool2d({}, {}, stride={}{})", x, window_text(kernel), window_text(strides),
                  padding.argument.empty() ? "" : ", padding=" + padding.argument);
  const Shape pads = integers_of(node, "pads");
  for (std::size_t d = 0; d < 2; ++d) {
    const std::int64_t padded = pads.empty() ? 0 : pads[d] + pads[d + 2];
    y.shape[d + 1] = positions(y.shape[d + 1], padded, kernel[d], strides[d]);
  }
  y.is_atom = true;
  return y;
}

OperatorWriter::Term OperatorWriter::average_pool(const ProgramNode& node) {
  Term y = term(node.inputs[0]);
  if (y.dropped != 1) refuse(node, "it pools no maps of two dimensions");
  y.text = fmt::format("{}.mean(dim=(2, 3), keepdim=True)", factor(node.inputs[0]));
  y.shape = {y.shape.front(), 1, 1};
  y.is_atom = true;
  return y;
}

}  // namespace braid
