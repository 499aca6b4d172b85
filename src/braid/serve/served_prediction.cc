#include "braid/serve/served_prediction.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "braid/base/error.h"
#include "braid/serve/worker_memory.h"

namespace braid {
namespace {

struct NamePair {
  std::string_view begins, name;
};

/// Beginnings of the last part of a path, without case; R1 and V3.1 have V3's shape, K2.5's
/// language model K2's.
constexpr std::array kModels = {
    NamePair{"deepseek-r1", "deepseek-v3"},
    NamePair{"deepseek-v3", "deepseek-v3"},
    NamePair{"deepseek-v2", "deepseek-v2"},
    NamePair{"llama-3.1-8b", "llama-3-8b"},
    NamePair{"llama-3.1-70b", "llama-3-70b"},
    NamePair{"llama-3.3-70b", "llama-3-70b"},
    NamePair{"llama-3.1-405b", "llama-3-405b"},
    NamePair{"gpt-oss-120b", "gpt-oss-120b"},
    NamePair{"qwen3-32b", "qwen3-32b"},
    NamePair{"qwen3-235b", "qwen3-235b-a22b"},
    NamePair{"qwen3-30b", "qwen3-30b-a3b"},
    NamePair{"qwen3-8b", "qwen3-8b"},
    NamePair{"qwen3.5-397b", "qwen3.5-397b-a17b"},
    NamePair{"minimax-m2", "minimax-m2.5"},
    NamePair{"kimi-k2", "kimi-k2"},
    NamePair{"glm-5", "glm-5"},
    NamePair{"mixtral-8x7b", "mixtral-8x7b"},
    NamePair{"mixtral-8x22b", "mixtral-8x22b"},
};
constexpr std::array kSystems = {
    NamePair{"a100_sxm", "dgx-a100"}, NamePair{"h100_sxm", "dgx-h100"},
    NamePair{"h200_sxm", "dgx-h200"}, NamePair{"b200_sxm", "dgx-b200"},
    NamePair{"b300_sxm", "dgx-b300"}, NamePair{"gb200", "gb200-nvl72"},
    NamePair{"gb300", "gb300-nvl72"},
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// Heads that tensor parallelism does not divide are not divided: attention is then on as many
/// groups of its own, as engines run latent attention on many devices.
ServingLayout possible_layout(const ServedModel& model, ServingLayout layout) {
  for (const ServedLayer& layer : model.layers) {
    if (layer.heads > 0 && std::fmod(layer.heads, static_cast<double>(layout.tp)) != 0) {
      layout.dp *= layout.tp;
      layout.tp = 1;
    }
  }
  if (layout.dp > 1 && layout.moe_ep == 1) std::swap(layout.moe_tp, layout.moe_ep);
  return layout;
}

/// What a row's precision is where it says none: what the checkpoint's name says, else bf16.
std::string precision_of(const ServedRow& row) {
  if (!row.precision.empty()) return row.precision;
  const std::string path = lower(row.model);
  if (path.find("fp4") != std::string::npos) return "fp4";
  return path.find("fp8") != std::string::npos ? "fp8" : "bf16";
}

/// Decode workers where a row does not say: the median of those services that do, which is 4 of
/// workers with tensor parallelism alone, 1 with attention groups.
double usual_decode_workers(const ServedRow& row) {
  constexpr double kUsual = 4;
  return row.decode.layout.dp > 1 ? 1 : kUsual;
}

}  // namespace

std::optional<std::string> served_name_of(std::string_view model_path) {
  const std::string name = lower(model_path.substr(model_path.rfind('/') + 1));
  for (const NamePair& pair : kModels) {
    if (name.starts_with(pair.begins)) return std::string(pair.name);
  }
  return std::nullopt;
}

std::optional<std::string> served_cluster_of(std::string_view system) {
  for (const NamePair& pair : kSystems) {
    if (system == pair.begins) return std::string(pair.name);
  }
  return std::nullopt;
}

struct ServedRuns::Run {
  std::string reason;
  int engine = -1;
  const StepModel* aggregated = nullptr;
  const StepModel* prefill = nullptr;
  const StepModel* decode = nullptr;
  ServingLoad load;
  DisaggregatedService service;
  BatchLimits limits;
};

struct ServedRuns::Shared {
  std::map<std::string, ServedModel> models;
  std::map<std::string, System> systems;
  std::map<std::string, ChipKernels> kernels;
  std::map<std::string, StepModel> steps;

  const ServedModel& model(const std::string& name);
  const System& system(const std::string& name);
  const StepModel& step(const ServedRow& row, int engine, ServingLayout layout);
};

const ServedModel& ServedRuns::Shared::model(const std::string& name) {
  const auto found = models.find(name);
  if (found != models.end()) return found->second;
  return models.emplace(name, load_served_model(name)).first->second;
}

const System& ServedRuns::Shared::system(const std::string& name) {
  const auto found = systems.find(name);
  if (found != systems.end()) return found->second;
  const System& system = systems.emplace(name, load_system(name)).first->second;
  const Chip& chip = system.groups.front().chip;
  std::optional<ChipKernels> known = load_kernels(chip);
  if (!known) throw Error("no kernels of " + chip.name + " were measured");
  kernels.emplace(name, std::move(*known));
  return system;
}

const StepModel& ServedRuns::Shared::step(const ServedRow& row, int engine, ServingLayout layout) {
  const std::optional<std::string> model_name = served_name_of(row.model);
  if (!model_name) throw Error("unknown model " + row.model);
  const std::optional<std::string> cluster = served_cluster_of(row.system);
  if (!cluster) throw Error("unknown system " + row.system);
  const std::string precision = precision_of(row);
  const std::string key = *model_name + ' ' + *cluster + ' ' + precision + ' ' +
                          std::to_string(engine) + ' ' + std::to_string(layout.tp) + ' ' +
                          std::to_string(layout.pp) + ' ' + std::to_string(layout.dp) + ' ' +
                          std::to_string(layout.moe_tp) + ' ' + std::to_string(layout.moe_ep);
  const auto found = steps.find(key);
  if (found != steps.end()) return found->second;
  Worker worker;
  worker.model = &model(*model_name);
  layout = possible_layout(*worker.model, layout);
  worker.engine = &engine_catalogue()[static_cast<std::size_t>(engine)];
  worker.system = &system(*cluster);
  worker.kernels = &kernels.at(*cluster);
  worker.format = serving_format(*worker.model, precision);
  worker.layout = layout;
  return steps.emplace(key, StepModel(worker)).first->second;
}

ServedRuns::ServedRuns(std::vector<ServedRow> rows)
    : rows_(std::move(rows)), shared_(std::make_unique<Shared>()) {
  const std::vector<Engine>& engines = engine_catalogue();
  constexpr double kBurstShare = 0.1;
  for (const ServedRow& row : rows_) {
    Run run;
    const auto engine = std::find_if(engines.begin(), engines.end(),
                                     [&](const Engine& e) { return e.name == row.engine; });
    if (engine == engines.end()) {
      run.reason = "unknown engine " + row.engine;
      runs_.push_back(std::move(run));
      continue;
    }
    run.engine = static_cast<int>(engine - engines.begin());
    run.load = {row.input_tokens, row.output_tokens, row.concurrency, kBurstShare, 0};
    try {
      const auto limits = [&](const StepModel& step) {
        const WorkerMemory memory = worker_memory(step.worker(), engine->chunk_tokens);
        const double held = held_sequences(
            step.worker(), memory, kept_tokens(*engine, row.input_tokens, row.output_tokens));
        if (memory.room_bytes <= 0) throw Error("the weights do not fit the devices of a worker");
        return BatchLimits{engine->chunk_tokens, std::max(held, 1.0)};
      };
      if (row.disaggregated) {
        run.service.prefill = &shared_->step(row, run.engine, row.prefill.layout);
        run.service.decode = &shared_->step(row, run.engine, row.decode.layout);
        run.service.prefill_workers = static_cast<double>(row.prefill.workers);
        run.service.decode_workers = static_cast<double>(row.decode.workers);
        run.service.prefill_limits = limits(*run.service.prefill);
        run.service.decode_limits = limits(*run.service.decode);
        if (row.decode.workers == 0) {
          // As many as hold the requests, where that is more than usual.
          run.service.decode_workers =
              std::max(usual_decode_workers(row),
                       std::ceil(row.concurrency / run.service.decode_limits.sequences));
        }
        if (run.load.concurrency == 0) {
          run.load.concurrency = std::max(1.0, row.decode.batch * run.service.decode_workers);
        }
      } else {
        run.aggregated = &shared_->step(row, run.engine, row.worker.layout);
        run.limits = limits(*run.aggregated);
        if (run.load.concurrency == 0) {
          run.load.concurrency =
              std::max(1.0, row.worker.batch * static_cast<double>(row.worker.layout.dp));
        }
      }
    } catch (const Error& error) {
      run.reason = error.what();
    }
    runs_.push_back(std::move(run));
  }
}

ServedRuns::~ServedRuns() = default;

int ServedRuns::engine_of(std::size_t row) const { return runs_[row].engine; }

ServedPrediction ServedRuns::predict(std::size_t row, const EngineFigures* figures) const {
  const Run& run = runs_[row];
  ServedPrediction prediction;
  prediction.reason = run.reason;
  if (!run.reason.empty()) return prediction;
  const EngineFigures& with =
      figures != nullptr ? *figures
                         : engine_catalogue()[static_cast<std::size_t>(run.engine)].figures;
  prediction.times = run.aggregated != nullptr
                         ? steady_state(*run.aggregated, with, run.load, run.limits)
                         : steady_state(run.service, with, with, run.load);
  return prediction;
}

}  // namespace braid
