#include "planners/amp_experiments.h"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>

#include "braid/base/document.h"
#include "braid/plan/stage_context.h"
#include "braid/schedule/timeline.h"

#include "papers/amp/profile.h"

namespace braid {
namespace {

constexpr double kGbps = 1e9 / 8;
constexpr std::int32_t kDegrees[] = {1, 2, 4};

/// Nodes of p3.8xlarge (V100) and g4dn.12xlarge (T4), with the speeds given in the paper.
constexpr AmpNode p3(std::int32_t count, std::int32_t type) {
  return {count, 4, type, 170 * kGbps, 10 * kGbps};
}
constexpr AmpNode g4dn(std::int32_t count, std::int32_t type) {
  return {count, 4, type, 50 * kGbps, 50 * kGbps};
}

/// Of a network's rate that collectives over TCP and over PCIe reach, as in the catalogue's other
/// clusters of such. Those of these nodes are fitted to runs predicted from estimated layers, and
/// make up for what the estimates leave out; here layers are measured.
constexpr double kEthernetEfficiency = 0.85, kLinkEfficiency = 0.8;

/// Of a transformer layer, as braid's graphs count them: two norms, three products of attention,
/// attention, two of the network, an activation, two sums.
constexpr double kLayerOperators = 11;
/// Hosts of p3: TransGAN's layers of 81 tokens, which compute next to nothing, take 2.05 ms. Those
/// of g4dn, by their newer processor: its lookup of embeddings, all issue, takes 0.27 ms for 0.37.
constexpr double kP3Operator_s = 2.05e-3 / kLayerOperators;
constexpr double kG4dnOperator_s = kP3Operator_s * 0.27 / 0.37;
/// All-reduces of 0.17 and 2 MB, the difference that the tensor degree makes to layers of 81 and
/// 1024 tokens on p3, fit messages of 42 (degree 2) to 90 kB (degree 4) at half the rate.
constexpr double kHalfBytes = 64 * 1024;

std::vector<double> times_of(const Document& document, const std::string& name,
                             const std::vector<std::int32_t>& item) {
  std::vector<double> times_s;
  const Value values = document.root()[name]["values"];
  for (std::size_t l = 0; l + 1 < item.size(); ++l) {
    times_s.push_back(values[static_cast<std::size_t>(item[l])].as_double());
  }
  return times_s;
}

/// GPT-2 with 24 layers of hidden size 1024, 1024 tokens, 16 heads, 52256 words: an embedding, a
/// layer without work, the layers, two more without, the output embedding and one without.
void fill_gpt2(AmpModel& model) {
  constexpr double kHidden = 1024, kTokens = 1024, kWords = 52256, kHeads = 16;
  model.layers.resize(30);
  for (std::size_t l = 0; l < 30; ++l) {
    AmpLayer& layer = model.layers[l];
    layer.output_elements = kTokens * kHidden;
    if (l >= 28) {
      layer.output_elements = kTokens * kWords;
      layer.output_split = true;
    }
    if (l == 0 || l == 28) layer.embedding_parameters = kHidden * kWords;
    // Logits in half precision; in single precision their copy, exponentials and gradient.
    if (l == 28) layer.split_activation_bytes = 14 * kTokens * kWords;
    if (l < 2 || l > 25) continue;
    layer.parameters = 12 * kHidden * kHidden;
    layer.operators = kLayerOperators;
    // Korthikanti et al. 2022, §4.1.
    layer.activation_bytes = 10 * kTokens * kHidden;
    layer.split_activation_bytes = 24 * kTokens * kHidden + 5 * kHeads * kTokens * kTokens;
  }
}

/// TransGAN's generator: an input layer, 12 layers of hidden size 1024 for 9 × 9 tokens and, after
/// doubling the resolution five times, 12 of size 16 for 288 × 288.
void fill_transgan(AmpModel& model) {
  model.layers.resize(25);
  for (std::size_t l = 0; l < 25; ++l) {
    AmpLayer& layer = model.layers[l];
    layer.output_elements = 81.0 * 1024;
    if (l == 0) continue;
    layer.operators = kLayerOperators;
    const double hidden = l <= 12 ? 1024 : 16;
    layer.parameters = 12 * hidden * hidden;
  }
}

/// AMP takes every cut of TransGAN for one of 81 · 1024 elements and knows nothing of memory.
AmpModel physical_transgan(AmpModel model) {
  constexpr double kHeads = 4;  // Jiang et al. 2021, who attend within windows of 16 × 16 tokens.
  for (std::size_t l = 1; l < 25; ++l) {
    const double tokens = l <= 12 ? 81 : 288.0 * 288, hidden = l <= 12 ? 1024 : 16;
    const double window = std::min(tokens, 256.0);
    AmpLayer& layer = model.layers[l];
    layer.output_elements = tokens * hidden;
    // Korthikanti et al. 2022, §4.1.
    layer.activation_bytes = 10 * tokens * hidden;
    layer.split_activation_bytes = 24 * tokens * hidden + 5 * kHeads * tokens * window;
  }
  return model;
}

}  // namespace

AmpExperiment amp_experiment(const std::string& name, const std::string& folder) {
  AmpExperiment experiment;
  experiment.name = name;
  std::vector<AmpNode> nodes;
  std::vector<std::string> profiles;
  if (name == "het_model") {
    fill_transgan(experiment.model);
    experiment.global_batch = 64;
    experiment.item = {0};
    for (std::int32_t l = 3; l < 15; ++l) experiment.item.push_back(l);
    for (std::int32_t l = 41; l < 53; ++l) experiment.item.push_back(l);
    experiment.item.push_back(56);
    nodes = {p3(4, 0)};
    experiment.system = load_system("p3.8xlarge:4nodes");
    profiles = {"transgan_P3"};
  } else {
    fill_gpt2(experiment.model);
    experiment.global_batch = 32;
    experiment.item.resize(31);
    std::iota(experiment.item.begin(), experiment.item.end(), 0);
    if (name == "homogeneous") {
      nodes = {g4dn(4, 0)};
      experiment.system = load_system("g4dn.12xlarge:4nodes");
      profiles = {"gpt2_G4"};
    } else {
      nodes = {p3(3, 0), g4dn(1, 1)};
      experiment.system = load_system("p3.8xlarge:3nodes+g4dn.12xlarge:1nodes");
      profiles = {"gpt2_P3", "gpt2_G4"};
    }
  }
  experiment.physical =
      name == "het_model" ? physical_transgan(experiment.model) : experiment.model;
  experiment.cluster = amp_cluster_of(nodes);
  for (NetworkLevel& level : experiment.system.levels) level.efficiency = kEthernetEfficiency;
  for (DeviceGroup& group : experiment.system.groups) {
    group.intra_node.efficiency = kLinkEfficiency;
    group.intra_node.half_bytes = kHalfBytes;
    group.chip.efficiency.host_operator_s =
        group.chip.name == "t4" ? kG4dnOperator_s : kP3Operator_s;
  }
  const Document document = Document::parse_file(folder + "/profiled_layer_costs.json");
  experiment.model.degrees.assign(std::begin(kDegrees), std::end(kDegrees));
  for (const std::string& profile : profiles) {
    experiment.model.forward_s.emplace_back();
    for (const std::int32_t degree : kDegrees) {
      experiment.model.forward_s.back().push_back(
          times_of(document, profile + "_" + std::to_string(degree) + ".npy", experiment.item));
    }
  }
  experiment.physical.degrees = experiment.model.degrees;
  experiment.physical.forward_s = experiment.model.forward_s;
  return experiment;
}

std::vector<AmpTrial> amp_trials(const AmpExperiment& experiment, const std::string& folder) {
  std::vector<AmpTrial> trials;
  std::ifstream file(folder + "/measured.csv");
  std::string line;
  std::getline(file, line);  // Names of the columns.
  while (std::getline(file, line)) {
    std::vector<std::string> field;
    std::istringstream fields(line);
    for (std::string text; std::getline(fields, text, ',');) field.push_back(text);
    if (field.at(0) != experiment.name || field.at(10) == "not_run") continue;
    AmpTrial trial;
    trial.strategy = in_rank_order(std::stoi(field[6]), std::stoi(field[5]), std::stoi(field[4]),
                                   std::stoi(field[3]));
    std::istringstream cuts(field.at(8));
    std::int32_t cut = 0;
    cuts >> cut;
    while (cuts >> cut) {
      // Items between two of the model's layers belong to the stage of the one before.
      std::int32_t end = 0;
      while (experiment.item[static_cast<std::size_t>(end)] < cut) ++end;
      trial.ends.push_back(end);
    }
    trial.finished = field.at(10) == "ok";
    if (trial.finished) trial.measured_s = std::stod(field.at(9));
    trial.program_s = std::stod(field.at(11));
    trials.push_back(std::move(trial));
  }
  return trials;
}

AmpForecast amp_forecast(const AmpModel& model, const System& system, const AmpTrial& trial,
                         std::int64_t global_batch) {
  const Plan plan = amp_plan(model, system, trial.strategy, global_batch, trial.ends);
  AmpForecast forecast;
  forecast.iteration_s = measure(plan).iteration_time_s;
  const std::vector<MemoryBreakdown> memory = memory_of_stages(plan);
  for (std::size_t s = 0; s < memory.size(); ++s) {
    forecast.fits = forecast.fits && memory[s].device_total() <= usable_bytes_of_stage(plan, s);
  }
  return forecast;
}

AmpStrategy in_rank_order(std::int32_t pp, std::int32_t dp, std::int32_t tp,
                          std::int32_t micro_batch) {
  AmpStrategy strategy{pp, dp, tp, micro_batch, {}};
  strategy.device.resize(static_cast<std::size_t>(pp) * static_cast<std::size_t>(dp) *
                         static_cast<std::size_t>(tp));
  std::iota(strategy.device.begin(), strategy.device.end(), 0);
  return strategy;
}

}  // namespace braid
