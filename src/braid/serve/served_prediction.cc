#include "braid/serve/served_prediction.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/serve/served_names.h"
#include "braid/serve/worker_memory.h"

namespace braid {
namespace {

/// Workers that decode where a row does not say: the median of services that do, by whether these
/// have attention groups.
constexpr double kUsualTensorWorkers = 4;
constexpr double kUsualGroupWorkers = 2;
/// Requests under way from which services whose experts are dealt out have attention groups.
constexpr double kGroupsFrom = 400;
/// Devices on which latent attention is split by heads at most: every one keeps the whole cache.
constexpr std::int64_t kMostLatentRanks = 16;

/// Heads that tensor parallelism does not divide are not sharded, nor latent attention over more
/// ranks than anybody uses: attention is then on as many groups of its own.
ServingLayout possible_layout(const ServedModel& model, ServingLayout layout) {
  for (const ServedLayer& layer : model.layers) {
    const bool wide = layer.mixing == TokenMixing::latent && layout.tp > kMostLatentRanks;
    if (wide || (layer.heads > 0 && std::fmod(layer.heads, static_cast<double>(layout.tp)) != 0)) {
      layout.dp *= layout.tp;
      layout.tp = 1;
    }
  }
  if (layout.dp > 1 && layout.moe_ep == 1) std::swap(layout.moe_tp, layout.moe_ep);
  return layout;
}

/// Of sequences of the row's length, what a worker holds. Who asks for more at once than a cache in
/// 16 bits holds keeps it in 8.
double held_of(const Worker& worker, const ServedRow& row) {
  const Engine& engine = *worker.engine;
  const WorkerMemory memory = worker_memory(worker, engine.chunk_tokens);
  if (memory.room_bytes <= 0) throw Error("the weights do not fit the devices of a worker");
  const double kept = kept_tokens(engine, row.input_tokens, row.output_tokens);
  const double held = held_sequences(worker, memory, kept);
  Worker narrow = worker;
  narrow.format.cache = "fp8";
  const double of_narrow = held_sequences(narrow, worker_memory(narrow, engine.chunk_tokens), kept);
  return std::max({held, std::min(of_narrow, row.concurrency), 1.0});
}

/// How many sequences decode at once in a benchmark of workers that are launched for 2^n of them
/// each: less than a quarter more are under way (data/engines/trtllm.yaml). Where the row does not
/// say how many workers there are, it may be three times a power of two as well.
/// 0: as many as they hold.
double slots_of(const ServedRow& row, double ranks) {
  constexpr double kMostOver = 1.25;
  const double under_way = row.concurrency;
  const auto times_power = [under_way](double unit) {
    return unit * std::exp2(std::floor(std::log2(under_way / unit)));
  };
  if (under_way < ranks) return 0;
  const double slots =
      row.decode.workers > 0 ? times_power(ranks) : std::max(times_power(1), times_power(3));
  return under_way < kMostOver * slots ? slots : 0;
}

}  // namespace

struct ServedRuns::Run {
  std::string reason;
  int engine = -1;
  CorrectedRuns kind;
  const WorkerSteps* aggregated = nullptr;
  ServingLoad load;
  DisaggregatedService service;
};

/// What rows have in common, each read or computed once.
struct ServedRuns::Shared {
  std::map<std::string, ServedModel> models;
  std::map<std::string, System> systems;
  std::map<std::string, ChipKernels> kernels;
  std::map<std::string, StepModel> step_models;
  std::map<std::string, WorkerSteps> steps;

  const ServedModel& model(const std::string& name);
  const System& system(const std::string& name);
  const StepModel& step_model(const Worker& worker, const std::string& key);
  const WorkerSteps& worker_steps(const ServedRow& row, const Engine& engine,
                                  const ServingLayout& layout);
  const WorkerSteps& aggregated_steps(const ServedRow& row, const Engine& engine);
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

const StepModel& ServedRuns::Shared::step_model(const Worker& worker, const std::string& key) {
  const auto found = step_models.find(key);
  if (found != step_models.end()) return found->second;
  return step_models.emplace(key, StepModel(worker)).first->second;
}

const WorkerSteps& ServedRuns::Shared::worker_steps(const ServedRow& row, const Engine& engine,
                                                    const ServingLayout& layout) {
  const std::optional<std::string> model_name = served_name_of(row.model);
  if (!model_name) throw Error("unknown model " + row.model);
  const std::optional<std::string> cluster = served_cluster_of(row.system);
  if (!cluster) throw Error("unknown system " + row.system);
  Worker worker;
  worker.model = &model(*model_name);
  worker.engine = &engine;
  worker.system = &system(*cluster);
  worker.kernels = &kernels.at(*cluster);
  worker.format = serving_format(*worker.model, served_precision_of(row));
  worker.layout = possible_layout(*worker.model, layout);
  const ServingLayout& on = worker.layout;
  const std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {}", *model_name, *cluster, worker.format.name,
                  engine.name, on.tp, on.pp, on.dp, on.moe_tp, on.moe_ep);
  const BatchLimits limits{engine.chunk_tokens, held_of(worker, row)};
  const std::string requests =
      fmt::format("{} {} {} {}", key, row.input_tokens, row.output_tokens, limits.sequences);
  const auto found = steps.find(requests);
  if (found != steps.end()) return found->second;
  const StepModel& of = step_model(worker, key);
  return steps.emplace(requests, WorkerSteps(&of, {row.input_tokens, row.output_tokens, 0}, limits))
      .first->second;
}

/// As written where the model does not fit what is counted once.
const WorkerSteps& ServedRuns::Shared::aggregated_steps(const ServedRow& row,
                                                        const Engine& engine) {
  if (row.worker.once_counted == row.worker.layout) {
    return worker_steps(row, engine, row.worker.layout);
  }
  try {
    return worker_steps(row, engine, row.worker.once_counted);
  } catch (const Error&) {
    return worker_steps(row, engine, row.worker.layout);
  }
}

DisaggregatedService ServedRuns::service_of(const ServedRow& row, const Engine& engine) const {
  DisaggregatedService service;
  ServingLayout layout = row.decode.layout;
  const bool unsaid = row.decode.workers == 0;
  if (unsaid && layout.dp == 1 && layout.moe_ep > 1 && row.concurrency > kGroupsFrom) {
    layout = {1, layout.pp, layout.tp, 1, layout.tp};
  }
  service.prefill = &shared_->worker_steps(row, engine, row.prefill.layout);
  service.decode = &shared_->worker_steps(row, engine, layout);
  service.prefill_workers = static_cast<double>(row.prefill.workers);
  service.decode_workers = static_cast<double>(row.decode.workers);
  if (unsaid) {
    // As many as hold the requests, where that is more than usual.
    const double usual = row.decode.layout.dp > 1 ? 1
                         : layout.dp > 1          ? kUsualGroupWorkers
                                                  : kUsualTensorWorkers;
    service.decode_workers =
        std::max(usual, std::ceil(row.concurrency / service.decode->limits().sequences));
  }
  if (engine.fixed_slots) {
    const auto groups = static_cast<double>(service.decode->step().worker().layout.dp);
    service.most_sequences = slots_of(row, service.decode_workers * groups);
  }
  return service;
}

ServedRuns::Run ServedRuns::run_of(const ServedRow& row) const {
  const std::vector<Engine>& engines = engine_catalogue();
  Run run;
  const auto engine = std::find_if(engines.begin(), engines.end(),
                                   [&](const Engine& e) { return e.name == row.engine; });
  if (engine == engines.end()) {
    run.reason = "unknown engine " + row.engine;
    return run;
  }
  run.engine = static_cast<int>(engine - engines.begin());
  run.load = {row.concurrency, true};
  try {
    if (!row.disaggregated) {
      run.aggregated = &shared_->aggregated_steps(row, *engine);
      const Worker& of = run.aggregated->step().worker();
      if (row.concurrency == 0) {
        run.load.concurrency = std::max(1.0, row.worker.batch * static_cast<double>(of.layout.dp));
      }
      run.kind = corrected_runs_of(of, false);
      return run;
    }
    run.service = service_of(row, *engine);
    const DisaggregatedService& service = run.service;
    run.kind = corrected_runs_of(service.decode->step().worker(), true);
    if (row.concurrency == 0) {
      run.load.concurrency = std::max(1.0, row.decode.batch * service.decode_workers);
    }
  } catch (const Error& error) {
    run.reason = error.what();
  }
  return run;
}

ServedRuns::ServedRuns(std::vector<ServedRow> rows)
    : rows_(std::move(rows)), shared_(std::make_unique<Shared>()) {
  runs_.reserve(rows_.size());
  for (const ServedRow& row : rows_) runs_.push_back(run_of(row));
}

ServedRuns::~ServedRuns() = default;

int ServedRuns::engine_of(std::size_t row) const { return runs_[row].engine; }

const CorrectedRuns& ServedRuns::kind_of(std::size_t row) const { return runs_[row].kind; }

ServedPrediction ServedRuns::predict(std::size_t row, const EngineFigures& figures,
                                     const std::vector<EngineCorrection>& corrections) const {
  const Run& run = runs_[row];
  ServedPrediction prediction;
  prediction.reason = run.reason;
  if (!run.reason.empty()) return prediction;
  const ServingTimes times = run.aggregated != nullptr
                                 ? steady_state(*run.aggregated, figures, run.load)
                                 : steady_state(run.service, figures, figures, run.load);
  prediction.times = corrected(times, factors_of(corrections, run.kind));
  return prediction;
}

ServedPrediction ServedRuns::predict(std::size_t row) const {
  const int index = runs_[row].engine;
  if (index < 0) return {runs_[row].reason, {}};
  const Engine& engine = engine_catalogue()[static_cast<std::size_t>(index)];
  return predict(row, engine.figures, engine.corrections);
}

}  // namespace braid
