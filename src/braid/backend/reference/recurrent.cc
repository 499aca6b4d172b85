#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/base/index.h"
#include "braid/base/text.h"
#include "braid/program/numbers.h"

// Recurrent cells, step by step.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;
using Activation = std::function<double(double)>;

/// By ONNX's name (RNN, `activations`), in lower case.
Activation activation_of(const NodeCall& call, const std::string& name, double alpha, double beta) {
  if (name == "relu") return [](double x) { return std::max(x, 0.0); };
  if (name == "tanh") return [](double x) { return std::tanh(x); };
  if (name == "sigmoid") return [](double x) { return 1 / (1 + std::exp(-x)); };
  if (name == "affine") return [=](double x) { return alpha * x + beta; };
  if (name == "leakyrelu") return [=](double x) { return x >= 0 ? x : alpha * x; };
  if (name == "thresholdedrelu") return [=](double x) { return x >= alpha ? x : 0.0; };
  if (name == "scaledtanh") return [=](double x) { return alpha * std::tanh(beta * x); };
  if (name == "hardsigmoid") {
    return [=](double x) { return std::min(std::max(alpha * x + beta, 0.0), 1.0); };
  }
  if (name == "elu") return [=](double x) { return x >= 0 ? x : alpha * std::expm1(x); };
  if (name == "softsign") return [](double x) { return x / (1 + std::abs(x)); };
  if (name == "softplus") {
    return [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); };
  }
  call.fail(fmt::format("the activation '{}' is not known", name));
}

/// The constants that an activation has where the node gives none.
std::pair<double, double> usual_constants(const std::string& name) {
  if (name == "leakyrelu") return {0.01, 0};
  if (name == "hardsigmoid") return {0.2, 0.5};
  return {1, 0};
}

/// Clips what activations are given, when the node says so.
Activation clipped_activation(const NodeCall& call, Activation activation) {
  if (!call.has_attribute("clip")) return activation;
  const double clip = call.real("clip", 0);
  return [=](double x) { return activation(std::clamp(x, -clip, clip)); };
}

std::vector<Activation> activations_of(const NodeCall& call, std::vector<std::string> names,
                                       std::int64_t directions) {
  if (const auto* given = call.texts("activations")) {
    if (given->size() != names.size() * at(directions)) call.fail("its activations do not fit");
    names = *given;
  } else if (directions == 2) {
    const std::vector<std::string> again = names;
    names.insert(names.end(), again.begin(), again.end());
  }
  const auto* alphas = call.reals("activation_alpha");
  const auto* betas = call.reals("activation_beta");
  std::vector<Activation> activations;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = lowered(names[i]);
    const auto [alpha, beta] = usual_constants(name);
    const bool has_alpha = alphas != nullptr && i < alphas->size();
    const bool has_beta = betas != nullptr && i < betas->size();
    activations.push_back(
        clipped_activation(call, activation_of(call, name, has_alpha ? (*alphas)[i] : alpha,
                                               has_beta ? (*betas)[i] : beta)));
  }
  return activations;
}

/// The operands of RNN, GRU and LSTM with time as the outermost dimension.
struct RecurrentJob {
  std::int64_t steps = 0, batch = 0, input = 0, hidden = 0, gates = 0, directions = 1;
  bool batch_first = false;
  std::vector<double> x, w, r, bias, peepholes;
  std::vector<double> state, cell;  ///< [directions, batch, hidden].
  std::vector<std::int64_t> lengths;
};

/// Exchanges the two outermost of three dimensions.
std::vector<double> exchanged(const std::vector<double>& numbers, std::int64_t outer,
                              std::int64_t inner) {
  std::vector<double> result(numbers.size());
  const std::int64_t width =
      outer * inner > 0 ? static_cast<std::int64_t>(numbers.size()) / (outer * inner) : 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      for (std::int64_t e = 0; e < width; ++e) {
        result[at((i * outer + o) * width + e)] = numbers[at((o * inner + i) * width + e)];
      }
    }
  }
  return result;
}

/// Operand `i`, or zeros where there is none.
std::vector<double> optional_reals(const NodeCall& call, std::size_t i, std::int64_t count) {
  if (!call.has(i)) return std::vector<double>(at(count), 0.0);
  if (call.input(i).count() != count) {
    call.fail(fmt::format("input {} has the shape {}", i, shape_text(call.shape(i))));
  }
  return call.reals(i);
}

RecurrentJob recurrent_job(const NodeCall& call, std::int64_t gates) {
  call.need_inputs(3, 8);
  for (const std::size_t each : {0, 1, 2}) call.need_rank(each, 3, 3);
  RecurrentJob job;
  job.batch_first = call.flag("layout", false);
  const Shape& x = call.shape(0);
  job.steps = x[job.batch_first ? 1 : 0];
  job.batch = x[job.batch_first ? 0 : 1];
  job.input = x[2];
  job.gates = gates;
  job.directions = call.text("direction", "forward") == "bidirectional" ? 2 : 1;
  job.hidden = call.shape(2)[2];
  const std::int64_t rows = gates * job.hidden;
  if (call.shape(1) != Shape{job.directions, rows, job.input} ||
      call.shape(2) != Shape{job.directions, rows, job.hidden}) {
    call.fail(fmt::format("weights of the shapes {} and {} do not fit the input {}",
                          shape_text(call.shape(1)), shape_text(call.shape(2)), shape_text(x)));
  }
  job.x = job.batch_first ? exchanged(call.reals(0), job.batch, job.steps) : call.reals(0);
  job.w = call.reals(1);
  job.r = call.reals(2);
  job.bias = optional_reals(call, 3, job.directions * 2 * rows);
  job.lengths.assign(at(job.batch), job.steps);
  if (call.has(4)) job.lengths = call.integers(4);
  if (static_cast<std::int64_t>(job.lengths.size()) != job.batch) {
    call.fail("its lengths do not fit its samples");
  }
  const std::int64_t states = job.directions * job.batch * job.hidden;
  job.state = optional_reals(call, 5, states);
  job.cell = optional_reals(call, 6, states);
  if (job.batch_first) {
    job.state = exchanged(job.state, job.batch, job.directions);
    job.cell = exchanged(job.cell, job.batch, job.directions);
  }
  job.peepholes = optional_reals(call, 7, job.directions * 3 * job.hidden);
  return job;
}

/// One sample in one direction: what its gates read.
class CellInputs {
 public:
  CellInputs(const RecurrentJob& job, std::int64_t direction) : job_(&job), direction_(direction) {}

  /// W·x + its bias for row `row` of the gates.
  double of_input(std::int64_t row, const double* x) const {
    double sum = bias(row, false);
    const double* weights = job_->w.data() + (direction_ * rows() + row) * job_->input;
    for (std::int64_t i = 0; i < job_->input; ++i) sum += weights[i] * x[i];
    return sum;
  }
  /// R·h + its bias.
  double of_state(std::int64_t row, const double* h) const {
    double sum = bias(row, true);
    const double* weights = job_->r.data() + (direction_ * rows() + row) * job_->hidden;
    for (std::int64_t i = 0; i < job_->hidden; ++i) sum += weights[i] * h[i];
    return sum;
  }
  double bias(std::int64_t row, bool of_state) const {
    return job_->bias[at((direction_ * 2 + (of_state ? 1 : 0)) * rows() + row)];
  }
  double peephole(std::int64_t gate, std::int64_t unit) const {
    return job_->peepholes[at((direction_ * 3 + gate) * job_->hidden + unit)];
  }
  std::int64_t hidden() const { return job_->hidden; }

 private:
  std::int64_t rows() const { return job_->gates * job_->hidden; }

  const RecurrentJob* job_;
  std::int64_t direction_;
};

/// A step of one sample: reads x, changes the state h and the cell c.
using CellStep = std::function<void(const CellInputs& inputs, const Activation* f, const double* x,
                                    double* h, double* c)>;

/// Runs `step` over all steps, directions and samples. Steps behind a sample's length give zeros.
Tensors run_cells(const NodeCall& call, RecurrentJob job, const std::vector<Activation>& f,
                  const CellStep& step) {
  const std::int64_t width = job.hidden;
  std::vector<double> y(at(job.steps * job.directions * job.batch * width), 0.0);
  const bool reversed = call.text("direction", "forward") == "reverse";
  const std::size_t own = f.size() / at(job.directions);
  for (std::int64_t d = 0; d < job.directions; ++d) {
    const CellInputs inputs(job, d);
    for (std::int64_t b = 0; b < job.batch; ++b) {
      double* h = job.state.data() + (d * job.batch + b) * width;
      double* c = job.cell.data() + (d * job.batch + b) * width;
      const std::int64_t length = std::clamp<std::int64_t>(job.lengths[at(b)], 0, job.steps);
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t t = reversed || d == 1 ? length - 1 - i : i;
        const double* x = job.x.data() + (t * job.batch + b) * job.input;
        step(inputs, f.data() + at(d) * own, x, h, c);
        std::copy(h, h + width, y.data() + ((t * job.directions + d) * job.batch + b) * width);
      }
    }
  }
  Shape y_shape{job.steps, job.directions, job.batch, width};
  Shape last{job.directions, job.batch, width};
  if (job.batch_first) {
    // [steps, directions, batch] to [batch, steps, directions].
    y = exchanged(y, job.steps * job.directions, job.batch);
    job.state = exchanged(job.state, job.directions, job.batch);
    job.cell = exchanged(job.cell, job.directions, job.batch);
    y_shape = {job.batch, job.steps, job.directions, width};
    last = {job.batch, job.directions, width};
  }
  return {tensor_of(call.type(0), y_shape, y), tensor_of(call.type(0), last, job.state),
          tensor_of(call.type(0), last, job.cell)};
}

Tensors rnn(const NodeCall& call) {
  RecurrentJob job = recurrent_job(call, 1);
  const auto f = activations_of(call, {"Tanh"}, job.directions);
  return run_cells(
      call, std::move(job), f,
      [](const CellInputs& in, const Activation* g, const double* x, double* h, double*) {
        std::vector<double> next(at(in.hidden()));
        for (std::int64_t u = 0; u < in.hidden(); ++u) {
          next[at(u)] = g[0](in.of_input(u, x) + in.of_state(u, h));
        }
        std::copy(next.begin(), next.end(), h);
      });
}

/// Gates are update z, reset r, hidden h (Cho et al. 2014).
void gru_step(bool linear_before_reset, const CellInputs& in, const Activation* g, const double* x,
              double* h) {
  const std::int64_t width = in.hidden();
  std::vector<double> update(at(width)), reset(at(width)), gated(at(width)), next(at(width));
  for (std::int64_t u = 0; u < width; ++u) {
    update[at(u)] = g[0](in.of_input(u, x) + in.of_state(u, h));
    reset[at(u)] = g[0](in.of_input(width + u, x) + in.of_state(width + u, h));
    gated[at(u)] = reset[at(u)] * h[u];
  }
  for (std::int64_t u = 0; u < width; ++u) {
    const std::int64_t row = 2 * width + u;
    const double from_state =
        linear_before_reset ? reset[at(u)] * in.of_state(row, h) : in.of_state(row, gated.data());
    const double hidden = g[1](in.of_input(row, x) + from_state);
    next[at(u)] = (1 - update[at(u)]) * hidden + update[at(u)] * h[u];
  }
  std::copy(next.begin(), next.end(), h);
}

Tensors gru(const NodeCall& call) {
  RecurrentJob job = recurrent_job(call, 3);
  const auto f = activations_of(call, {"Sigmoid", "Tanh"}, job.directions);
  const bool linear = call.flag("linear_before_reset", false);
  return run_cells(call, std::move(job), f,
                   [linear](const CellInputs& in, const Activation* g, const double* x, double* h,
                            double*) { gru_step(linear, in, g, x, h); });
}

/// Gates are input i, output o, forget f, cell c; peepholes i, o, f (Gers and Schmidhuber 2000).
void lstm_step(bool couples, const CellInputs& in, const Activation* g, const double* x, double* h,
               double* c) {
  const std::int64_t width = in.hidden();
  const auto gate = [&](std::int64_t which, std::int64_t u) {
    return in.of_input(which * width + u, x) + in.of_state(which * width + u, h);
  };
  std::vector<double> next(at(width));
  for (std::int64_t u = 0; u < width; ++u) {
    const double input = g[0](gate(0, u) + in.peephole(0, u) * c[u]);
    const double forget = couples ? 1 - input : g[0](gate(2, u) + in.peephole(2, u) * c[u]);
    const double output_before = gate(1, u);
    c[u] = forget * c[u] + input * g[1](gate(3, u));
    next[at(u)] = g[0](output_before + in.peephole(1, u) * c[u]) * g[2](c[u]);
  }
  std::copy(next.begin(), next.end(), h);
}

Tensors lstm(const NodeCall& call) {
  RecurrentJob job = recurrent_job(call, 4);
  const auto f = activations_of(call, {"Sigmoid", "Tanh", "Tanh"}, job.directions);
  const bool couples = call.flag("input_forget", false);
  return run_cells(call, std::move(job), f,
                   [couples](const CellInputs& in, const Activation* g, const double* x, double* h,
                             double* c) { lstm_step(couples, in, g, x, h, c); });
}

constexpr std::array<ReferenceEntry, 3> recurrent_entries{{
    {"GRU", gru},
    {"LSTM", lstm},
    {"RNN", rnn},
}};

}  // namespace

std::span<const ReferenceEntry> recurrent_kernels() { return recurrent_entries; }

}  // namespace braid
