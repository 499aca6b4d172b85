#include "braid/run/staged_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/run/run_operations.h"

namespace braid {
namespace {

std::string stage_name(std::size_t stage) { return fmt::format("stage {}", stage + 1); }

/// The part that runs each layer, -1 for none, and the layer's recomputation.
struct LayerPlace {
  std::int32_t part = -1;
  Recompute recompute = Recompute::none;
};

std::vector<LayerPlace> places_of(const Graph& graph, const OrderedPlan& ordered) {
  const Plan& plan = ordered.plan;
  const std::vector<ProfileLayer>& layers = plan.profile.layers;
  const bool same =
      std::equal(layers.begin(), layers.end(), graph.layers.begin(), graph.layers.end(),
                 [](const ProfileLayer& a, const Layer& b) { return a.name == b.name; });
  if (!same) {
    throw Error(fmt::format("the plan's {} layers are not the {} of {}", layers.size(),
                            graph.layers.size(), graph.name),
                "make the plan from the same model, by name or file");
  }
  std::vector<LayerPlace> places(layers.size());
  const std::size_t stages = plan.stages.size();
  for (std::size_t p = 0; p < ordered.graph.stages.size(); ++p) {
    const Chunk& chunk = plan.stages[at(ordered.graph.stages[p].device)].chunks[p / stages];
    for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
      const Option& option = options_of(plan.profile, chunk.layers[i])[at(chunk.options[i])];
      places[at(chunk.layers[i])] = {static_cast<std::int32_t>(p), option.how.recompute};
    }
  }
  for (std::size_t l = 0; l < places.size(); ++l) {
    if (places[l].part < 0) throw Error("no stage runs the layer " + layers[l].name);
  }
  return places;
}

/// Values that change from sample to sample.
std::vector<bool> sample_values(const Program& program) {
  std::vector<bool> varies(program.values.size(), false);
  for (const ProgramInput& input : program.inputs) varies[at(input.value)] = true;
  for (const ProgramNode& node : program.nodes) {
    const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                 [&](ValueId id) { return id >= 0 && varies[at(id)]; });
    for (const ValueId id : node.outputs) varies[at(id)] = any;
  }
  return varies;
}

class Stager {
 public:
  Stager(const Graph& graph, const OrderedPlan& ordered)
      : graph_(graph), ordered_(ordered), places_(places_of(graph, ordered)) {
    staged_.model = layered_program(graph);
    check_operations(staged_.model.program);
    staged_.batch = ordered.plan.global_batch;
  }

  StagedModel staged() {
    add_ranks();
    add_parts();
    add_segments();
    connect_segments();
    connect_parts();
    check_parts();
    return std::move(staged_);
  }

 private:
  const Program& program() const { return staged_.model.program; }

  void add_ranks() {
    std::set<std::int64_t> devices;
    for (std::size_t s = 0; s < ordered_.plan.stages.size(); ++s) {
      for (const std::int64_t device : ordered_.plan.stages[s].devices) {
        if (!devices.insert(device).second) {
          throw Error(fmt::format("{} shares device {} with another", stage_name(s), device),
                      "give each stage devices of its own");
        }
      }
    }
    staged_.rank_device.assign(devices.begin(), devices.end());
  }

  void add_parts() {
    const std::size_t stages = ordered_.plan.stages.size();
    for (std::size_t p = 0; p < ordered_.graph.stages.size(); ++p) {
      const std::int32_t s = ordered_.graph.stages[p].device;
      StagePart part;
      part.stage = s;
      part.chunk = static_cast<std::int32_t>(p / stages);
      part.micro_batch = form_of(ordered_.plan, at(s)).micro_batch;
      for (const std::int64_t device : ordered_.plan.stages[at(s)].devices) {
        const auto rank =
            std::lower_bound(staged_.rank_device.begin(), staged_.rank_device.end(), device);
        part.ranks.push_back(static_cast<std::int32_t>(rank - staged_.rank_device.begin()));
      }
      staged_.parts.push_back(std::move(part));
    }
  }

  /// A number that tells apart the nodes of a part that are recomputed together; -1: not at all.
  std::int64_t recomputed_with(OperatorId op) const {
    const Operator& of = graph_.operators[at(op)];
    switch (places_[at(of.layer)].recompute) {
      case Recompute::none:
        return -1;
      case Recompute::selective:
        if (!std::holds_alternative<Attention>(of.kind)) return -1;
        return static_cast<std::int64_t>(graph_.layers.size()) + op;
      case Recompute::full:
        return of.layer;
    }
    return -1;
  }

  void add_segments() {
    part_of_.assign(program().values.size(), -1);
    segment_of_.assign(program().values.size(), -1);
    std::vector<std::int64_t> last(staged_.parts.size(), -2);
    for (std::size_t n = 0; n < program().nodes.size(); ++n) {
      const OperatorId op = staged_.model.operators[n];
      const std::int32_t p = places_[at(graph_.operators[at(op)].layer)].part;
      StagePart& part = staged_.parts[at(p)];
      const std::int64_t with = recomputed_with(op);
      if (last[at(p)] != with) part.segments.push_back({{}, with >= 0, {}, {}});
      last[at(p)] = with;
      part.segments.back().nodes.push_back(static_cast<NodeId>(n));
      for (const ValueId output : program().nodes[n].outputs) {
        part_of_[at(output)] = p;
        segment_of_[at(output)] = static_cast<std::int32_t>(part.segments.size()) - 1;
      }
    }
  }

  void connect_segments() {
    std::vector<ValueId> losses = staged_.model.logits;
    if (losses.empty()) losses = program().outputs;
    for (const ValueId loss : losses) {
      if (part_of_[at(loss)] < 0) throw Error(graph_.name + " computes no result to learn from");
      StagePart& part = staged_.parts[at(part_of_[at(loss)])];
      part.losses.push_back(loss);
      part.segments[at(segment_of_[at(loss)])].writes.push_back(loss);
    }
    const std::vector<ValueId>& parameters = staged_.model.parameters;
    for (std::size_t p = 0; p < staged_.parts.size(); ++p) {
      StagePart& part = staged_.parts[p];
      for (std::size_t s = 0; s < part.segments.size(); ++s) {
        for (const NodeId n : part.segments[s].nodes) {
          for (const ValueId id : program().nodes[at(n)].inputs) {
            if (id < 0) continue;
            if (std::binary_search(parameters.begin(), parameters.end(), id)) {
              part.parameters.push_back(id);
            } else if (part_of_[at(id)] >= 0) {
              read_value(id, p, s);
            }
          }
        }
      }
    }
  }

  /// Segment s of part p reads a result.
  void read_value(ValueId id, std::size_t p, std::size_t s) {
    const std::size_t source = at(part_of_[at(id)]);
    const std::size_t segment = at(segment_of_[at(id)]);
    if (source == p && segment == s) return;
    StagePart& part = staged_.parts[p];
    StagePart& from = staged_.parts[source];
    part.segments[s].reads.push_back(id);
    from.segments[segment].writes.push_back(id);
    if (source == p) return;
    part.received.push_back(id);
    from.handed.push_back(id);
    between_[{source, p}].push_back(id);
  }

  void connect_parts() {
    const auto sort = [](std::vector<ValueId>& ids) {
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    };
    for (StagePart& part : staged_.parts) {
      for (auto* ids : {&part.received, &part.handed, &part.parameters, &part.losses}) sort(*ids);
      for (RunSegment& segment : part.segments) {
        sort(segment.reads);
        sort(segment.writes);
      }
    }
    for (auto& [ends, values] : between_) {
      sort(values);
      staged_.handovers.push_back({static_cast<std::int32_t>(ends.first),
                                   static_cast<std::int32_t>(ends.second), std::move(values)});
    }
  }

  void check_parts() const {
    const std::vector<bool> varies = sample_values(program());
    for (const StagePart& part : staged_.parts) {
      const std::string name = stage_name(at(part.stage));
      if (part.segments.empty()) {
        throw Error(name + " has nothing to compute", "leave it out, or give it other layers");
      }
      if (part.handed.empty() && part.losses.empty()) {
        throw Error(name + " computes nothing that the loss depends on");
      }
      for (const ValueId id : part.handed) {
        if (varies[at(id)]) continue;
        throw Error(name + " hands over " + program().values[at(id)].name +
                        ", which depends on parameters alone",
                    "put the layers that read it into the same stage");
      }
    }
  }

  const Graph& graph_;
  const OrderedPlan& ordered_;
  std::vector<LayerPlace> places_;
  StagedModel staged_;
  std::vector<std::int32_t> part_of_, segment_of_;  ///< By value; -1: no node's result.
  std::map<std::pair<std::size_t, std::size_t>, std::vector<ValueId>> between_;
};

}  // namespace

void check_runnable(const Plan& plan) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Parallelism form = form_of(plan, s);
    const auto refuse = [&](const std::string& what, const std::string& remedy) {
      throw Error(fmt::format("{} has {}, which braid run does not do", stage_name(s), what),
                  remedy);
    };
    if (form.tp > 1) refuse(fmt::format("tensor parallelism {}", form.tp), "plan with --tp 1");
    if (form.cp > 1) refuse(fmt::format("context parallelism {}", form.cp), "plan with --cp 1");
    if (form.ep > 1) refuse(fmt::format("expert parallelism {}", form.ep), "plan with --ep 1");
    if (form.offload_optimizer || form.offload_weights || form.offload_activations) {
      refuse("something in host memory", "plan without offload");
    }
    for (const Chunk& chunk : plan.stages[s].chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const Execution& how = options_of(plan.profile, chunk.layers[i])[at(chunk.options[i])].how;
        if (how.tp > 1 || how.cp > 1 || how.ep > 1) {
          refuse("a layer that is divided", "plan with --tp 1 --cp 1 --ep 1");
        }
        if (how.offload_activations || how.offload_weights) {
          refuse("something in host memory", "plan without offload");
        }
      }
    }
  }
}

StagedModel staged_model(const Graph& graph, const OrderedPlan& ordered) {
  check_runnable(ordered.plan);
  if (graph.samples != 1) {
    throw Error(fmt::format("{} has {} samples in a pass", graph.name, graph.samples),
                "give the model with one, which is then run for many at once");
  }
  return Stager(graph, ordered).staged();
}

}  // namespace braid
