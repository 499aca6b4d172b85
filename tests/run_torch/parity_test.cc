#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/backend/reference/reference_kernel.h"
#include "braid/base/index.h"
#include "braid/frontend/graph_program.h"
#include "braid/program/node_call.h"
#include "braid/program/numbers.h"
#include "braid/program/random_tensor.h"
#include "braid/run/synthetic_data.h"
#include "braid/run/torch/torch_training.h"

#include "run/random_job.h"
#include "run_torch/exact_settings.h"
#include "run_torch/local_run.h"
#include "run_torch/tiny_models.h"
#include "run_torch/trials.h"

namespace braid::test {
namespace {

TEST(RunParity, RandomPlansTrainAsOneProcessDoes) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < trials("BRAID_RUN_PLANS", 40); ++trial) {
    const Graph graph = random_branches(random, draw(random, 2, 8));
    const Plan plan = random_plan_for(random, graph);
    const TrainingSettings settings = exact_settings(2);
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    const TrainedModel parts = train_by_threads(graph, plan, "", settings);
    EXPECT_LE(difference(parts, whole), kExact) << "trial " << trial;
    EXPECT_NE(whole.losses.front(), whole.losses.back());
  }
}

TEST(RunParity, ShardedParameters) {
  std::mt19937_64 random(6);
  for (int trial = 0; trial < 12; ++trial) {
    const Graph graph = random_branches(random, 6, false, false);
    Plan plan = random_plan_for(random, graph);
    for (Stage& stage : plan.stages) stage.own->zero = Zero::parameters;
    TrainingSettings settings = exact_settings(3);
    if (trial % 3 == 0) settings.optimizer = OptimizerRule::adam;
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    const TrainedModel parts = train_by_threads(graph, plan, "", settings);
    EXPECT_LE(difference(parts, whole), trial % 3 == 0 ? 1e-9 : kExact) << "trial " << trial;
  }
}

TEST(RunParity, EveryScheduleWithAdam) {
  std::mt19937_64 random(2);
  for (const ScheduleCase& each : schedule_cases()) {
    const Graph graph = random_branches(random, 7, true);
    const Plan plan = uniform_plan_for(random, graph, each.vp);
    TrainingSettings settings = exact_settings(3);
    settings.optimizer = OptimizerRule::adam;
    settings.learning_rate = 0.01;
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    const TrainedModel parts = train_by_threads(graph, plan, each.name, settings);
    // Adam divides by gradients, however small.
    EXPECT_LE(difference(parts, whole), 1e-9) << each.name << each.vp;
  }
}

TEST(RunParity, KnownModels) {
  std::mt19937_64 random(3);
  for (const TinyModel& model : tiny_models()) {
    const Graph graph = graph_of(model);
    for (int trial = 0; trial < 2; ++trial) {
      const Plan plan = random_plan_for(random, graph);
      TrainingSettings settings = exact_settings(2);
      // What the random weights of some make is large, and so are gradients.
      settings.learning_rate = 0.0001;
      const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
      const TrainedModel parts = train_by_threads(graph, plan, "", settings);
      EXPECT_LE(difference(parts, whole), kExact) << model.name;
      EXPECT_NE(whole.losses.front(), whole.losses.back()) << model.name;
    }
  }
}

TEST(RunParity, LowerPrecisionsAreAsNearAsTheyCanBe) {
  std::mt19937_64 random(4);
  const Graph graph = graph_of(tiny_models()[1]);
  for (const auto& [type, most] : {std::pair(ElementType::f32, 1e-5), {ElementType::bf16, 5e-2}}) {
    const Plan plan = random_plan_for(random, graph);
    TrainingSettings settings = exact_settings(3);
    settings.learning_rate = 0.01;
    const TrainedModel exact = train_whole(layered_program(graph), plan.global_batch, settings);
    settings.type = type;
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    const TrainedModel parts = train_by_threads(graph, plan, "", settings);
    EXPECT_LE(difference(parts, whole), most);
    EXPECT_LE(difference(parts, exact), most);
    EXPECT_GT(difference(parts, exact), 0);
  }
}

/// Passes everything on; what its rank has sent over one edge, or what one group has summed, comes
/// out wrong by a part.
class FaultyLink : public RankLink {
 public:
  FaultyLink(RankLink& link, bool sums) : link_(link), sums_(sums) {}
  void send(const TensorHandle& tensor, std::int32_t peer, std::int32_t tag) override {
    link_.send(sums_ ? tensor : doubled(tensor), peer, tag);
  }
  TensorHandle receive(TensorHandle room, std::int32_t peer, std::int32_t tag) override {
    return link_.receive(std::move(room), peer, tag);
  }
  void finish_sends() override { link_.finish_sends(); }
  TensorHandle sum(std::size_t group, TensorHandle row) override {
    return link_.sum(group, sums_ ? doubled(row) : row);
  }
  TensorHandle sum_part(std::size_t group, TensorHandle row) override {
    return link_.sum_part(group, sums_ ? doubled(row) : row);
  }
  TensorHandle gather(std::size_t group, TensorHandle part, TensorHandle room) override {
    return link_.gather(group, std::move(part), std::move(room));
  }
  std::vector<TensorHandle> all_to_all(std::size_t group, std::span<const TensorHandle> parts,
                                       std::span<const TensorHandle> rooms) override {
    return link_.all_to_all(group, parts, rooms);
  }
  double sum_of_all(double number) override { return link_.sum_of_all(number); }

 private:
  static TensorHandle doubled(const TensorHandle& x) { return torch_arithmetic().sum(x, x); }
  RankLink& link_;
  bool sums_;
};

TEST(RunParity, AGradientThatIsScaledWronglyIsFound) {
  std::mt19937_64 random(5);
  int sums = 0, sends = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const Graph graph = random_branches(random, 6, true);
    const Plan plan = random_plan_for(random, graph);
    const TrainingSettings settings = exact_settings(2);
    const TrainedModel whole = train_whole(layered_program(graph), plan.global_batch, settings);
    const bool replicas = std::any_of(plan.stages.begin(), plan.stages.end(),
                                      [](const Stage& stage) { return stage.dp > 1; });
    for (const bool of_sums : {true, false}) {
      if (of_sums ? !replicas : plan.stages.size() < 2) continue;
      const TrainedModel parts =
          train_by_threads(graph, plan, "", settings, [&](std::int32_t, RankLink& link) {
            return std::make_unique<FaultyLink>(link, of_sums);
          });
      EXPECT_GT(difference(parts, whole), 1e3 * kExact) << "trial " << trial;
      ++(of_sums ? sums : sends);
    }
  }
  EXPECT_GT(sums, 5);
  EXPECT_GT(sends, 5);
}

/// Gated experts without biases, token by token and number by number.
DenseTensor mixture(const DenseTensor& x, const DenseTensor& scores, const DenseTensor& weights,
                    std::int64_t top_k) {
  const std::vector<double> in = numbers_of<double>(x), score = numbers_of<double>(scores),
                            w = numbers_of<double>(weights);
  const std::size_t tokens = at(x.shape[0]), width = at(x.shape[1]), experts = at(weights.shape[0]),
                    inner = at(weights.shape[3]);
  const auto weight = [&](std::size_t e, std::size_t m, std::size_t row, std::size_t column) {
    return w[((e * 3 + m) * width + row) * inner + column];
  };
  std::vector<double> out(in.size(), 0);
  for (std::size_t t = 0; t < tokens; ++t) {
    std::vector<std::size_t> order(experts);
    for (std::size_t e = 0; e < experts; ++e) order[e] = e;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return score[t * experts + a] > score[t * experts + b];
    });
    order.resize(at(top_k));
    double sum = 0;
    for (const std::size_t e : order) sum += std::exp(score[t * experts + e]);
    for (const std::size_t e : order) {
      for (std::size_t i = 0; i < inner; ++i) {
        double gate = 0, up = 0;
        for (std::size_t h = 0; h < width; ++h) {
          gate += in[t * width + h] * weight(e, 0, h, i);
          up += in[t * width + h] * weight(e, 1, h, i);
        }
        const double hidden =
            gate / (1 + std::exp(-gate)) * up * std::exp(score[t * experts + e]) / sum;
        for (std::size_t h = 0; h < width; ++h) out[t * width + h] += hidden * weight(e, 2, h, i);
      }
    }
  }
  return tensor_of(x.type, x.shape, out);
}

/// What the nodes of a program compute of these inputs, by value. Not the room that runs programs:
/// it brings libraries with products of their own under the names that libtorch calls.
std::vector<DenseTensor> values_of(const Program& program, const std::vector<DenseTensor>& inputs) {
  std::vector<DenseTensor> values(program.values.size());
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (program.values[v].constant) values[v] = *program.values[v].constant;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) values[at(program.inputs[i].value)] = inputs[i];
  for (const ProgramNode& node : program.nodes) {
    if (node.domain == kBraidDomain) {
      values[at(node.outputs.front())] =
          mixture(values[at(node.inputs[0])], values[at(node.inputs[1])],
                  values[at(node.inputs[2])], std::get<std::int64_t>(*node.attribute("top_k")));
      continue;
    }
    std::vector<const DenseTensor*> operands;
    for (const ValueId id : node.inputs) operands.push_back(id < 0 ? nullptr : &values[at(id)]);
    const ReferenceKernel kernel = reference_kernel(node.domain, node.operation);
    values[at(node.outputs.front())] = kernel(NodeCall(program, node, operands)).front();
  }
  return values;
}

/// The loss of the first iteration by the reference kernels, sample after sample.
double reference_loss(const Graph& graph, std::int64_t batch, const TrainingSettings& settings) {
  const LayeredProgram model = layered_program(graph);
  const SyntheticData data(model, settings.seed, batch);
  Program program = model.program;
  fill_missing_weights(program, settings.seed);
  double loss = 0;
  for (std::int64_t s = 0; s < batch; ++s) {
    std::vector<DenseTensor> inputs;
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      const ProgramInput& input = program.inputs[i];
      inputs.push_back(is_real(input.type) ? tensor_of(input.type, *input.shape, data.reals(i, s))
                                           : tensor_of(input.type, *input.shape, data.ids(i, s)));
    }
    const std::vector<DenseTensor> values = values_of(program, inputs);
    for (const ValueId id : model.logits.empty() ? program.outputs : model.logits) {
      const std::vector<double> numbers = numbers_of<double>(values[at(id)]);
      const auto columns = at(data.columns(id));
      const std::size_t rows = numbers.size() / columns;
      const double weight = 1 / static_cast<double>(rows * at(batch));
      for (std::size_t r = 0; r < rows; ++r) {
        const double* row = &numbers[r * columns];
        if (columns == 1) {
          loss += weight / 2 * std::pow(row[0] - data.targets(id, s)[r], 2);
          continue;
        }
        double sum = 0;
        for (std::size_t c = 0; c < columns; ++c) sum += std::exp(row[c]);
        loss += weight * (std::log(sum) - row[at(data.classes(id, s)[r])]);
      }
    }
  }
  return loss;
}

TEST(RunParity, OperationsAreThoseOfTheReferenceKernels) {
  for (const TinyModel& model : tiny_models()) {
    const Graph graph = graph_of(model);
    const TrainingSettings settings = exact_settings(1);
    const double expected = reference_loss(graph, 3, settings);
    const double loss = train_whole(layered_program(graph), 3, settings).losses.front();
    EXPECT_NEAR(loss, expected, 1e-5 * std::abs(expected)) << model.name;
  }
}

TEST(RunParity, TrainingMakesTheLossFall) {
  const Graph graph = graph_of(tiny_models()[0]);
  TrainingSettings settings = exact_settings(40);
  settings.optimizer = OptimizerRule::adam;
  settings.learning_rate = 0.01;
  const TrainedModel trained = train_whole(layered_program(graph), 8, settings);
  EXPECT_LT(trained.losses.back(), 0.7 * trained.losses.front());
}

}  // namespace
}  // namespace braid::test
