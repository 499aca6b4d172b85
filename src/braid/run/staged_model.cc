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

/// Ranks of a stage in the order of StagePart::ranks, as places among its devices, which rise along
/// the plan's order of axes.
std::vector<std::size_t> places_among_devices(const Plan& plan, std::size_t stage) {
  const Parallelism form = form_of(plan, stage);
  // One of tp and cp is 1.
  std::int64_t sharer_stride = 0, dp_stride = 0, stride = 1;
  for (const Axis axis : form.order) {
    if (axis == Axis::tp && form.tp > 1) sharer_stride = stride, stride *= form.tp;
    if (axis == Axis::cp && form.cp > 1) sharer_stride = stride, stride *= form.cp;
    if (axis == Axis::dp) dp_stride = stride, stride *= form.dp;
  }
  std::vector<std::size_t> places;
  for (std::int64_t replica = 0; replica < form.dp; ++replica) {
    for (std::int64_t rank = 0; rank < std::int64_t{1} * form.tp * form.cp; ++rank) {
      places.push_back(at(replica * dp_stride + rank * sharer_stride));
    }
  }
  return places;
}

class Stager {
 public:
  Stager(const Graph& graph, const OrderedPlan& ordered, LayeredProgram model)
      : graph_(graph), ordered_(ordered), places_(places_of(graph, ordered)) {
    staged_.model = std::move(model);
    staged_.batch = ordered.plan.global_batch;
  }

  StagedModel staged() {
    add_ranks();
    add_parts();
    add_segments();
    connect_segments();
    connect_parts();
    check_parts();
    divide_stages();
    check_handovers();
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
      const Parallelism form = form_of(ordered_.plan, at(s));
      part.micro_batch = form.micro_batch;
      part.sharers = form.tp * form.cp;
      for (const std::size_t place : places_among_devices(ordered_.plan, at(s))) {
        const std::int64_t device = ordered_.plan.stages[at(s)].devices.at(place);
        const auto rank =
            std::lower_bound(staged_.rank_device.begin(), staged_.rank_device.end(), device);
        part.ranks.push_back(static_cast<std::int32_t>(rank - staged_.rank_device.begin()));
      }
      add_places(part, form.ep);
      staged_.parts.push_back(std::move(part));
    }
  }

  void add_places(const StagePart& part, int ep) {
    staged_.places.resize(staged_.rank_device.size());
    if (part.chunk > 0) return;
    std::vector<std::vector<std::int32_t>> sharing(at((std::ssize(part.ranks) + ep - 1) / ep));
    for (std::int32_t replica = 0; replica < part.replicas(); ++replica) {
      const auto first = part.ranks.begin() + std::int64_t{replica} * part.sharers;
      if (part.sharers > 1) staged_.sharers.emplace_back(first, first + part.sharers);
      for (int r = 0; r < part.sharers; ++r) {
        // Consecutive ranks share experts, those of a replica first.
        const int place = replica * part.sharers + r;
        staged_.places[at(part.rank_of(replica, r))] = {part.stage, replica, r, place % ep};
        sharing[at(place / ep)].push_back(part.rank_of(replica, r));
      }
    }
    if (ep > 1) {
      staged_.expert_sharers.insert(staged_.expert_sharers.end(), sharing.begin(), sharing.end());
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

  void divide_stages() {
    for (std::size_t s = 0; s < ordered_.plan.stages.size(); ++s) {
      const Parallelism form = form_of(ordered_.plan, s);
      StageToShard stage{
          &graph_, &staged_.model, form.tp, form.sequence_parallel, form.whole_experts, form.cp,
          form.ep, stage_name(s),  {}};
      for (StagePart& part : staged_.parts) {
        if (at(part.stage) != s) continue;
        for (RunSegment& segment : part.segments) stage.segments.push_back(&segment.nodes);
      }
      staged_.shardings.push_back(sharded_stage(stage));
    }
  }

  void check_handovers() const {
    for (const StagePart& part : staged_.parts) {
      const StageSharding& sharding = staged_.shardings[at(part.stage)];
      if (sharding.sharers == 1) continue;
      for (const ValueId id : part.handed) {
        const ValueLayout& layout = sharding.layouts[at(id)];
        if (layout.is_whole() || (layout.axis == 0 && is_even(layout))) continue;
        throw Error(fmt::format("{} hands over {}, which lies sharded on its {} tensor-parallel "
                                "ranks",
                                stage_name(at(part.stage)), program().values[at(id)].name,
                                sharding.sharers),
                    "plan with --tp 1");
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

std::int32_t group_with(const std::vector<std::vector<std::int32_t>>& groups, std::int32_t rank) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::vector<std::int32_t>& ranks = groups[g];
    if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) {
      return static_cast<std::int32_t>(g);
    }
  }
  return -1;
}

Interval crossing_rows(const StagedModel& staged, ValueId value, std::int32_t from_part, int from,
                       std::int32_t to_part, int to) {
  const Interval sent = staged.rows_of(from_part, value, from);
  const Interval wanted = staged.rows_of(to_part, value, to);
  const Shape& shape = staged.model.shapes[at(value)];
  const std::int64_t rows = shape.empty() ? 1 : shape.front();
  const int senders = staged.parts[at(from_part)].sharers;
  // Senders of few rows have different ones; senders of all rows serve the others in turn.
  if (senders > 1 && sent.length() == rows && from != to % senders) return {};
  const Interval both{std::max(sent.first, wanted.first), std::min(sent.last, wanted.last)};
  return both.length() > 0 ? both : Interval{};
}

void check_runnable(const Plan& plan) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const Parallelism form = form_of(plan, s);
    const auto refuse = [&](const std::string& what, const std::string& remedy) {
      throw Error(fmt::format("{} has {}, which braid run does not do", stage_name(s), what),
                  remedy);
    };
    if (form.tp > 1 && form.cp > 1) {
      refuse(fmt::format("tensor parallelism {} and context parallelism {}", form.tp, form.cp),
             "plan with --tp 1 or --cp 1");
    }
    if (form.expert_axis() % form.ep != 0) {
      refuse(fmt::format("expert parallelism {} over {} ranks", form.ep, form.expert_axis()),
             "plan with an --ep that divides them");
    }
    if (form.offload_optimizer || form.offload_weights || form.offload_activations) {
      refuse("something in host memory", "plan without offload");
    }
    for (const Chunk& chunk : plan.stages[s].chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const Option& option = options_of(plan.profile, chunk.layers[i])[at(chunk.options[i])];
        const Execution& how = option.how;
        if (how.tp != form.tp || how.cp != form.cp || (how.ep != 1 && how.ep != form.ep) ||
            (form.tp > 1 && how.sequence_parallel != form.sequence_parallel)) {
          refuse("a layer that is sharded otherwise than the stage", "plan with other degrees");
        }
        if (form.tp > 1 && !option.sharded.empty()) {
          refuse("a layer in a sharding that a search found", "plan with the model's own sharding");
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
  LayeredProgram model = layered_program(graph);
  check_operations(model.program);
  return staged_model(graph, ordered, std::move(model));
}

StagedModel staged_model(const Graph& graph, const OrderedPlan& ordered, LayeredProgram model) {
  check_runnable(ordered.plan);
  if (graph.samples != 1) {
    throw Error(fmt::format("{} has {} samples in a pass", graph.name, graph.samples),
                "give the model with one, which is then run for many at once");
  }
  return Stager(graph, ordered, std::move(model)).staged();
}

}  // namespace braid
