#include "braid/graph/series_parallel_order.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace braid {
namespace {

using Nodes = std::vector<std::size_t>;  // In topological order.

class Decomposition {
 public:
  explicit Decomposition(const Dag& dag)
      : dag_(dag), before_(dag.size(), Bitset(dag.size())), after_(before_) {
    for (std::size_t v = 0; v < dag.size(); ++v) {
      dag.predecessors[v].for_each([&](std::size_t u) {
        before_[v] |= before_[u];
        before_[v].set(u);
      });
    }
    for (std::size_t v = dag.size(); v-- > 0;) {
      dag.successors[v].for_each([&](std::size_t w) {
        after_[v] |= after_[w];
        after_[v].set(w);
      });
    }
  }

  OrderTree run() {
    Nodes all(dag_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    decompose(all);
    return std::move(tree_);
  }

 private:
  using Kind = OrderPart::Kind;

  std::int32_t add(OrderPart part) {
    tree_.parts.push_back(std::move(part));
    return static_cast<std::int32_t>(tree_.parts.size() - 1);
  }

  std::int32_t decompose(const Nodes& nodes) {
    if (nodes.size() == 1) return add({Kind::node, static_cast<std::int32_t>(nodes[0]), {}});
    std::vector<Nodes> parts = components(nodes);
    if (parts.size() > 1) return compose(Kind::parallel, parts);
    parts = sections(nodes);
    if (parts.size() == 1) {
      ++tree_.cuts;
      parts = halves(nodes);
    }
    return compose(Kind::series, parts);
  }

  /// Children of the same kind are taken in: halves may be sections of their own.
  std::int32_t compose(Kind kind, const std::vector<Nodes>& parts) {
    OrderPart whole{kind, -1, {}};
    for (const Nodes& part : parts) {
      const std::int32_t child = decompose(part);
      const OrderPart& made = tree_.parts[static_cast<std::size_t>(child)];
      if (made.kind == kind) {
        const std::vector<std::int32_t> inner = made.children;
        tree_.parts.pop_back();
        whole.children.insert(whole.children.end(), inner.begin(), inner.end());
      } else {
        whole.children.push_back(child);
      }
    }
    return add(std::move(whole));
  }

  Bitset mask(const Nodes& nodes) const {
    Bitset set(dag_.size());
    for (const std::size_t v : nodes) set.set(v);
    return set;
  }

  /// Parts that no edge joins, by their first nodes. `nodes` are convex, so that edges tell all.
  std::vector<Nodes> components(const Nodes& nodes) const {
    const Bitset inside = mask(nodes);
    Bitset seen(dag_.size());
    std::vector<Nodes> result;
    for (const std::size_t first : nodes) {
      if (seen.test(first)) continue;
      Nodes part = {first};
      seen.set(first);
      for (std::size_t next = 0; next < part.size(); ++next) {
        const auto visit = [&](std::size_t w) {
          if (!inside.test(w) || seen.test(w)) return;
          seen.set(w);
          part.push_back(w);
        };
        const std::size_t v = part[next];
        dag_.predecessors[v].for_each(visit);
        dag_.successors[v].for_each(visit);
      }
      std::sort(part.begin(), part.end());
      result.push_back(std::move(part));
    }
    return result;
  }

  /// The finest sections such that all of each are before all of the next. A prefix of k nodes by
  /// number of predecessors is one when the relations that leave it are all k·(n - k) there can be.
  std::vector<Nodes> sections(const Nodes& nodes) const {
    const Bitset inside = mask(nodes);
    struct Ranked {
      std::size_t before, after, node;
    };
    std::vector<Ranked> ranked;
    ranked.reserve(nodes.size());
    for (const std::size_t v : nodes) {
      ranked.push_back({(before_[v] & inside).count(), (after_[v] & inside).count(), v});
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Ranked& a, const Ranked& b) { return a.before < b.before; });
    std::vector<Nodes> result(1);
    std::size_t leaving = 0;
    for (std::size_t k = 0; k < ranked.size(); ++k) {
      if (k > 0 && leaving == k * (ranked.size() - k)) result.emplace_back();
      result.back().push_back(ranked[k].node);
      leaving += ranked[k].after - ranked[k].before;
    }
    for (Nodes& part : result) std::sort(part.begin(), part.end());
    return result;
  }

  /// The nodes of the lower levels and the rest, as even as may be.
  std::vector<Nodes> halves(const Nodes& nodes) const {
    const Bitset inside = mask(nodes);
    std::vector<std::size_t> level(dag_.size(), 0), on_level(nodes.size() + 1, 0);
    for (const std::size_t v : nodes) {
      dag_.predecessors[v].for_each([&](std::size_t u) {
        if (inside.test(u)) level[v] = std::max(level[v], level[u] + 1);
      });
      ++on_level[level[v]];
    }
    std::size_t below = 0, best = 0, cut = 0;
    for (std::size_t l = 1; l < nodes.size(); ++l) {
      below += on_level[l - 1];
      const std::size_t smaller = std::min(below, nodes.size() - below);
      if (smaller > best) best = smaller, cut = l;
    }
    assert(best > 0);
    std::vector<Nodes> result(2);
    for (const std::size_t v : nodes) result[level[v] < cut ? 0 : 1].push_back(v);
    return result;
  }

  const Dag& dag_;
  std::vector<Bitset> before_, after_;  ///< All, not only the direct ones.
  OrderTree tree_;
};

}  // namespace

OrderTree series_parallel_order(const Dag& dag) {
  assert(dag.size() > 0);
  return Decomposition(dag).run();
}

}  // namespace braid
