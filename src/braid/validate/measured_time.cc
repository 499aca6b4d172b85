#include "braid/validate/measured_time.h"

#include <optional>
#include <string_view>
#include <vector>

#include "braid/base/text.h"
#include "braid/graph/op_work.h"

namespace braid {
namespace {

/// The scores that a causal mask leaves out count as well.
double whole_attention(const Operator& op) {
  const auto* attention = std::get_if<Attention>(&op.kind);
  if (attention == nullptr || !attention->causal || attention->window > 0) return 1;
  const auto keys = static_cast<double>(attention->kv_len);
  return attention->q_len == attention->kv_len ? 2 * keys / (keys + 1) : 1;
}

double layer_flops(const Graph& graph, const Layer& layer, bool is_block, Recompute recompute,
                   bool hardware) {
  double flops = 0;
  for (OperatorId id = layer.first; id < layer.last; ++id) {
    const Operator& op = graph.operators[static_cast<std::size_t>(id)];
    const double forward = forward_model_flops(graph, op);
    const bool again =
        hardware && is_block &&
        (recompute == Recompute::full ||
         (recompute == Recompute::selective && std::holds_alternative<Attention>(op.kind)));
    flops += whole_attention(op) * (forward * (again ? 2 : 1) + backward_model_flops(graph, op));
  }
  return flops;
}

bool is_number_char(char c) { return (c >= '0' && c <= '9') || c == '.'; }

/// Hardware TFLOP/s of a device in the notes; 0 when they say none.
double noted_tflops(std::string_view notes) {
  constexpr std::string_view kAssigned = "TFLOP/s/GPU=";
  std::optional<double> rate;
  if (const std::size_t at = notes.find(kAssigned); at != std::string_view::npos) {
    std::string_view rest = notes.substr(at + kAssigned.size());
    std::size_t end = 0;
    while (end < rest.size() && is_number_char(rest[end])) ++end;
    rate = finite_double(rest.substr(0, end));
  } else if (const std::size_t unit = notes.find(" TFLOPs");
             unit != std::string_view::npos && notes.find("hardware") != std::string_view::npos) {
    std::size_t begin = unit;
    while (begin > 0 && is_number_char(notes[begin - 1])) --begin;
    rate = finite_double(notes.substr(begin, unit - begin));
  }
  return rate && *rate > 0 ? *rate : 0;
}

/// Samples a second of all devices in the notes ("46.91 samples/s", "11.2 samples/s/GPU"); 0 when
/// they say none.
double noted_samples_per_s(std::string_view notes, double devices) {
  constexpr std::string_view kUnit = " samples/s";
  const std::size_t unit = notes.find(kUnit);
  if (unit == std::string_view::npos) return 0;
  std::size_t begin = unit;
  while (begin > 0 && is_number_char(notes[begin - 1])) --begin;
  const auto rate = finite_double(notes.substr(begin, unit - begin));
  if (!rate || *rate <= 0) return 0;
  const std::string_view rest = notes.substr(unit + kUnit.size());
  const bool each = rest.starts_with("/GPU") || rest.starts_with("/device") ||
                    rest.starts_with(" per GPU") || rest.starts_with(" per device");
  return *rate * (each ? devices : 1);
}

}  // namespace

double reported_flops(const Graph& graph, std::int64_t global_batch, Recompute recompute,
                      bool hardware) {
  std::vector<double> kinds;
  double flops = 0;
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    const Layer& layer = graph.layers[l];
    const auto kind = static_cast<std::size_t>(layer.kind);
    if (kind >= kinds.size()) kinds.resize(kind + 1, -1);
    if (kinds[kind] < 0) {
      const bool is_block = l > 0 && l + 1 < graph.layers.size();
      kinds[kind] = layer_flops(graph, layer, is_block, recompute, hardware);
    }
    flops += kinds[kind];
  }
  return flops * static_cast<double>(global_batch) / static_cast<double>(graph.samples);
}

double measured_time_s(const MeasuredRun& run, const Graph& graph, const Precision& precision,
                       Recompute recompute, const System& system) {
  if (run.iteration_time_s > 0) return run.iteration_time_s;
  if (run.global_batch == 0 || run.devices == 0) return 0;
  const auto devices = static_cast<double>(run.devices);
  const auto time_at = [&](double flops_per_s, bool hardware) {
    return reported_flops(graph, run.global_batch, recompute, hardware) / (devices * flops_per_s);
  };
  if (run.tokens_per_s_per_device > 0) {
    return static_cast<double>(run.global_batch) * static_cast<double>(graph.seq_len) /
           (run.tokens_per_s_per_device * devices);
  }
  if (const double rate = noted_samples_per_s(run.notes, devices); rate > 0) {
    return static_cast<double>(run.global_batch) / rate;
  }
  if (run.model_tflops_per_device > 0) return time_at(run.model_tflops_per_device * 1e12, false);
  if (const double rate = noted_tflops(run.notes); rate > 0) return time_at(rate * 1e12, true);
  double peak = 0;  // Of a device in the mean.
  double count = 0;
  for (const DeviceGroup& group : system.groups) {
    const auto share = static_cast<double>(group.nodes * group.devices_per_node);
    peak += share * matmul_peak(group.chip, precision.matmul).value_or(0);
    count += share;
  }
  if (peak <= 0) return 0;
  peak /= count;
  if (run.mfu > 0) return time_at(run.mfu * peak, false);
  return run.hfu > 0 ? time_at(run.hfu * peak, true) : 0;
}

}  // namespace braid
