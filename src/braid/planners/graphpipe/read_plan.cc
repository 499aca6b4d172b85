#include "braid/planners/graphpipe/read_plan.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "braid/base/index.h"

namespace braid {
namespace {

class PlanReader {
 public:
  PlanReader(const GraphPipeProblem& problem, const GraphPipeShapes& form,
             const std::vector<PassGroup>& groups, const std::vector<GraphPipeChoice>& choices)
      : problem_(problem), form_(form), groups_(groups), choices_(choices) {}

  std::vector<GraphPipeStage> stages;

  /// Appends the stages of a partial plan; `actual` has the node that each stands for.
  void read(std::int32_t index, const std::vector<std::int32_t>& actual) {
    for (; index >= 0; index = choices_[at(index)].next) {
      const GraphPipeChoice& choice = choices_[at(index)];
      if (choice.kind == GraphPipeChoice::Kind::stage) {
        add_stage(form_.shapes[at(choice.what)].nodes, choice, actual);
      } else {
        read_block(choice, actual);
      }
    }
  }

 private:
  using Used = std::vector<std::size_t>;  ///< Copies, [class].

  void add_stage(const std::vector<std::int32_t>& nodes, const GraphPipeChoice& choice,
                 const std::vector<std::int32_t>& actual) {
    GraphPipeStage stage;
    stage.nodes.reserve(nodes.size());
    for (const std::int32_t v : nodes) stage.nodes.push_back(actual[at(v)]);
    std::sort(stage.nodes.begin(), stage.nodes.end());
    stage.group = groups_[at(choice.group)];
    stage.strategy = choice.strategy;
    stage.devices = stage.group.micro_batch / problem_.device_samples[at(choice.samples)] *
                    problem_.strategies[at(choice.strategy)].tensor;
    stages.push_back(std::move(stage));
  }

  void read_block(const GraphPipeChoice& choice, const std::vector<std::int32_t>& actual) {
    const GraphPipeBlock& block = form_.blocks[at(choice.what)];
    Used used(block.counts.size(), 0);
    if (choice.absorption >= 0) {
      const Absorption& absorbed = block.absorptions[at(choice.absorption)];
      for (std::size_t j = 0; j < absorbed.whole.size(); ++j) used[j] = at(absorbed.whole[j]);
      if (absorbed.partial >= 0) used[at(absorbed.partial)] = 1;
    }
    for (std::int32_t index = choice.inner; index >= 0; index = choices_[at(index)].next) {
      const GraphPipeChoice& part = choices_[at(index)];
      if (part.kind == GraphPipeChoice::Kind::group ||
          part.kind == GraphPipeChoice::Kind::remaining) {
        add_stage(group_nodes(choice, part, used), choices_[at(part.inner)], actual);
      } else {
        read_branch(block, part, used, actual);
      }
    }
  }

  /// Nodes of a stage of whole branches, the next copies, and what is left of a partial one.
  std::vector<std::int32_t> group_nodes(const GraphPipeChoice& choice, const GraphPipeChoice& part,
                                        Used& used) const {
    const GraphPipeBlock& block = form_.blocks[at(choice.what)];
    const bool remaining = part.kind == GraphPipeChoice::Kind::remaining;
    const BranchGroup& group =
        remaining ? block.absorptions[at(choice.absorption)].remaining[at(part.what)]
                  : block.groups[at(part.what)];
    std::vector<std::int32_t> nodes;
    if (remaining) {
      // The shape lists it before the whole branches.
      nodes = form_.shapes[at(group.shape)].nodes;
      std::size_t whole = 0;
      for (std::size_t j = 0; j < block.counts.size(); ++j) {
        whole += at(group.counts[j]) * block.copies[j][0].size();
      }
      nodes.resize(nodes.size() - whole);
    }
    for (std::size_t j = 0; j < group.counts.size(); ++j) {
      for (int i = 0; i < group.counts[j]; ++i) {
        const std::vector<std::int32_t>& copy = block.copies[j][used[j]++];
        nodes.insert(nodes.end(), copy.begin(), copy.end());
      }
    }
    return nodes;
  }

  void read_branch(const GraphPipeBlock& block, const GraphPipeChoice& part, Used& used,
                   const std::vector<std::int32_t>& actual) {
    const std::size_t j = at(part.what);
    const std::size_t copy = part.kind == GraphPipeChoice::Kind::partial ? 0 : used[j]++;
    const GraphPipeSeries& branch = form_.series[at(block.classes[j])];
    std::vector<std::int32_t> inner = actual;
    for (std::size_t i = 0; i < branch.nodes.size(); ++i) {
      inner[at(branch.nodes[i])] = actual[at(block.copies[j][copy][i])];
    }
    read(part.inner, inner);
  }

  const GraphPipeProblem& problem_;
  const GraphPipeShapes& form_;
  const std::vector<PassGroup>& groups_;
  const std::vector<GraphPipeChoice>& choices_;
};

}  // namespace

std::vector<GraphPipeStage> read_graphpipe_plan(const GraphPipeProblem& problem,
                                                const GraphPipeShapes& form,
                                                const std::vector<PassGroup>& groups,
                                                const std::vector<GraphPipeChoice>& choices,
                                                std::int32_t last) {
  std::vector<std::int32_t> same(problem.nodes.size());
  std::iota(same.begin(), same.end(), 0);
  PlanReader reader(problem, form, groups, choices);
  reader.read(last, same);
  return std::move(reader.stages);
}

}  // namespace braid
