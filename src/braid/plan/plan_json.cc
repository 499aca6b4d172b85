#include "braid/plan/plan_json.h"

#include <algorithm>
#include <limits>

#include "braid/base/quantity.h"
#include "braid/graph/model_shape_json.h"
#include "braid/plan/names.h"
#include "braid/plan/stage_rounds.h"
#include "braid/profile/profile_json.h"
#include "braid/system/system_json.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxDegree = 1 << 24;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;
constexpr double kMostClaimed = 1e30;

int degree(const Value& value) { return static_cast<int>(value.as_int_in(1, kMaxDegree)); }

template <typename T>
T named(const Value& value, std::optional<T> (*parse)(std::string_view), const char* known) {
  const auto found = parse(value.as_string());
  if (!found) {
    value.fail("unknown value \"" + std::string(value.as_string()) + "\"",
               std::string("use one of ") + known);
  }
  return *found;
}

constexpr const char* kDtypes = "f64, f32, tf32, f16, bf16, f8, f4";

Json precision_to_json(const Precision& precision) {
  Json json = Json::object();
  json["matmul"] = name_of(precision.matmul);
  json["activation"] = name_of(precision.activation);
  json["weight"] = name_of(precision.weight);
  json["gradient"] = name_of(precision.gradient);
  if (precision.shared_gradient) json["shared_gradient"] = name_of(*precision.shared_gradient);
  json["optimizer_bytes_per_parameter"] = precision.optimizer_bytes_per_parameter;
  return json;
}

Precision precision_from_json(const Value& value) {
  value.expect_only({"matmul", "activation", "weight", "gradient", "shared_gradient",
                     "optimizer_bytes_per_parameter"});
  Precision precision;
  precision.matmul = named<Dtype>(value["matmul"], parse_dtype, kDtypes);
  precision.activation = named<Dtype>(value["activation"], parse_dtype, kDtypes);
  precision.weight = named<Dtype>(value["weight"], parse_dtype, kDtypes);
  precision.gradient = named<Dtype>(value["gradient"], parse_dtype, kDtypes);
  if (value["shared_gradient"].exists()) {
    precision.shared_gradient = named<Dtype>(value["shared_gradient"], parse_dtype, kDtypes);
  }
  precision.optimizer_bytes_per_parameter =
      value["optimizer_bytes_per_parameter"].as_double_in(0, 1024);
  return precision;
}

Trainer trainer_from_json(const Value& value) {
  value.expect_only({"name", "does"});
  Trainer trainer;
  trainer.name = value["name"].as_string();
  const std::vector<BehaviourFlag>& flags = behaviour_flags();
  for (const auto& [key, entry] : value["does"].members()) {
    if (key == "attention_rate") {
      trainer.does.attention_rate = entry.as_double_in(1e-3, 1);
      continue;
    }
    const auto flag =
        std::find_if(flags.begin(), flags.end(),
                     [&key = key](const BehaviourFlag& each) { return each.key == key; });
    if (flag == flags.end()) entry.fail("a trainer has no behaviour of that name");
    trainer.does.*flag->flag = entry.as_bool();
  }
  return trainer;
}

Parallelism parallelism_from_json(const Value& value) {
  value.expect_only({"tp", "pp", "dp", "cp", "ep", "vp", "micro_batch", "num_micro_batches",
                     "sequence_parallel", "recompute", "zero", "schedule", "offload_optimizer",
                     "offload_weights", "offload_activations", "order", "whole_experts",
                     "replicate"});
  Parallelism parallel;
  parallel.tp = degree(value["tp"]);
  parallel.pp = degree(value["pp"]);
  parallel.dp = degree(value["dp"]);
  parallel.cp = degree(value["cp"]);
  parallel.ep = degree(value["ep"]);
  parallel.vp = degree(value["vp"]);
  parallel.micro_batch = degree(value["micro_batch"]);
  parallel.num_micro_batches = value["num_micro_batches"].as_int_in(1, kMaxDegree);
  parallel.sequence_parallel = value["sequence_parallel"].as_bool();
  if (value["whole_experts"].exists()) parallel.whole_experts = value["whole_experts"].as_bool();
  parallel.recompute =
      named<Recompute>(value["recompute"], parse_recompute, "none, selective, full");
  parallel.zero = static_cast<Zero>(value["zero"].as_int_in(0, 3));
  parallel.schedule =
      named<ScheduleKind>(value["schedule"], parse_schedule, "gpipe, 1f1b, interleaved");
  parallel.offload_optimizer = value["offload_optimizer"].as_bool();
  parallel.offload_weights = value["offload_weights"].as_bool();
  parallel.offload_activations = value["offload_activations"].as_bool();
  if (value["replicate"].exists()) {
    parallel.replicate = degree(value["replicate"]);
    if (!parallel.may_have_copies() || parallel.dp % parallel.replicate != 0) {
      value["replicate"].fail("copies of the state need ZeRO-2 or 3 and must divide dp");
    }
  }
  parallel.order.clear();
  for (const Value& axis : value["order"].elements()) {
    parallel.order.push_back(named<Axis>(axis, parse_axis, "tp, cp, dp, pp"));
  }
  std::vector<Axis> sorted = parallel.order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != std::vector<Axis>{Axis::tp, Axis::cp, Axis::dp, Axis::pp}) {
    value["order"].fail("the order must name each of tp, cp, dp and pp once");
  }
  const double devices = static_cast<double>(parallel.tp) * parallel.pp * parallel.dp * parallel.cp;
  if (devices > static_cast<double>(kMaxCount))
    value.fail("the degrees multiply to too many devices");
  return parallel;
}

/// Ascending ids as ranges: [[0, 7], [9, 9]].
template <typename T>
Json ranges_to_json(const std::vector<T>& ids) {
  Json json = Json::array();
  for (std::size_t i = 0; i < ids.size();) {
    std::size_t j = i;
    while (j + 1 < ids.size() && ids[j + 1] == ids[j] + 1) ++j;
    json.push_back(Json::array({ids[i], ids[j]}));
    i = j + 1;
  }
  return json;
}

template <typename T>
std::vector<T> ranges_from_json(const Value& value, std::int64_t end) {
  std::vector<T> ids;
  for (const Value& range : value.elements()) {
    if (range.size() != 2) range.fail("a range has two ends", "write [first, last]");
    const std::int64_t first = range[0].as_int_in(0, end - 1);
    const std::int64_t last = range[1].as_int_in(first, end - 1);
    if (static_cast<std::int64_t>(ids.size()) + (last - first) >= end) {
      range.fail("ranges overlap", "list each id once");
    }
    for (std::int64_t id = first; id <= last; ++id) ids.push_back(static_cast<T>(id));
  }
  return ids;
}

Json stage_to_json(const Stage& stage) {
  Json json = Json::object();
  json["dp"] = stage.dp;
  json["tp"] = stage.tp;
  json["cp"] = stage.cp;
  json["devices"] = ranges_to_json(stage.devices);
  if (stage.own) {
    Json own = Json::object();
    own["micro_batch"] = stage.own->micro_batch;
    own["ep"] = stage.own->ep;
    own["sequence_parallel"] = stage.own->sequence_parallel;
    own["zero"] = static_cast<int>(stage.own->zero);
    own["offload_optimizer"] = stage.own->offload_optimizer;
    own["offload_weights"] = stage.own->offload_weights;
    if (stage.own->warm_up) own["warm_up"] = *stage.own->warm_up;
    if (!stage.own->passes.empty()) own["passes"] = to_json(stage.own->passes);
    json["own"] = std::move(own);
  }
  json["chunks"] = Json::array();
  for (const Chunk& chunk : stage.chunks) {
    Json part = Json::object();
    part["layers"] = ranges_to_json(chunk.layers);
    // Run lengths: [option, how many layers].
    part["options"] = Json::array();
    for (std::size_t i = 0; i < chunk.options.size();) {
      std::size_t j = i;
      while (j < chunk.options.size() && chunk.options[j] == chunk.options[i]) ++j;
      part["options"].push_back(Json::array({chunk.options[i], j - i}));
      i = j;
    }
    json["chunks"].push_back(std::move(part));
  }
  return json;
}

Chunk chunk_from_json(const Value& value, const Profile& profile) {
  value.expect_only({"layers", "options"});
  Chunk chunk;
  chunk.layers = ranges_from_json<std::int32_t>(value["layers"],
                                                static_cast<std::int64_t>(profile.layers.size()));
  for (const Value& run : value["options"].elements()) {
    if (run.size() != 2) run.fail("a run has two numbers", "write [option, count]");
    const auto left = static_cast<std::int64_t>(chunk.layers.size() - chunk.options.size());
    if (left == 0) run.fail("more options than layers");
    const std::int64_t count = run[1].as_int_in(1, left);
    const std::int64_t option = run[0].as_int_in(0, std::numeric_limits<std::int32_t>::max());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t layer = chunk.layers[chunk.options.size()];
      if (option >= static_cast<std::int64_t>(options_of(profile, layer).size())) {
        run.fail("layer " + std::to_string(layer) + " has no option " + std::to_string(option));
      }
      chunk.options.push_back(static_cast<std::int32_t>(option));
    }
  }
  if (chunk.options.size() != chunk.layers.size()) value.fail("fewer options than layers");
  return chunk;
}

std::vector<PassRun> passes_from_json(const Value& value) {
  std::vector<PassRun> passes;
  for (const Value& run : value.elements()) {
    if (run.size() != 3) run.fail("a run has three numbers", "write [forwards, backwards, times]");
    passes.push_back({run[0].as_int_in(1, kMaxCount), run[1].as_int_in(1, kMaxCount),
                      run[2].as_int_in(1, kMaxCount)});
  }
  if (passes.empty()) value.fail("an order of passes has at least one run");
  return passes;
}

StageConfig stage_config_from_json(const Value& value) {
  value.expect_only({"micro_batch", "ep", "sequence_parallel", "zero", "offload_optimizer",
                     "offload_weights", "warm_up", "passes"});
  StageConfig form;
  form.micro_batch = degree(value["micro_batch"]);
  form.ep = degree(value["ep"]);
  form.sequence_parallel = value["sequence_parallel"].as_bool();
  form.zero = static_cast<Zero>(value["zero"].as_int_in(0, 3));
  form.offload_optimizer = value["offload_optimizer"].as_bool();
  form.offload_weights = value["offload_weights"].as_bool();
  if (value["warm_up"].exists()) form.warm_up = value["warm_up"].as_int_in(1, kMaxCount);
  if (value["passes"].exists()) form.passes = passes_from_json(value["passes"]);
  return form;
}

/// Throws unless a form of the stage's own goes with its devices, the batch and the schedule.
void check_own_form(const Value& value, const Stage& stage, const Plan& plan) {
  const double devices = static_cast<double>(stage.dp) * stage.tp * stage.cp;
  if (devices != static_cast<double>(stage.devices.size())) {
    value["devices"].fail("the stage has " + std::to_string(stage.devices.size()) +
                              " devices, its degrees dp, tp and cp ask for others",
                          "list dp x tp x cp devices");
  }
  const bool whole = plan.parallel.whole_experts;
  if (std::int64_t{stage.dp} * stage.cp * (whole ? stage.tp : 1) % stage.own->ep != 0) {
    value["own"]["ep"].fail(std::string("ep does not divide the stage's dp x cp") +
                            (whole ? " x tp" : ""));
  }
  const std::int64_t round = std::int64_t{stage.dp} * stage.own->micro_batch;
  if (plan.global_batch % round != 0) {
    value["own"]["micro_batch"].fail(
        "the stage's dp x micro_batch does not divide the global batch");
  }
  const std::string fault = own_order_fault(plan.parallel.schedule, plan.stages.size(), *stage.own,
                                            plan.global_batch / round);
  if (!fault.empty()) value["own"][stage.own->passes.empty() ? "warm_up" : "passes"].fail(fault);
}

Claims claims_from_json(const Value& value) {
  value.expect_only({"iteration_time_s", "peak_memory_bytes", "arithmetic_bound_s",
                     "memory_bound_s", "network_bound_s"});
  const auto bound = [&value](const char* key) {
    return value[key].exists() ? value[key].as_double_in(0, kMostClaimed) : 0;
  };
  return {value["iteration_time_s"].as_double_in(0, kMostClaimed),
          value["peak_memory_bytes"].as_double_in(0, kMostClaimed), bound("arithmetic_bound_s"),
          bound("memory_bound_s"), bound("network_bound_s")};
}

}  // namespace

Json to_json(const Parallelism& parallel) {
  Json json = Json::object();
  json["tp"] = parallel.tp;
  json["pp"] = parallel.pp;
  json["dp"] = parallel.dp;
  json["cp"] = parallel.cp;
  json["ep"] = parallel.ep;
  json["vp"] = parallel.vp;
  json["micro_batch"] = parallel.micro_batch;
  json["num_micro_batches"] = parallel.num_micro_batches;
  json["sequence_parallel"] = parallel.sequence_parallel;
  if (parallel.whole_experts) json["whole_experts"] = true;
  if (parallel.replicate > 1) json["replicate"] = parallel.replicate;
  json["recompute"] = name_of(parallel.recompute);
  json["zero"] = static_cast<int>(parallel.zero);
  json["schedule"] = name_of(parallel.schedule);
  json["offload_optimizer"] = parallel.offload_optimizer;
  json["offload_weights"] = parallel.offload_weights;
  json["offload_activations"] = parallel.offload_activations;
  json["order"] = Json::array();
  for (const Axis axis : parallel.order) json["order"].push_back(name_of(axis));
  return json;
}

/// What the trainer does otherwise than the default.
Json to_json(const Trainer& trainer) {
  Json json = Json::object();
  json["name"] = trainer.name;
  json["does"] = Json::object();
  const TrainerBehaviour usual;
  for (const BehaviourFlag& flag : behaviour_flags()) {
    const bool does = trainer.does.*flag.flag;
    if (does != usual.*flag.flag) json["does"][flag.key] = does;
  }
  if (trainer.does.attention_rate != usual.attention_rate) {
    json["does"]["attention_rate"] = trainer.does.attention_rate;
  }
  return json;
}

Json to_json(const std::vector<PassRun>& passes) {
  Json json = Json::array();
  for (const PassRun& run : passes) {
    json.push_back(Json::array({run.forwards, run.backwards, run.times}));
  }
  return json;
}

Json to_json(const MemoryBreakdown& memory) {
  Json json = Json::object();
  json["weights"] = memory.weights;
  json["gradients"] = memory.gradients;
  json["optimizer"] = memory.optimizer;
  json["activations"] = memory.activations;
  json["working"] = memory.working;
  json["host"] = memory.host;
  return json;
}

Json to_json(const Plan& plan) {
  Json json = Json::object();
  json["braid"] = "plan";
  json["version"] = 1;
  json["planner"] = plan.planner;
  json["model"] = plan.model;
  json["model_source"] = plan.model_source;
  json["model_parameters"] = plan.model_parameters;
  if (plan.claims) {
    json["claims"]["iteration_time_s"] = plan.claims->iteration_time_s;
    json["claims"]["peak_memory_bytes"] = plan.claims->peak_memory_bytes;
    json["claims"]["arithmetic_bound_s"] = plan.claims->arithmetic_bound_s;
    json["claims"]["memory_bound_s"] = plan.claims->memory_bound_s;
    json["claims"]["network_bound_s"] = plan.claims->network_bound_s;
  }
  if (plan.shape) json["shape"] = to_json(*plan.shape);
  json["seq_len"] = plan.seq_len;
  json["global_batch"] = plan.global_batch;
  json["precision"] = precision_to_json(plan.precision);
  if (plan.trainer != Trainer{}) json["trainer"] = to_json(plan.trainer);
  json["parallel"] = to_json(plan.parallel);
  json["stages"] = Json::array();
  for (const Stage& stage : plan.stages) json["stages"].push_back(stage_to_json(stage));
  json["profile"] = to_json(plan.profile);
  json["system"] = to_json(plan.system);
  return json;
}

Plan plan_from_json(const Value& value) {
  if (!value.is_object() || !value["braid"].exists() || value["braid"].string_or("") != "plan") {
    value.fail("this is not a plan",
               "give a file that braid plan -o wrote; what --json prints is none");
  }
  value.expect_only({"braid", "version", "planner", "model", "model_source", "model_parameters",
                     "shape", "claims", "seq_len", "global_batch", "precision", "trainer",
                     "parallel", "stages", "profile", "system", "alternatives"});
  if (value["version"].as_int() != 1) value["version"].fail("only version 1 can be read");
  Plan plan;
  plan.planner = value["planner"].as_string();
  plan.model = value["model"].as_string();
  plan.model_source = value["model_source"].as_string();
  plan.model_parameters = value["model_parameters"].as_double_in(0, kMostStated);
  if (const Value claims = value["claims"]; claims.exists()) {
    plan.claims = claims_from_json(claims);
  }
  if (value["shape"].exists()) plan.shape = shape_from_json(value["shape"]);
  plan.seq_len = value["seq_len"].as_int_in(0, kMaxCount);
  plan.global_batch = value["global_batch"].as_int_in(1, kMaxCount);
  plan.precision = precision_from_json(value["precision"]);
  if (value["trainer"].exists()) plan.trainer = trainer_from_json(value["trainer"]);
  plan.parallel = parallelism_from_json(value["parallel"]);
  plan.profile = profile_from_json(value["profile"]);
  if (plan.profile.time_unit_s != 1) {
    value["profile"]["time_unit_s"].fail("the times of a plan are in seconds", "write 1");
  }
  plan.system = system_from_json(value["system"]);
  if (plan.shape && plan.shape->first_block + plan.shape->blocks >
                        static_cast<std::int64_t>(plan.profile.layers.size())) {
    value["shape"].fail("the shape has more blocks than the profile has layers",
                        "leave the shape out, or count the blocks that are there");
  }
  for (const Value& entry : value["stages"].elements()) {
    entry.expect_only({"dp", "tp", "cp", "devices", "own", "chunks"});
    Stage stage;
    stage.dp = degree(entry["dp"]);
    stage.tp = degree(entry["tp"]);
    stage.cp = degree(entry["cp"]);
    stage.devices = ranges_from_json<std::int64_t>(entry["devices"], plan.system.device_count);
    if (entry["own"].exists()) {
      if (plan.parallel.vp != 1) entry["own"].fail("interleaved stages share one form");
      stage.own = stage_config_from_json(entry["own"]);
      check_own_form(entry, stage, plan);
    }
    for (const Value& part : entry["chunks"].elements()) {
      stage.chunks.push_back(chunk_from_json(part, plan.profile));
    }
    if (stage.chunks.size() != static_cast<std::size_t>(plan.parallel.vp)) {
      entry["chunks"].fail("a stage has " + std::to_string(plan.parallel.vp) +
                           " chunks, as parallel.vp says");
    }
    plan.stages.push_back(std::move(stage));
  }
  if (plan.stages.size() != static_cast<std::size_t>(plan.parallel.pp)) {
    value["stages"].fail("there must be " + std::to_string(plan.parallel.pp) +
                         " stages, as parallel.pp says");
  }
  return plan;
}

Plan read_plan(const std::string& path) {
  return plan_from_json(Document::parse_file(path).root());
}

}  // namespace braid
