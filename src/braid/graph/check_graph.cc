#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/graph/graph.h"
#include "braid/graph/operator_fields.h"
#include "braid/graph/tensor_size.h"
#include "braid/graph/topological_order.h"

namespace braid {
namespace {

class Checker {
 public:
  Checker(const Graph& graph, const std::string& file) : graph_(graph), file_(file) {}

  void check_counts() const {
    constexpr auto most = static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max());
    if (graph_.tensors.size() >= most || graph_.operators.size() >= most ||
        graph_.layers.size() >= most) {
      fail("graph", "has more tensors, operators or layers than 2^31", "use a smaller graph");
    }
    if (graph_.samples < 1) fail("samples", "must be at least 1", "give the samples of one pass");
    if (graph_.seq_len < 0) fail("seq_len", "must not be negative", "use 0 without a sequence");
  }

  void check_tensors() const {
    for (std::size_t id = 0; id < graph_.tensors.size(); ++id) {
      const Tensor& tensor = graph_.tensors[id];
      const auto where = [&] { return fmt::format("tensor {} ({})", id, tensor.name); };
      if (!element_count(tensor)) {
        fail(where(), "its size is not positive or does not fit in 64 bits",
             "give every dimension a positive size");
      }
      if (tensor.producer < -1 || tensor.producer >= operator_count()) {
        fail(where(), fmt::format("its producer {} is no operator", tensor.producer),
             "use -1 for inputs and parameters");
      }
      if (tensor.producer < 0) continue;
      const Operator& producer = graph_.operators[static_cast<std::size_t>(tensor.producer)];
      if (tensor.is_parameter) {
        fail(where(), fmt::format("is a parameter but computed by {}", producer.name),
             "a parameter has no producer");
      }
      if (std::find(producer.outputs.begin(), producer.outputs.end(), static_cast<TensorId>(id)) ==
          producer.outputs.end()) {
        fail(where(), fmt::format("{} does not list it among its outputs", producer.name),
             "make producer and outputs agree");
      }
    }
  }

  void check_operators() const {
    std::unordered_set<std::string_view> names;
    names.reserve(graph_.operators.size());
    for (std::size_t id = 0; id < graph_.operators.size(); ++id) {
      const Operator& op = graph_.operators[id];
      if (op.name.empty()) fail(fmt::format("operator {}", id), "has no name", "name it");
      if (!names.insert(op.name).second) {
        fail(op.name, "two operators have this name", "give each operator a name of its own");
      }
      for (const TensorId tensor : op.inputs) check_id(tensor, op.name, "input");
      for (const TensorId tensor : op.outputs) {
        check_id(tensor, op.name, "output");
        const OperatorId producer = graph_.tensors[static_cast<std::size_t>(tensor)].producer;
        if (producer != static_cast<OperatorId>(id)) {
          fail(op.name,
               producer < 0
                   ? fmt::format("writes tensor {}, which is an input or a parameter", tensor)
                   : fmt::format("writes tensor {}, which {} writes too", tensor,
                                 graph_.operators[static_cast<std::size_t>(producer)].name),
               "give each tensor at most one producer");
        }
      }
      check_distinct(op.outputs, op.name);
      std::visit([&](const auto& kind) { check_kind(op, kind); }, op.kind);
    }
    for (const TensorId tensor : graph_.inputs) {
      check_id(tensor, "inputs", "graph input");
      if (graph_.tensors[static_cast<std::size_t>(tensor)].producer >= 0) {
        fail("inputs", fmt::format("tensor {} is computed by an operator", tensor),
             "list only tensors without a producer");
      }
    }
    for (const TensorId tensor : graph_.outputs) check_id(tensor, "outputs", "graph output");
    check_distinct(graph_.inputs, "inputs");
    check_distinct(graph_.outputs, "outputs");
  }

  void check_order() const {
    for (std::size_t id = 0; id < graph_.operators.size(); ++id) {
      for (const TensorId tensor : graph_.operators[id].inputs) {
        if (graph_.tensors[static_cast<std::size_t>(tensor)].producer <
            static_cast<OperatorId>(id)) {
          continue;
        }
        const std::vector<OperatorId> cycle = topological_order(graph_).cycle;
        if (!cycle.empty()) fail_cycle(cycle);
        fail(graph_.operators[id].name,
             fmt::format("reads tensor {} before it is computed", tensor),
             "list producers before consumers");
      }
    }
  }

  void check_layers() const {
    OperatorId next = 0;
    for (std::size_t id = 0; id < graph_.layers.size(); ++id) {
      const Layer& layer = graph_.layers[id];
      const auto where = [&] { return fmt::format("layer {} ({})", id, layer.name); };
      if (layer.first != next || layer.last <= layer.first || layer.last > operator_count()) {
        fail(where(),
             fmt::format("holds the operators [{}, {}) where [{}, …) was due", layer.first,
                         layer.last, next),
             "let layers cover the operators in order, without gaps or empty layers");
      }
      for (OperatorId op = layer.first; op < layer.last; ++op) {
        const Operator& member = graph_.operators[static_cast<std::size_t>(op)];
        if (member.layer != static_cast<LayerId>(id)) {
          fail(member.name, fmt::format("says layer {} but lies in layer {}", member.layer, id),
               "make layers and operators agree");
        }
      }
      next = layer.last;
    }
    if (next != operator_count()) {
      fail("layers", fmt::format("cover {} of {} operators", next, operator_count()),
           "give every operator a layer");
    }
  }

  [[noreturn]] void fail_cycle(const std::vector<OperatorId>& cycle) const {
    constexpr std::size_t most_named = 5;
    std::string path;
    for (std::size_t i = 0; i < std::min(cycle.size(), most_named); ++i) {
      path += graph_.operators[static_cast<std::size_t>(cycle[i])].name + " → ";
    }
    if (cycle.size() > most_named) path += "… → ";
    const std::string& first = graph_.operators[static_cast<std::size_t>(cycle.front())].name;
    fail(first, "lies on a cycle: " + path + first, "remove one of these edges");
  }

 private:
  OperatorId operator_count() const { return static_cast<OperatorId>(graph_.operators.size()); }

  [[noreturn]] void fail(const std::string& key, const std::string& message,
                         const std::string& remedy) const {
    throw Error({.file = file_, .line = 0, .key = key}, message, remedy);
  }

  void check_id(TensorId tensor, const std::string& where, std::string_view what) const {
    if (tensor < 0 || static_cast<std::size_t>(tensor) >= graph_.tensors.size()) {
      fail(where, fmt::format("{} {} is no tensor", what, tensor),
           fmt::format("there are {} tensors, numbered from 0", graph_.tensors.size()));
    }
  }

  void check_distinct(std::vector<TensorId> ids, const std::string& where) const {
    std::sort(ids.begin(), ids.end());
    const auto twice = std::adjacent_find(ids.begin(), ids.end());
    if (twice != ids.end()) {
      fail(where, fmt::format("lists tensor {} twice", *twice), "list it once");
    }
  }

  /// Fails when the product of `sizes` does not fit in 63 bits.
  void check_product(const Operator& op, std::initializer_list<std::int64_t> sizes) const {
    std::int64_t product = 1;
    for (const std::int64_t size : sizes) {
      if (__builtin_mul_overflow(product, size, &product)) {
        fail(op.name, "its sizes do not fit in 64 bits", "use smaller sizes");
      }
    }
  }

  void check_divides(const Operator& op, std::int64_t part, std::int64_t whole,
                     std::string_view message) const {
    if (whole % part != 0) fail(op.name, std::string(message), "use a divisor");
  }

  template <typename Kind>
  void check_kind(const Operator& op, const Kind& kind) const {
    visit_fields(kind, [&](std::string_view field, const auto& value) {
      using Field = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<Field, std::int64_t>) {
        const std::int64_t least = field == "window" ? 0 : 1;
        if (value < least) {
          fail(op.name, fmt::format("{} is {}", field, value),
               fmt::format("it must be at least {}", least));
        }
      } else if constexpr (std::is_same_v<Field, double>) {
        if (!std::isfinite(value) || value < 0) {
          fail(op.name, fmt::format("{} is {}", field, value), "use a finite, positive number");
        }
      }
    });
    if constexpr (std::is_same_v<Kind, MatMul>) {
      check_product(op, {kind.batch, kind.m, kind.n});
      check_product(op, {kind.batch, kind.m, kind.k});
      check_product(op, {kind.batch, kind.k, kind.n});
    } else if constexpr (std::is_same_v<Kind, Attention>) {
      check_divides(op, kind.kv_heads, kind.heads, "kv_heads does not divide heads");
      check_product(op, {kind.samples, kind.heads, kind.q_len, kind.kv_len});
      check_product(op, {kind.samples, kind.heads, kind.q_len, kind.qk_dim});
      check_product(op, {kind.samples, kind.heads, kind.q_len, kind.v_dim});
      check_product(op, {kind.samples, kind.kv_heads, kind.kv_len, kind.qk_dim});
      check_product(op, {kind.samples, kind.kv_heads, kind.kv_len, kind.v_dim});
    } else if constexpr (std::is_same_v<Kind, Convolution>) {
      check_divides(op, kind.groups, kind.in_channels, "groups does not divide in_channels");
      check_divides(op, kind.groups, kind.out_channels, "groups does not divide out_channels");
      check_product(op, {kind.samples, kind.out_channels, kind.out_positions});
      check_product(op, {kind.samples, kind.in_channels, kind.in_positions});
      check_product(op, {kind.in_channels, kind.out_channels, kind.kernel_positions});
    } else if constexpr (std::is_same_v<Kind, Recurrent>) {
      check_product(op, {kind.steps, kind.rows, kind.n});
      check_product(op, {kind.steps, kind.rows, kind.k});
      check_product(op, {kind.n, kind.k});
    } else if constexpr (std::is_same_v<Kind, Embedding>) {
      check_product(op, {kind.rows, kind.width});
      check_product(op, {kind.lookups, kind.width});
      check_divides(op, kind.pooling, kind.lookups, "pooling does not divide lookups");
    } else if constexpr (std::is_same_v<Kind, MoeRouter> || std::is_same_v<Kind, MoeExperts>) {
      if (kind.top_k > kind.experts) {
        fail(op.name, fmt::format("top_k {} exceeds experts {}", kind.top_k, kind.experts),
             "route a token to each expert at most once");
      }
      check_product(op, {kind.tokens, kind.experts});
      check_product(op, {kind.tokens, kind.top_k, kind.hidden});
      if constexpr (std::is_same_v<Kind, MoeExperts>) {
        check_product(op, {kind.tokens, kind.top_k, kind.inner, kind.matrices});
        check_product(op, {kind.experts, kind.hidden, kind.inner, kind.matrices});
      }
    } else if constexpr (std::is_same_v<Kind, Loss>) {
      check_product(op, {kind.rows, kind.width});
    }
  }

  const Graph& graph_;
  const std::string& file_;
};

}  // namespace

void check_operators(const Graph& graph, const std::string& file) {
  const Checker checker(graph, file);
  checker.check_counts();
  checker.check_tensors();
  checker.check_operators();
}

void check_graph(const Graph& graph, const std::string& file) {
  check_operators(graph, file);
  const Checker checker(graph, file);
  checker.check_order();
  checker.check_layers();
}

}  // namespace braid
