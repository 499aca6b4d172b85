#include "braid/run/run_job.h"

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/base/json.h"
#include "braid/base/text.h"
#include "braid/frontend/model.h"
#include "braid/plan/plan_json.h"

namespace braid {

Graph graph_of_plan(const Plan& plan, const std::string& source) {
  if (source.ends_with(".onnx")) {
    throw Error(source + ": ONNX files are not trained by braid run",
                "take a model of the zoo or a config.json");
  }
  // Models whose tokens are those of an image are told no length.
  Graph graph = load_model(source, {});
  if (graph.seq_len != plan.seq_len)
    graph = load_model(source, {.seq_len = plan.seq_len, .dims = {}});
  return graph;
}

LoadedRun load_run(const RunJob& job) {
  const Plan plan = read_plan(job.plan);
  check_runnable(plan);
  const std::string source = job.model.empty() ? plan.model_source : job.model;
  if (source.empty()) {
    throw Error(job.plan + ": the plan does not say which model it is for", "give --model");
  }
  LoadedRun run;
  const Graph graph = graph_of_plan(plan, source);
  run.ordered = ordered_plan(plan, job.schedule);
  run.staged = staged_model(graph, run.ordered);
  return run;
}

std::string run_job_text(const RunJob& job) {
  Json json = Json::object();
  json["plan"] = job.plan;
  json["model"] = job.model;
  json["schedule"] = job.schedule;
  json["folder"] = job.folder;
  json["iterations"] = job.settings.iterations;
  json["seed"] = job.settings.seed;
  json["learning_rate"] = job.settings.learning_rate;
  json["adam"] = job.settings.optimizer == OptimizerRule::adam;
  json["type"] = name_of(job.settings.type);
  json["checkpoint"] = job.checkpoint;
  json["checkpoint_every"] = job.checkpoint_every;
  json["resume"] = job.resume;
  json["threads"] = job.threads;
  json["timeout_s"] = job.timeout_s;
  return to_text(json);
}

RunJob read_run_job(const std::string& file) {
  const Document document = Document::parse_file(file);
  const Value root = document.root();
  RunJob job;
  job.plan = root["plan"].as_string();
  job.model = root["model"].as_string();
  job.schedule = root["schedule"].as_string();
  job.folder = root["folder"].as_string();
  job.settings.iterations = root["iterations"].as_int();
  job.settings.seed = static_cast<std::uint64_t>(root["seed"].as_int());
  job.settings.learning_rate = root["learning_rate"].as_double();
  if (root["adam"].as_bool()) job.settings.optimizer = OptimizerRule::adam;
  job.settings.type = training_type(root["type"].as_string());
  job.checkpoint = root["checkpoint"].as_string();
  job.checkpoint_every = root["checkpoint_every"].as_int();
  job.resume = root["resume"].as_string();
  job.threads = static_cast<int>(root["threads"].as_int_in(1, 1024));
  job.timeout_s = root["timeout_s"].as_double();
  return job;
}

ElementType training_type(std::string_view name) {
  if (name == "f64" || name == "float64") return ElementType::f64;
  if (name == "f32" || name == "float32") return ElementType::f32;
  if (name == "bf16" || name == "bfloat16") return ElementType::bf16;
  throw Error("models are trained in float64, float32 or bf16, not " +
              in_quotes(std::string(name)));
}

std::string rank_record_file(const RunJob& job, std::int32_t rank) {
  return job.folder + "/rank" + std::to_string(rank) + ".json";
}
std::string rank_weights_file(const RunJob& job, std::int32_t rank) {
  return job.folder + "/rank" + std::to_string(rank) + ".safetensors";
}
std::string whole_record_file(const RunJob& job) { return job.folder + "/whole.json"; }
std::string whole_weights_file(const RunJob& job) { return job.folder + "/whole.safetensors"; }

}  // namespace braid
