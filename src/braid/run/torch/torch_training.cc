#include "braid/run/torch/torch_training.h"

#include <cmath>
#include <map>
#include <utility>

#include <torch/torch.h>

#include "braid/base/index.h"
#include "braid/base/loaded_blas.h"
#include "braid/program/random_tensor.h"
#include "braid/run/synthetic_data.h"
#include "braid/run/torch/torch_loss.h"
#include "braid/run/torch/torch_operations.h"
#include "braid/run/torch/torch_tensor.h"
#include "braid/run/torch/torch_weights.h"

namespace braid {

torch::Tensor initial_weight(const Program& program, ValueId value,
                             const TrainingSettings& settings) {
  for (const MissingWeight& each : program.missing) {
    if (each.value == value) {
      return torch_tensor(random_weight(each, settings.seed), settings.type);
    }
  }
  const std::shared_ptr<const DenseTensor>& constant = program.values[at(value)].constant;
  return constant ? torch_tensor(*constant, settings.type) : torch::Tensor();
}

std::vector<std::string> computed_operations() { return torch_operations(); }

void set_torch_threads(int threads) {
  at::set_num_threads(threads);
  set_blas_threads(threads);
}

namespace {

/// The update of one parameter by the rule, of this step counted from 1, with state of its own.
class WholeOptimizer {
 public:
  explicit WholeOptimizer(const TrainingSettings& settings) : settings_(settings) {}

  void update(ValueId value, torch::Tensor& weight, std::int64_t number) {
    const torch::NoGradGuard no_gradients;
    const bool copied = settings_.type == ElementType::bf16;
    torch::Tensor& master = masters_[value];
    if (!master.defined()) master = copied ? weight.to(torch::kFloat32) : weight.detach();
    const torch::Tensor gradient = weight.grad().to(master.scalar_type());
    if (settings_.optimizer == OptimizerRule::sgd) {
      master.sub_(gradient, settings_.learning_rate);
    } else {
      adapt(value, master, gradient, static_cast<double>(number));
    }
    if (copied) weight.copy_(master);
    weight.mutable_grad() = torch::Tensor();
  }

 private:
  void adapt(ValueId value, torch::Tensor& weight, const torch::Tensor& gradient, double number) {
    auto& [first, second] = moments_[value];
    if (!first.defined()) {
      first = torch::zeros_like(gradient);
      second = torch::zeros_like(gradient);
    }
    first = first * 0.9 + gradient * 0.1;
    second = second * 0.999 + gradient * gradient * 0.001;
    const torch::Tensor mean = first / (1 - std::pow(0.9, number));
    const torch::Tensor spread = (second / (1 - std::pow(0.999, number))).sqrt() + 1e-8;
    weight.sub_(mean / spread, settings_.learning_rate);
  }

  const TrainingSettings& settings_;
  std::map<ValueId, torch::Tensor> masters_;
  std::map<ValueId, std::pair<torch::Tensor, torch::Tensor>> moments_;
};

}  // namespace

TrainedModel train_whole(const LayeredProgram& model, std::int64_t batch,
                         const TrainingSettings& settings) {
  const Program& program = model.program;
  const SyntheticData data(model, settings.seed, batch);
  std::vector<BatchedTensor> fixed(program.values.size());
  for (std::size_t v = 0; v < fixed.size(); ++v) {
    fixed[v].tensor = initial_weight(program, static_cast<ValueId>(v), settings);
  }
  for (const ValueId parameter : model.parameters) {
    fixed[at(parameter)].tensor.requires_grad_(true);
  }
  const std::vector<ValueId>& losses = model.logits.empty() ? program.outputs : model.logits;
  WholeOptimizer optimizer(settings);
  TrainedModel result;
  for (std::int64_t i = 0; i < settings.iterations; ++i) {
    std::vector<BatchedTensor> values = fixed;
    for (std::size_t n = 0; n < program.inputs.size(); ++n) {
      values[at(program.inputs[n].value)] = {
          input_of(data, program, n, i * batch, batch, settings.type), true};
    }
    compute_nodes(program, values);
    torch::Tensor loss;
    for (const ValueId id : losses) {
      const torch::Tensor each = loss_of(data, {id, i * batch, batch}, values[at(id)].tensor);
      loss = loss.defined() ? loss + each : each;
    }
    result.losses.push_back(loss.item<double>());
    loss.backward();
    for (const ValueId id : model.parameters) {
      torch::Tensor& weight = fixed[at(id)].tensor;
      if (weight.grad().defined()) optimizer.update(id, weight, i + 1);
    }
  }
  for (const ValueId id : model.parameters) {
    result.parameters.push_back(dense_tensor(fixed[at(id)].tensor));
  }
  return result;
}

}  // namespace braid
