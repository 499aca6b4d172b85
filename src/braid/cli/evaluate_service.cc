#include "braid/cli/evaluate_service.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "braid/base/counted.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/text.h"
#include "braid/cli/served_worker_json.h"
#include "braid/cli/verbs.h"
#include "braid/evaluate/service_evaluation.h"
#include "braid/serve/launch/launch_reader.h"
#include "braid/serve/launch/stated_service.h"
#include "braid/serve/served_model.h"
#include "braid/serve/served_names.h"

namespace braid {
namespace {

bool is_file(const std::string& from) {
  std::error_code error;
  return std::filesystem::is_regular_file(from, error);
}

std::string text_of(const std::string& from) { return is_file(from) ? read_file(from) : from; }
std::string name_of(const std::string& from) { return is_file(from) ? from : "--from"; }

/// The model that is given, else the one that a command line names. Throws Error where neither is.
ServedModel model_of(const std::string& given, const std::string& launched, const char* argument) {
  if (!given.empty()) return load_served_model(given);
  if (launched.empty()) throw Error(std::string(argument) + " is required", "name one");
  const auto known = served_name_of(launched);
  // A folder of that name has the model itself.
  std::error_code error;
  if (!known || std::filesystem::exists(launched, error)) return load_served_model(launched);
  ServedModel model = load_served_model(*known);
  if (const std::int64_t positions = positions_of_checkpoint(launched); positions > 0) {
    model.positions = positions;
  }
  return model;
}

/// The largest request must fit what the engine is told to take.
void check_context(const LaunchedService& launched, const ServingJob& job,
                   const std::string& file) {
  const double tokens = job.input_tokens + job.output_tokens;
  for (const LaunchedWorker& worker : launched.workers) {
    if (worker.context == 0 || worker.context >= tokens) continue;
    throw Error(Where{file, 0, ""},
                fmt::format("its sequences have {:.0f} tokens at most, a request has {:.0f}",
                            worker.context, tokens),
                "ask for shorter --input-len and --output-len, or raise the engine's limit");
  }
}

/// The draft model of the command lines, and how many tokens it drafts.
struct LaunchedDraft {
  std::string model;
  std::int64_t tokens = 0;
};
LaunchedDraft draft_of(const LaunchedService& launched) {
  LaunchedDraft draft;
  for (const LaunchedWorker& worker : launched.workers) {
    if (worker.draft.empty()) continue;
    if (worker.role != WorkerRole::all) {
      throw Error(Where{"", 0, "--from"}, "only aggregated workers draft tokens",
                  "leave the draft model out");
    }
    draft = {worker.draft, worker.draft_tokens};
  }
  return draft;
}

Json room_json(const WorkerRoom& room) {
  return {{"weights_bytes", room.memory.weights_bytes},
          {"activation_bytes", room.memory.activation_bytes},
          {"graph_bytes", room.memory.graph_bytes},
          {"cache_bytes", room.memory.room_bytes},
          {"request_bytes", room.request_bytes},
          {"requests_held", room.held},
          {"missing_bytes", room.missing_bytes}};
}

Json times_json(const StatedTimes& times) {
  const ServingPlan& plan = times.plan;
  Json json = {{"fits", times.fits()},
               {"holds_targets", times.holds_targets()},
               {"disaggregated", plan.disaggregated},
               {"requests_per_s", plan.requests_per_s},
               {"requests_per_s_per_device", plan.requests_per_s_per_device()},
               {"ttft_s", plan.ttft_s},
               {"tpot_s", plan.tpot_s},
               {"sequences", times.sequences},
               {"devices", plan.devices},
               {"ttft_alone_s", times.alone.ttft_s},
               {"tpot_alone_s", times.alone.tpot_s},
               {"full_batch", times.full_batch},
               {"tpot_full_s", times.full.tpot_s}};
  if (!plan.disaggregated) json["ttft_full_s"] = times.full.ttft_s;
  json[plan.disaggregated ? "decode" : "workers"] = to_json(plan.decode);
  json[plan.disaggregated ? "decode_memory" : "memory"] = room_json(times.decode);
  if (plan.disaggregated) {
    json["prefill"] = to_json(plan.prefill);
    json["prefill_memory"] = room_json(times.prefill);
  }
  return json;
}

Json evaluation_json(const ServiceEvaluation& evaluation) {
  const StatedTimes& mine = evaluation.mine;
  Json json = {{"yours", times_json(mine)}};
  if (mine.holds_targets()) {
    const ServingIntervals& sure = evaluation.sure;
    json["yours"]["ttft_interval_s"] = {mine.plan.ttft_s * sure.ttft.low,
                                        mine.plan.ttft_s * sure.ttft.high};
    json["yours"]["tpot_interval_s"] = {mine.plan.tpot_s * sure.tpot.low,
                                        mine.plan.tpot_s * sure.tpot.high};
  }
  if (evaluation.best) json["best"] = times_json(*evaluation.best);
  Json changes = Json::array();
  for (const ServiceChange& change : evaluation.changes) {
    changes.push_back({{"change", change.what},
                       {"fits", change.after.fits()},
                       {"requests_per_s_per_device", change.after.plan.requests_per_s_per_device()},
                       {"ttft_s", change.after.plan.ttft_s},
                       {"tpot_s", change.after.plan.tpot_s}});
  }
  json["changes"] = std::move(changes);
  json["not_given"] = evaluation.not_given;
  json["not_known"] = evaluation.not_known;
  json["not_modelled"] = evaluation.not_modelled;
  return json;
}

}  // namespace

bool is_service(const std::string& from) {
  if (from.empty()) return false;
  if (!is_file(from) && from.find(' ') == std::string::npos) return false;
  return is_launch_text(text_of(from));
}

void check_service_options(const Verb& verb, const std::vector<VerbOption>& serving,
                           bool is_service) {
  constexpr std::array<std::string_view, 7> kOfBoth = {"MODEL",     "from", "cluster", "chip",
                                                       "precision", "json", "alone"};
  const auto serves = [&](const VerbOption& option) {
    return std::any_of(serving.begin(), serving.end(),
                       [&](const VerbOption& each) { return each.name() == option.name(); });
  };
  for (const VerbOption& option : verb.options()) {
    if (!option.given()) continue;
    const std::string name = option.name();
    const bool both = std::any_of(kOfBoth.begin(), kOfBoth.end(), [&](std::string_view each) {
      return name == each || option.is(std::string(each));
    });
    if (both || serves(option) == is_service) continue;
    throw Error(Where{"", 0, name},
                is_service ? "this is of training, and --from serves a model"
                           : "this is of services, and --from has no serving engine's command line",
                "leave it out");
  }
}

int evaluate_service_command(const ServiceCommand& command) {
  const JobOptions& options = *command.job;
  const std::string file = name_of(command.from);
  LaunchedService launched = read_launch_lines(text_of(command.from), file);
  if (command.asked.input_len == 0 || command.asked.output_len == 0) {
    throw Error(Where{"", 0, command.asked.input_len == 0 ? "--input-len" : "--output-len"},
                "how long requests are is not known", "give both --input-len and --output-len");
  }
  const double rate = rate_of(command.asked);
  const ServedModel model = model_of(options.model, launched.workers.front().model, "MODEL");
  const System system = load_devices(options.cluster, options.chip);
  const ChipKernels kernels = served_kernels(system);
  ServingJob job;
  take_options(command.asked, job);
  job.model = &model;
  job.system = &system;
  job.kernels = &kernels;
  check_context(launched, job, file);
  check_context(job);
  const LaunchedDraft drafts = draft_of(launched);
  std::optional<ServedModel> draft;
  if (!drafts.model.empty()) {
    draft = model_of(command.asked.draft, drafts.model, "--draft");
    check_draft(*draft, model, job.input_tokens + job.output_tokens);
  } else if (!command.asked.draft.empty() || command.asked.draft_tokens > 0) {
    throw Error(Where{"", 0, command.asked.draft.empty() ? "--draft-tokens" : "--draft"},
                "the command line drafts nothing", "leave it out");
  }
  job.draft = offer_of(command.asked, draft ? &*draft : nullptr);
  job.draft.draft_tokens = drafts.tokens;
  const StatedService stated =
      stated_service(launched, {model, system.device_count, options.precision}, file);
  ServiceEvaluation evaluation = evaluate_service(stated, job, !command.alone);
  evaluation.not_known = launched.unknown;
  evaluation.not_modelled = launched.notes;
  const auto named = served_name_of(launched.workers.front().model);
  if (named && !options.model.empty() && *named != model.name) {
    evaluation.not_modelled.push_back(fmt::format("{}: {} is served in place of {}, as MODEL says",
                                                  launched.workers.front().model, model.name,
                                                  *named));
  }
  const bool holds = evaluation.mine.holds_targets();
  if (options.json) {
    Json json = evaluation_json(evaluation);
    if (rate > 0 && holds) json["devices_for_rate"] = devices_for_rate(evaluation.mine.plan, rate);
    fmt::print("{}", to_text(json));
  } else {
    fmt::print("{}", service_evaluation_text(evaluation, job));
    if (rate > 0 && holds) {
      fmt::print("{} requests/s take {} of yours.\n", rate,
                 counted(devices_for_rate(evaluation.mine.plan, rate), "GPU"));
    }
  }
  return holds ? kFound : kInfeasible;
}

}  // namespace braid
