#include "braid/graph/fusion.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "braid/base/index.h"
#include "braid/graph/tensor_size.h"
#include "braid/graph/topological_order.h"

namespace braid {
namespace {

constexpr std::size_t most_in_region = 32;
constexpr std::size_t most_operands = 8;
constexpr int most_between = 8;  ///< Operators between a GEMM and the softmax.

template <typename Element>
bool contains(const std::vector<Element>& list, Element element) {
  return std::find(list.begin(), list.end(), element) != list.end();
}

void add_once(std::vector<TensorId>& list, TensorId id) {
  if (!contains(list, id)) list.push_back(id);
}

class Fuser {
 public:
  explicit Fuser(Graph& graph)
      : graph_(graph),
        consumers_(graph),
        gone_(graph.operators.size(), false),
        is_output_(graph.tensors.size(), false) {
    for (const TensorId id : graph.outputs) is_output_[at(id)] = true;
  }

  void run() {
    for (std::size_t place = 0; place < graph_.operators.size(); ++place) {
      if (std::holds_alternative<Softmax>(graph_.operators[place].kind)) fuse_attention(place);
    }
    for (std::size_t place = graph_.operators.size(); place-- > 0;) {
      if (!gone_[place]) fuse_region(place);
    }
    remove_gone();
  }

 private:
  const Tensor& tensor(TensorId id) const { return graph_.tensors[at(id)]; }
  std::int64_t elements(TensorId id) const { return element_count(tensor(id)).value_or(0); }

  /// The one operator that reads a computed tensor; nullopt when there are others or none.
  std::optional<std::size_t> only_reader(TensorId id) const {
    const auto readers = consumers_.of(id);
    if (readers.size() != 1 || is_output_[at(id)] || tensor(id).producer < 0) return {};
    return at(readers.front());
  }

  // Attention.

  /// GEMMs on both sides of a softmax, and what lies between.
  struct Match {
    std::size_t scores = 0, context = 0;
    std::vector<std::size_t> between;
    std::vector<TensorId> masks;
    bool dropout = false;
  };

  static bool is_plain_gemm(const Operator& op) {
    const auto* gemm = std::get_if<MatMul>(&op.kind);
    return gemm != nullptr && !gemm->weight && op.inputs.size() == 2;
  }

  bool find_scores(const Operator& softmax, Match& match) const {
    TensorId scores = softmax.inputs.front();
    for (int step = 0; step < most_between && only_reader(scores); ++step) {
      const std::size_t producer = at(tensor(scores).producer);
      const Operator& op = graph_.operators[producer];
      if (is_plain_gemm(op)) {
        match.scores = producer;
        return tensor(scores).dims == tensor(softmax.outputs.front()).dims;
      }
      if (!std::holds_alternative<Elementwise>(op.kind) || op.outputs.size() != 1 ||
          op.inputs.size() > most_operands) {
        return false;
      }
      match.between.push_back(producer);
      std::optional<TensorId> before;
      for (const TensorId input : op.inputs) {
        if (!before && tensor(input).dims == tensor(scores).dims && only_reader(input)) {
          before = input;
        } else {
          match.masks.push_back(input);
        }
      }
      if (!before) return false;
      scores = *before;
    }
    return false;
  }

  bool find_context(const Operator& softmax, Match& match) const {
    TensorId weights = softmax.outputs.front();
    for (int step = 0; step < most_between; ++step) {
      const auto reader = only_reader(weights);
      if (!reader) return false;
      const Operator& op = graph_.operators[*reader];
      if (is_plain_gemm(op)) {
        match.context = *reader;
        return op.inputs.front() == weights && op.inputs.back() != weights;
      }
      const auto* pointwise = std::get_if<Elementwise>(&op.kind);
      if (pointwise == nullptr || op.inputs.size() != 1 || op.outputs.size() != 1) return false;
      match.dropout = match.dropout || pointwise->keeps == Elementwise::Keeps::mask;
      match.between.push_back(*reader);
      weights = op.outputs.front();
    }
    return false;
  }

  void fuse_attention(std::size_t place) {
    const Operator& softmax = graph_.operators[place];
    if (softmax.inputs.size() != 1 || softmax.outputs.size() != 1) return;
    Match match;
    if (!find_scores(softmax, match) || !find_context(softmax, match)) return;
    const Operator& scores = graph_.operators[match.scores];
    Operator& context = graph_.operators[match.context];
    const std::vector<std::int64_t> dims = tensor(softmax.outputs.front()).dims;
    const std::vector<std::int64_t>& out = tensor(context.outputs.front()).dims;
    const std::size_t rank = dims.size();
    if (rank < 2 || out.size() != rank || std::get<Softmax>(softmax.kind).width != dims.back() ||
        std::get<MatMul>(context.kind).k != dims.back() ||
        !std::equal(dims.begin(), dims.end() - 1, out.begin())) {
      return;
    }
    Attention attention{.q_len = dims[rank - 2],
                        .kv_len = dims.back(),
                        .qk_dim = std::get<MatMul>(scores.kind).k,
                        .v_dim = out.back(),
                        .dropout = match.dropout};
    if (rank > 3) attention.samples = dims.front();
    for (std::size_t d = rank > 3 ? 1 : 0; d + 2 < rank; ++d) attention.heads *= dims[d];
    attention.kv_heads = attention.heads;
    std::vector<TensorId> inputs = scores.inputs;
    inputs.push_back(context.inputs.back());
    for (const TensorId mask : match.masks) add_once(inputs, mask);
    context.kind = attention;
    context.inputs = std::move(inputs);
    gone_[place] = gone_[match.scores] = true;
    for (const std::size_t each : match.between) gone_[each] = true;
  }

  // Pointwise regions and normalisations.

  static bool may_join(const Operator& op, bool reductions) {
    return op.outputs.size() == 1 && op.inputs.size() <= most_operands &&
           (std::holds_alternative<Elementwise>(op.kind) ||
            (reductions && std::holds_alternative<Reduction>(op.kind)));
  }

  bool is_read_only_in(TensorId id, const std::vector<std::size_t>& region) const {
    const auto readers = consumers_.of(id);
    if (is_output_[at(id)] || readers.size() > region.size()) return false;
    return std::all_of(readers.begin(), readers.end(),
                       [&](OperatorId reader) { return contains(region, at(reader)); });
  }

  /// `root` and the operators that lead to it alone, with or without reductions.
  std::vector<std::size_t> region_of(std::size_t root, bool reductions) const {
    std::vector<std::size_t> region{root};
    for (bool grew = true; grew;) {
      grew = false;
      for (std::size_t place = 0; place < region.size() && region.size() < most_in_region;
           ++place) {
        for (const TensorId input : graph_.operators[region[place]].inputs) {
          const OperatorId producer = tensor(input).producer;
          if (producer < 0 || gone_[at(producer)] || contains(region, at(producer))) continue;
          const Operator& op = graph_.operators[at(producer)];
          if (!may_join(op, reductions) || !is_read_only_in(input, region)) continue;
          region.push_back(at(producer));
          grew = true;
          if (region.size() == most_in_region) break;
        }
      }
      if (region.size() == most_in_region) break;
    }
    return region;
  }

  /// What a region reads from outside: one activation, and any parameters; nullopt otherwise.
  std::optional<std::vector<TensorId>> inputs_of(const std::vector<std::size_t>& region) const {
    std::vector<TensorId> activations, parameters;
    for (const std::size_t member : region) {
      for (const TensorId input : graph_.operators[member].inputs) {
        const OperatorId producer = tensor(input).producer;
        if (producer >= 0 && contains(region, at(producer))) continue;
        add_once(tensor(input).is_parameter ? parameters : activations, input);
      }
    }
    if (activations.size() != 1) return std::nullopt;
    activations.insert(activations.end(), parameters.begin(), parameters.end());
    return activations;
  }

  /// One Elementwise for members that all work on as many elements.
  std::optional<OperatorKind> pointwise(const std::vector<std::size_t>& region) const {
    using Keeps = Elementwise::Keeps;
    Elementwise sum{.elements = elements(graph_.operators[region.front()].outputs.front()),
                    .flops_per_element = 0,
                    .keeps = Keeps::nothing};
    for (const std::size_t member : region) {
      const auto* part = std::get_if<Elementwise>(&graph_.operators[member].kind);
      if (part == nullptr || part->elements != sum.elements) return std::nullopt;
      sum.flops_per_element += part->flops_per_element;
      const bool stronger = part->keeps == Keeps::inputs ||
                            (part->keeps == Keeps::mask && sum.keeps == Keeps::nothing);
      if (stronger) sum.keeps = part->keeps;
    }
    return sum;
  }

  /// One Normalization for members that reduce the rows of `input` and work on rows or elements.
  std::optional<OperatorKind> normalization(const std::vector<std::size_t>& region,
                                            TensorId input) const {
    const std::int64_t whole = elements(graph_.operators[region.front()].outputs.front());
    std::int64_t rows = 0;
    int reductions = 0;
    for (const std::size_t member : region) {
      const Operator& op = graph_.operators[member];
      const auto* reduction = std::get_if<Reduction>(&op.kind);
      if (reduction == nullptr) continue;
      const std::int64_t left = elements(op.outputs.front());
      if (reduction->elements != whole || (reductions > 0 && left != rows)) return std::nullopt;
      rows = left;
      ++reductions;
    }
    if (reductions < 1 || reductions > 2 || rows >= whole || elements(input) != whole) {
      return std::nullopt;
    }
    for (const std::size_t member : region) {
      const auto* part = std::get_if<Elementwise>(&graph_.operators[member].kind);
      if (part != nullptr && part->elements != whole && part->elements != rows) return std::nullopt;
    }
    return Normalization{.elements = whole, .width = whole / rows, .rms = reductions == 1};
  }

  void fuse_region(std::size_t root) {
    const Operator& op = graph_.operators[root];
    if (!may_join(op, false)) return;
    if (!fuse_region(root, true)) fuse_region(root, false);
  }

  bool fuse_region(std::size_t root, bool reductions) {
    const std::vector<std::size_t> region = region_of(root, reductions);
    if (region.size() < 2) return false;
    auto inputs = inputs_of(region);
    if (!inputs) return false;
    auto kind = pointwise(region);
    if (!kind) kind = normalization(region, inputs->front());
    if (!kind) return false;
    graph_.operators[root].kind = *kind;
    graph_.operators[root].inputs = std::move(*inputs);
    for (std::size_t member = 1; member < region.size(); ++member) gone_[region[member]] = true;
    return true;
  }

  // Leaving out what is gone.

  void remove_gone() {
    std::vector<bool> is_used(graph_.tensors.size(), false);
    std::vector<Operator> kept;
    for (std::size_t place = 0; place < graph_.operators.size(); ++place) {
      if (gone_[place]) continue;
      kept.push_back(std::move(graph_.operators[place]));
      for (const TensorId id : kept.back().inputs) is_used[at(id)] = true;
      for (const TensorId id : kept.back().outputs) {
        is_used[at(id)] = true;
        graph_.tensors[at(id)].producer = static_cast<OperatorId>(kept.size() - 1);
      }
    }
    for (const auto* list : {&graph_.inputs, &graph_.outputs}) {
      for (const TensorId id : *list) is_used[at(id)] = true;
    }
    std::vector<TensorId> number(graph_.tensors.size(), -1);
    std::size_t next = 0;
    for (std::size_t id = 0; id < graph_.tensors.size(); ++id) {
      if (!is_used[id]) continue;
      number[id] = static_cast<TensorId>(next);
      if (next != id) graph_.tensors[next] = std::move(graph_.tensors[id]);
      ++next;
    }
    graph_.tensors.resize(next);
    const auto renumber = [&](std::vector<TensorId>& ids) {
      for (TensorId& id : ids) id = number[at(id)];
    };
    for (Operator& op : kept) {
      renumber(op.inputs);
      renumber(op.outputs);
    }
    renumber(graph_.inputs);
    renumber(graph_.outputs);
    graph_.operators = std::move(kept);
  }

  Graph& graph_;
  Consumers consumers_;
  std::vector<bool> gone_;
  std::vector<bool> is_output_;
};

}  // namespace

void fuse_operators(Graph& graph) { Fuser(graph).run(); }

}  // namespace braid
