#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/base/index.h"
#include "braid/program/contributed_operations.h"
#include "braid/program/numbers.h"

// Attention over heads, and the rotation of positions.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

/// [samples, heads, length, width].
struct HeadTensor {
  std::int64_t samples = 1, heads = 1, length = 1, width = 1;
  std::vector<double> numbers;

  Shape shape() const { return {samples, heads, length, width}; }
  std::int64_t row(std::int64_t sample, std::int64_t head, std::int64_t position) const {
    return ((sample * heads + head) * length + position) * width;
  }
};

HeadTensor empty_heads(std::int64_t samples, std::int64_t heads, std::int64_t length,
                       std::int64_t width) {
  return {samples, heads, length, width,
          std::vector<double>(at(samples * heads * length * width), 0.0)};
}

/// An operand of [samples, heads, length, width], or of [samples, length, heads · width].
HeadTensor heads_of(const NodeCall& call, std::size_t input, std::int64_t heads) {
  call.need_rank(input, 3, 4);
  const Shape& in = call.shape(input);
  if (in.size() == 4) return {in[0], in[1], in[2], in[3], call.reals(input)};
  if (heads < 1 || in[2] % heads != 0) {
    call.fail(fmt::format("{} heads do not divide input {} of the shape {}", heads, input,
                          shape_text(in)));
  }
  HeadTensor result = empty_heads(in[0], heads, in[1], in[2] / heads);
  const std::vector<double> numbers = call.reals(input);
  const Shape strides = row_major_strides({{in[0], in[1], heads, result.width}});
  const auto places = strided_places(result.shape(), {{strides[0], strides[2], strides[1], 1}});
  for (std::size_t i = 0; i < places.size(); ++i) result.numbers[i] = numbers[at(places[i])];
  return result;
}

/// Back to the form that the operand had.
DenseTensor from_heads(const HeadTensor& tensor, std::size_t rank, ElementType type) {
  if (rank == 4) return tensor_of(type, tensor.shape(), tensor.numbers);
  const Shape own = row_major_strides(tensor.shape());
  const Shape turned{tensor.samples, tensor.length, tensor.heads, tensor.width};
  std::vector<double> numbers;
  for (const std::int64_t place : strided_places(turned, {{own[0], own[2], own[1], 1}})) {
    numbers.push_back(tensor.numbers[at(place)]);
  }
  return tensor_of(type, {tensor.samples, tensor.length, tensor.heads * tensor.width}, numbers);
}

/// `past` followed by `now`, along the length.
HeadTensor joined(const NodeCall& call, std::size_t past, const HeadTensor& now) {
  if (!call.has(past)) return now;
  const HeadTensor before = heads_of(call, past, now.heads);
  if (before.samples != now.samples || before.heads != now.heads || before.width != now.width) {
    call.fail(
        fmt::format("input {} of the shape {} does not fit", past, shape_text(call.shape(past))));
  }
  HeadTensor all = empty_heads(now.samples, now.heads, before.length + now.length, now.width);
  for (std::int64_t group = 0; group < now.samples * now.heads; ++group) {
    const auto* from = before.numbers.data() + group * before.length * now.width;
    auto* to = all.numbers.data() + group * all.length * now.width;
    to = std::copy(from, from + before.length * now.width, to);
    from = now.numbers.data() + group * now.length * now.width;
    std::copy(from, from + now.length * now.width, to);
  }
  return all;
}

struct AttentionJob {
  HeadTensor q, k, v;
  double scale = 1;
  bool causal = false;
  std::int64_t window = 0;  ///< 0 for none.
  std::int64_t past = 0;    ///< Keys before that of the first query.
  /// Added to the scores, broadcast to [samples, heads, queries, keys].
  std::vector<double> bias;
  Shape bias_shape;
};

/// softmax(Q·Kᵀ · scale + bias)·V; each key's head serves q.heads / k.heads of the queries'.
HeadTensor attended(const NodeCall& call, const AttentionJob& job) {
  const HeadTensor &q = job.q, &k = job.k, &v = job.v;
  if (k.samples != q.samples || v.samples != q.samples || k.heads != v.heads || k.heads < 1 ||
      q.heads % k.heads != 0 || k.length != v.length || q.width != k.width) {
    call.fail(fmt::format("queries {}, keys {} and values {} do not fit", shape_text(q.shape()),
                          shape_text(k.shape()), shape_text(v.shape())));
  }
  const Shape scores_shape{q.samples, q.heads, q.length, k.length};
  if (call.broadcast(job.bias_shape, scores_shape) != scores_shape) {
    call.fail(fmt::format("a mask of the shape {} does not fit", shape_text(job.bias_shape)));
  }
  const auto places = broadcast_places(job.bias_shape, scores_shape);
  HeadTensor out = empty_heads(q.samples, q.heads, q.length, v.width);
  std::vector<double> scores(at(k.length));
  for (std::int64_t row = 0; row < q.samples * q.heads * q.length; ++row) {
    const std::int64_t i = row % q.length;
    const std::int64_t head = row / q.length % q.heads;
    const std::int64_t sample = row / (q.length * q.heads);
    const std::int64_t own = head / (q.heads / k.heads);
    double most = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < k.length; ++j) {
      const std::int64_t ahead = j - (i + job.past);
      const bool hidden = (job.causal && ahead > 0) || (job.window > 0 && ahead <= -job.window);
      double score = job.bias[at(places[at(row * k.length + j)])];
      for (std::int64_t e = 0; e < q.width; ++e) {
        score +=
            job.scale * q.numbers[at(row * q.width + e)] * k.numbers[at(k.row(sample, own, j) + e)];
      }
      scores[at(j)] = hidden ? -std::numeric_limits<double>::infinity() : score;
      most = std::max(most, scores[at(j)]);
    }
    double sum = 0;
    for (double& each : scores) sum += each = std::exp(each - most);
    for (std::int64_t j = 0; j < k.length; ++j) {
      for (std::int64_t e = 0; e < v.width; ++e) {
        out.numbers[at(row * v.width + e)] +=
            scores[at(j)] / sum * v.numbers[at(v.row(sample, own, j) + e)];
      }
    }
  }
  return out;
}

/// Reads a mask: booleans say what is seen, numbers are added.
void read_mask(const NodeCall& call, std::size_t input, AttentionJob& job) {
  job.bias = {0.0};
  job.bias_shape = {};
  if (!call.has(input)) return;
  job.bias = call.reals(input);
  job.bias_shape = call.shape(input);
  if (call.type(input) != ElementType::boolean) return;
  for (double& each : job.bias) {
    each = each != 0 ? 0 : -std::numeric_limits<double>::infinity();
  }
}

double scale_of(const NodeCall& call, std::int64_t width) {
  const double given = call.real("scale", 0);
  return given != 0 ? given : 1 / std::sqrt(static_cast<double>(width));
}

void need_no_softcap(const NodeCall& call) {
  if (call.real("softcap", 0) != 0) call.fail("its attribute 'softcap' is not supported");
}

Tensors results_of(const NodeCall& call, const AttentionJob& job) {
  if (call.wants(3)) call.fail("its output of scores is not supported");
  const ElementType type = call.type(0);
  return {from_heads(attended(call, job), call.rank(0), type),
          tensor_of(type, job.k.shape(), job.k.numbers),
          tensor_of(type, job.v.shape(), job.v.numbers)};
}

/// ONNX's own, since version 23.
Tensors standard_attention(const NodeCall& call) {
  call.need_inputs(3, 7);
  need_no_softcap(call);
  if (call.has(6)) call.fail("its lengths of keys are not supported");
  const std::int64_t kv_heads = call.integer("kv_num_heads", 0);
  AttentionJob job;
  job.q = heads_of(call, 0, call.integer("q_num_heads", 0));
  const HeadTensor k = heads_of(call, 1, kv_heads);
  job.k = joined(call, 4, k);
  job.v = joined(call, 5, heads_of(call, 2, kv_heads));
  job.past = job.k.length - k.length;
  job.scale = scale_of(call, job.q.width);
  job.causal = call.flag("is_causal", false);
  read_mask(call, 3, job);
  return results_of(call, job);
}

/// Adds the part of a bias that begins at `first`, one number for each head and element.
void add_head_bias(const std::vector<double>& bias, std::int64_t first, HeadTensor& tensor) {
  for (std::size_t i = 0; i < tensor.numbers.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    const std::int64_t head = place / (tensor.width * tensor.length) % tensor.heads;
    tensor.numbers[i] += bias[at(first + head * tensor.width + place % tensor.width)];
  }
}

Tensors multi_head(const NodeCall& call) {
  call.need_inputs(3, 10);
  if (call.has(4)) call.fail("its mask of padding is not supported");
  const std::int64_t heads = call.need_integer("num_heads");
  AttentionJob job;
  job.q = heads_of(call, 0, heads);
  HeadTensor k = heads_of(call, 1, heads);
  HeadTensor v = heads_of(call, 2, heads);
  if (call.has(3)) {
    const std::vector<double> bias = call.reals(3);
    const std::int64_t width = heads * job.q.width;
    if (static_cast<std::int64_t>(bias.size()) != 2 * width + heads * v.width) {
      call.fail("its bias does not fit");
    }
    add_head_bias(bias, 0, job.q);
    add_head_bias(bias, width, k);
    add_head_bias(bias, 2 * width, v);
  }
  job.k = joined(call, 6, k);
  job.v = joined(call, 7, v);
  job.past = job.k.length - k.length;
  job.scale = scale_of(call, job.q.width);
  job.causal = call.flag("unidirectional", false);
  read_mask(call, 5, job);
  return results_of(call, job);
}

/// Cosines and sines of one position's angles.
struct AngleTables {
  const std::vector<double>* cosines = nullptr;
  const std::vector<double>* sines = nullptr;
  std::int64_t width = 0;  ///< Angles of a position.
};

/// Turns pairs of elements of each row by the angles of its position, `position_of(sample, i)`: an
/// element and that half a width further on, or its neighbour (Su et al. 2021).
template <typename PositionOf>
void rotate(const NodeCall& call, HeadTensor& tensor, const AngleTables& tables, bool interleaved,
            PositionOf position_of) {
  if (2 * tables.width > tensor.width) call.fail("its tables are wider than a head");
  for (std::int64_t row = 0; row < tensor.samples * tensor.heads * tensor.length; ++row) {
    const std::int64_t sample = row / (tensor.heads * tensor.length);
    const std::int64_t first = position_of(sample, row % tensor.length) * tables.width;
    if (first < 0 || first + tables.width > static_cast<std::int64_t>(tables.cosines->size())) {
      call.fail("a position lies outside of its tables");
    }
    double* x = tensor.numbers.data() + row * tensor.width;
    for (std::int64_t e = 0; e < tables.width; ++e) {
      double& a = x[interleaved ? 2 * e : e];
      double& b = x[interleaved ? 2 * e + 1 : e + tables.width];
      const double cosine = (*tables.cosines)[at(first + e)];
      const double sine = (*tables.sines)[at(first + e)];
      const double turned = cosine * a - sine * b;
      b = sine * a + cosine * b;
      a = turned;
    }
  }
}

/// Operands: ONNX's X, cosines, sines, positions; the contributed one has positions second.
Tensors rotary(const NodeCall& call) {
  call.need_inputs(3, 4);
  const bool contributed = call.node().domain == contributed_domain;
  if (contributed && (call.real("scale", 1) != 1 || call.flag("is_packed_batching", false))) {
    call.fail("its scale or packed samples are not supported");
  }
  const std::size_t cosines_at = contributed ? 2 : 1;
  const std::size_t positions_at = contributed ? 1 : 3;
  const std::vector<double> cosines = call.reals(cosines_at);
  const std::vector<double> sines = call.reals(cosines_at + 1);
  if (sines.size() != cosines.size()) call.fail("its tables differ");
  const Shape& table = call.shape(cosines_at);
  if (table.empty()) call.fail("its tables have no dimensions");
  std::int64_t heads = call.integer("num_heads", 0);
  // Without a number of heads the tables tell their width.
  if (heads == 0 && call.rank(0) == 3) heads = call.shape(0)[2] / (2 * table.back());
  HeadTensor x = heads_of(call, 0, heads);
  const AngleTables tables{&cosines, &sines, table.back()};
  const std::vector<std::int64_t> positions =
      call.has(positions_at) ? call.integers(positions_at) : std::vector<std::int64_t>();
  const auto count = static_cast<std::int64_t>(positions.size());
  if (count > 1 && count != x.samples * x.length) call.fail("its positions do not fit");
  rotate(call, x, tables, call.flag("interleaved", false),
         [&](std::int64_t sample, std::int64_t i) {
           const std::int64_t place = sample * x.length + i;
           if (count == 0) return place;  // The tables are by sample and position.
           return count == 1 ? positions.front() + i : positions[at(place)];
         });
  return {from_heads(x, call.rank(0), call.type(0))};
}

/// Operands: query, key, value, past key and value, lengths less one, total length, tables.
Tensors group_query(const NodeCall& call) {
  call.need_inputs(3, 14);
  need_no_softcap(call);
  const std::int64_t kv_heads = call.need_integer("kv_num_heads");
  AttentionJob job;
  job.q = heads_of(call, 0, call.need_integer("num_heads"));
  HeadTensor k = heads_of(call, 1, kv_heads);
  job.past = call.has(3) ? heads_of(call, 3, kv_heads).length : 0;
  for (const std::int64_t each : call.integers(5)) {
    if (each + 1 != job.past + k.length) {
      call.fail("its samples' lengths differ from past and new ones, which is not supported");
    }
  }
  if (call.flag("do_rotary", false)) {
    const std::vector<double> cosines = call.reals(7);
    const std::vector<double> sines = call.reals(8);
    const AngleTables tables{&cosines, &sines, call.shape(7).back()};
    for (HeadTensor* each : {&job.q, &k}) {
      rotate(call, *each, tables, call.flag("rotary_interleaved", false),
             [&](std::int64_t, std::int64_t i) { return job.past + i; });
    }
  }
  job.k = joined(call, 3, k);
  job.v = joined(call, 4, heads_of(call, 2, kv_heads));
  job.scale = scale_of(call, job.q.width);
  job.causal = true;
  const std::int64_t window = call.integer("local_window_size", -1);
  job.window = window > 0 ? window : 0;
  job.bias = {0.0};
  return results_of(call, job);
}

constexpr std::array<ReferenceEntry, 4> attention_entries{{
    {"Attention", standard_attention},
    {"GroupQueryAttention", group_query},
    {"MultiHeadAttention", multi_head},
    {"RotaryEmbedding", rotary},
}};

}  // namespace

std::span<const ReferenceEntry> attention_kernels() { return attention_entries; }

}  // namespace braid
