#include "braid/planners/graphpipe/shapes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/graph/series_parallel_order.h"

namespace braid {
namespace {

constexpr std::int64_t kMostShapeNodes = std::int64_t{1} << 23;
/// More combinations of branches than this, or nodes in them than that, and a stage of whole
/// branches has those of one class, a power of two of them or all.
constexpr std::int64_t kMostCombinations = 256;
constexpr std::int64_t kMostBlockNodes = std::int64_t{1} << 22;

class Builder {
 public:
  explicit Builder(const GraphPipeProblem& problem)
      : problem_(problem),
        in_bytes_(problem.nodes.size(), 0),
        out_bytes_(in_bytes_),
        of_kind_(problem.kinds.size(), 0) {
    outgoing_.resize(problem.nodes.size());
    std::vector<std::pair<std::int32_t, std::int32_t>> edges;
    edges.reserve(problem.edges.size());
    for (const GraphPipeEdge& edge : problem.edges) {
      edges.emplace_back(edge.source, edge.target);
      outgoing_[at(edge.source)].push_back(edge);
      out_bytes_[at(edge.source)] += edge.bytes;
      in_bytes_[at(edge.target)] += edge.bytes;
    }
    const OrderTree tree = series_parallel_order(make_dag(problem.nodes.size(), edges));
    result_.cuts = tree.cuts;
    std::vector<Instance> made(tree.parts.size());
    position_.assign(problem.nodes.size(), -1);
    for (std::size_t i = 0; i < tree.parts.size(); ++i) made[i] = build(tree.parts[i], made);
    // A root that is a block becomes the only item of a series.
    Instance root = std::move(made.back());
    if (root.series < 0) make_series({root});
  }

  GraphPipeShapes run() {
    for (GraphPipeBlock& block : result_.blocks) add_groups(block);
    for (GraphPipeSeries& series : result_.series) add_stages(series);
    return std::move(result_);
  }

 private:
  /// A part of the tree as built: a series, or a node or block that is yet to become an item of
  /// one.
  struct Instance {
    std::int32_t series = -1, node = -1;
    std::int32_t block_form = -1;  ///< Equal for blocks of equal branches.
    GraphPipeBlock block;
    std::vector<std::int32_t> nodes;
  };

  Instance build(const OrderPart& part, std::vector<Instance>& made) {
    if (part.kind == OrderPart::Kind::node) {
      Instance leaf;
      leaf.node = part.node;
      leaf.nodes = {part.node};
      return leaf;
    }
    std::vector<Instance> children;
    children.reserve(part.children.size());
    for (const std::int32_t child : part.children) children.push_back(std::move(made[at(child)]));
    return part.kind == OrderPart::Kind::series ? make_series(std::move(children))
                                                : make_block(std::move(children));
  }

  using Key = std::vector<double>;

  /// Equal for two series whose stages cost the same, place by place.
  Instance make_series(std::vector<Instance> children) {
    Instance whole;
    GraphPipeSeries series;
    Key key;
    for (const Instance& child : children) {
      if (child.block_form >= 0) {
        key.insert(key.end(), {-1, static_cast<double>(child.block_form)});
      } else {
        const auto v = at(child.node);
        key.insert(key.end(),
                   {static_cast<double>(problem_.nodes[v]), in_bytes_[v], out_bytes_[v]});
      }
      whole.nodes.insert(whole.nodes.end(), child.nodes.begin(), child.nodes.end());
    }
    key.push_back(-2);
    for (std::size_t i = 0; i < whole.nodes.size(); ++i) {
      position_[at(whole.nodes[i])] = static_cast<std::int32_t>(i);
    }
    std::vector<std::tuple<std::int32_t, std::int32_t, double>> inner;
    for (const std::int32_t v : whole.nodes) {
      for (const GraphPipeEdge& edge : outgoing_[at(v)]) {
        const std::int32_t target = position_[at(edge.target)];
        if (target >= 0) inner.emplace_back(position_[at(v)], target, edge.bytes);
      }
    }
    for (const std::int32_t v : whole.nodes) position_[at(v)] = -1;
    std::sort(inner.begin(), inner.end());
    for (const auto& [from, to, bytes] : inner) {
      key.insert(key.end(), {static_cast<double>(from), static_cast<double>(to), bytes});
    }
    series.nodes = whole.nodes;
    const auto [known, added] =
        known_series_.try_emplace(key, static_cast<std::int32_t>(result_.series.size()));
    whole.series = known->second;
    if (!added) return whole;
    for (Instance& child : children) {
      series.items.push_back({child.node, -1});
      if (child.block_form < 0) continue;
      series.items.back().block = static_cast<std::int32_t>(result_.blocks.size());
      result_.blocks.push_back(std::move(child.block));
    }
    result_.series.push_back(std::move(series));
    return whole;
  }

  Instance make_block(std::vector<Instance> children) {
    for (Instance& child : children) {
      if (child.series < 0) child = make_series({child});
    }
    std::stable_sort(children.begin(), children.end(),
                     [](const Instance& a, const Instance& b) { return a.series < b.series; });
    Instance whole;
    GraphPipeBlock& block = whole.block;
    Key key;
    for (Instance& child : children) {
      if (block.classes.empty() || block.classes.back() != child.series) {
        block.classes.push_back(child.series);
        block.counts.push_back(0);
        block.copies.emplace_back();
      }
      ++block.counts.back();
      key.push_back(child.series);
      whole.nodes.insert(whole.nodes.end(), child.nodes.begin(), child.nodes.end());
      block.copies.back().push_back(std::move(child.nodes));
    }
    whole.block_form =
        known_blocks_.try_emplace(key, static_cast<std::int32_t>(known_blocks_.size()))
            .first->second;
    return whole;
  }

  /// What its nodes cost: as many times what each of their kinds costs.
  void add_costs(const std::vector<std::int32_t>& nodes, GraphPipeShape& shape) {
    const std::size_t samples = problem_.device_samples.size();
    shape.forward_s.assign(problem_.strategies.size() * samples, 0);
    shape.backward_s = shape.forward_s;
    shape.bytes.resize(problem_.strategies.size());
    for (const std::int32_t v : nodes) ++of_kind_[at(problem_.nodes[at(v)])];
    for (std::size_t k = 0; k < of_kind_.size(); ++k) {
      if (of_kind_[k] == 0) continue;
      const auto count = static_cast<double>(std::exchange(of_kind_[k], 0));
      for (std::size_t w = 0; w < problem_.strategies.size(); ++w) {
        const GraphPipeCost& cost = problem_.kinds[k][w];
        double* const forward_s = shape.forward_s.data() + w * samples;
        double* const backward_s = shape.backward_s.data() + w * samples;
        for (std::size_t i = 0; i < samples; ++i) {
          forward_s[i] += count * cost.forward_s[i];
          backward_s[i] += count * cost.backward_s[i];
        }
        GraphPipeShape::Bytes& bytes = shape.bytes[w];
        bytes.fixed += count * cost.fixed_bytes;
        bytes.gradient += count * cost.gradient_bytes;
        bytes.expert_gradient += count * cost.expert_gradient_bytes;
        bytes.stash += count * cost.stash_bytes;
        bytes.working = std::max(bytes.working, cost.working_bytes);
      }
    }
  }

  std::int32_t add_shape(std::vector<std::int32_t> nodes) {
    shape_nodes_ += static_cast<std::int64_t>(nodes.size());
    if (shape_nodes_ > kMostShapeNodes) {
      throw Error("the graph has too many series-parallel stages to go through",
                  "group its operators into fewer layers");
    }
    GraphPipeShape shape;
    for (const std::int32_t v : nodes) position_[at(v)] = 0;
    add_costs(nodes, shape);
    double inner_bytes = 0;
    for (const std::int32_t v : nodes) {
      shape.in_bytes += in_bytes_[at(v)];
      shape.out_bytes += out_bytes_[at(v)];
      for (const GraphPipeEdge& edge : outgoing_[at(v)]) {
        if (position_[at(edge.target)] == 0) inner_bytes += edge.bytes;
      }
    }
    // Never below zero by rounding.
    shape.in_bytes = std::max(0.0, shape.in_bytes - inner_bytes);
    shape.out_bytes = std::max(0.0, shape.out_bytes - inner_bytes);
    for (const std::int32_t v : nodes) position_[at(v)] = -1;
    shape.nodes = std::move(nodes);
    result_.shapes.push_back(std::move(shape));
    return static_cast<std::int32_t>(result_.shapes.size() - 1);
  }

  void append_item(const SeriesItem& item, std::vector<std::int32_t>& nodes) const {
    if (item.node >= 0) return nodes.push_back(item.node);
    const GraphPipeBlock& block = result_.blocks[at(item.block)];
    append_branches(block, block.counts, nodes);
  }

  static void append_branches(const GraphPipeBlock& block, const std::vector<int>& counts,
                              std::vector<std::int32_t>& nodes) {
    for (std::size_t j = 0; j < counts.size(); ++j) {
      for (std::size_t copy = 0; copy < at(counts[j]); ++copy) {
        nodes.insert(nodes.end(), block.copies[j][copy].begin(), block.copies[j][copy].end());
      }
    }
  }

  void append_items(const GraphPipeSeries& series, int first, int last,
                    std::vector<std::int32_t>& nodes) const {
    for (int i = first; i < last; ++i) append_item(series.items[at(i)], nodes);
  }

  static std::int64_t nodes_of(const GraphPipeBlock& block) {
    std::size_t nodes = 0;
    for (const auto& copies : block.copies) {
      for (const std::vector<std::int32_t>& copy : copies) nodes += copy.size();
    }
    return static_cast<std::int64_t>(nodes);
  }

  /// Up to so many branches of each class of a block, but neither none nor all of them, for `uses`
  /// shapes each.
  static std::vector<std::vector<int>> combinations(const GraphPipeBlock& block,
                                                    const std::vector<int>& counts,
                                                    std::int64_t uses) {
    const std::size_t classes = counts.size();
    std::vector<std::vector<int>> result;
    std::int64_t count = 1;
    for (const int copies : counts) {
      count = std::min(count * (copies + 1), kMostCombinations + 1);
    }
    std::vector<int> chosen(classes, 0);
    const std::int64_t nodes = std::max<std::int64_t>(1, nodes_of(block));
    if (count > kMostCombinations || count * uses > kMostBlockNodes / nodes) {
      for (std::size_t j = 0; j < classes; ++j) {
        // Of many identical branches powers of two and all.
        for (int taken = 1; taken < counts[j]; taken *= 2) {
          chosen[j] = taken;
          result.push_back(chosen);
        }
        chosen[j] = counts[j];
        if (classes > 1) result.push_back(chosen);
        chosen[j] = 0;
      }
      return result;
    }
    while (true) {
      std::size_t j = 0;
      while (j < classes && chosen[j] == counts[j]) chosen[j++] = 0;
      if (j == classes) break;
      ++chosen[j];
      if (chosen != counts) result.push_back(chosen);
    }
    return result;
  }

  void add_groups(GraphPipeBlock& block) {
    for (std::vector<int>& counts : combinations(block, block.counts, 1)) {
      if (std::accumulate(counts.begin(), counts.end(), 0) >= 2) {
        std::vector<std::int32_t> nodes;
        append_branches(block, counts, nodes);
        block.groups.push_back({counts, add_shape(std::move(nodes))});
      }
      block.absorptions.push_back({std::move(counts), -1, 0, 0, {}});
    }
    std::vector<std::int32_t> all;
    append_branches(block, block.counts, all);
    block.groups.push_back({block.counts, add_shape(std::move(all))});
    for (std::size_t j = 0; j < block.classes.size(); ++j) {
      const auto items = static_cast<int>(result_.series[at(block.classes[j])].items.size());
      for (int cut = 1; cut < items; ++cut) {
        add_partial(block, {{}, static_cast<int>(j), 0, cut, {}});
        add_partial(block, {{}, static_cast<int>(j), cut, items, {}});
      }
    }
  }

  /// How many ends of branches a block has.
  std::int64_t partials_of(const GraphPipeBlock& block) const {
    std::size_t ends = 0;
    for (const std::int32_t branch : block.classes) {
      ends += 2 * (result_.series[at(branch)].items.size() - 1);
    }
    return static_cast<std::int64_t>(ends);
  }

  /// An end of a branch, and what is left of it together with other branches.
  void add_partial(GraphPipeBlock& block, Absorption absorbed) {
    std::vector<int> others = block.counts;
    --others[at(absorbed.partial)];
    std::vector<std::vector<int>> all = combinations(block, others, partials_of(block));
    all.push_back(others);
    const std::vector<std::int32_t> left = partial_nodes(block, absorbed, true);
    for (std::vector<int>& counts : all) {
      if (std::accumulate(counts.begin(), counts.end(), 0) == 0) continue;
      std::vector<std::int32_t> nodes = left;
      // Its own copy is the first of its class.
      for (std::size_t j = 0; j < counts.size(); ++j) {
        const std::size_t skip = j == at(absorbed.partial) ? 1 : 0;
        for (std::size_t copy = skip; copy < at(counts[j]) + skip; ++copy) {
          nodes.insert(nodes.end(), block.copies[j][copy].begin(), block.copies[j][copy].end());
        }
      }
      absorbed.remaining.push_back({std::move(counts), add_shape(std::move(nodes))});
    }
    block.absorptions.push_back(std::move(absorbed));
  }

  /// Nodes of the first branch of the class: those that are left in the block, or the others.
  std::vector<std::int32_t> partial_nodes(const GraphPipeBlock& block, const Absorption& absorbed,
                                          bool left) const {
    const GraphPipeSeries& branch = result_.series[at(block.classes[at(absorbed.partial)])];
    const auto items = static_cast<int>(branch.items.size());
    const bool front = (absorbed.first == 0) == left;
    const int cut = absorbed.first == 0 ? absorbed.last : absorbed.first;
    std::vector<std::int32_t> part;
    append_items(branch, front ? 0 : cut, front ? cut : items, part);
    // The branch's own nodes are those of its class's first appearance, perhaps in another block.
    const std::vector<std::int32_t>& copy = block.copies[at(absorbed.partial)].front();
    std::map<std::int32_t, std::int32_t> here;
    for (std::size_t i = 0; i < copy.size(); ++i) here[branch.nodes[i]] = copy[i];
    for (std::int32_t& v : part) v = here.at(v);
    return part;
  }

  /// What an absorption takes out of the block.
  void append_absorbed(const GraphPipeBlock& block, const Absorption& absorbed,
                       std::vector<std::int32_t>& nodes) const {
    append_branches(block, absorbed.whole, nodes);
    if (absorbed.partial < 0) return;
    const std::vector<std::int32_t> part = partial_nodes(block, absorbed, false);
    nodes.insert(nodes.end(), part.begin(), part.end());
  }

  void add_stages(GraphPipeSeries& series) {
    const auto items = static_cast<int>(series.items.size());
    series.ending.resize(at(items) + 1);
    series.closing.resize(at(items) + 1);
    series.opening.resize(at(items) + 1);
    for (int e = 1; e <= items; ++e) {
      for (int a = e - 1; a >= 0; --a) {
        std::vector<std::int32_t> nodes;
        append_items(series, a, e, nodes);
        series.ending[at(e)].push_back({a, -1, add_shape(std::move(nodes))});
      }
    }
    for (int p = 0; p < items; ++p) {
      if (series.items[at(p)].block < 0) continue;
      const GraphPipeBlock& block = result_.blocks[at(series.items[at(p)].block)];
      for (std::size_t i = 0; i < block.absorptions.size(); ++i) {
        const Absorption& absorbed = block.absorptions[i];
        const auto number = static_cast<int>(i);
        const bool whole = absorbed.partial < 0;
        for (int e = p + 2; e <= items && (whole || absorbed.first == 0); ++e) {
          std::vector<std::int32_t> nodes;
          append_items(series, p + 1, e, nodes);
          append_absorbed(block, absorbed, nodes);
          series.closing[at(e)].push_back({p + 1, number, add_shape(std::move(nodes))});
        }
        for (int q = p - 1; q >= 0 && (whole || absorbed.first > 0); --q) {
          std::vector<std::int32_t> nodes;
          append_items(series, q, p, nodes);
          append_absorbed(block, absorbed, nodes);
          series.opening[at(p)].push_back({q, number, add_shape(std::move(nodes))});
        }
      }
    }
  }

  const GraphPipeProblem& problem_;
  std::vector<double> in_bytes_, out_bytes_;  ///< [node]
  std::vector<std::vector<GraphPipeEdge>> outgoing_;
  std::vector<std::int32_t> position_;  ///< [node]: scratch, -1 between uses.
  std::vector<std::int32_t> of_kind_;   ///< [kind]: scratch, 0 between uses.
  std::map<Key, std::int32_t> known_series_, known_blocks_;
  std::int64_t shape_nodes_ = 0;
  GraphPipeShapes result_;
};

}  // namespace

GraphPipeShapes graphpipe_shapes(const GraphPipeProblem& problem) { return Builder(problem).run(); }

}  // namespace braid
