#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/cli/count_option.h"
#include "braid/cli/dim_option.h"
#include "braid/cli/job_options.h"
#include "braid/cli/measure_profile.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/frontend/model.h"
#include "braid/graph/working_precision.h"
#include "braid/machine/machine_facts.h"
#include "braid/planners/trainer_choice.h"
#include "braid/profile/estimator.h"
#include "braid/profile/profile_json.h"

namespace braid {
namespace {

struct ProfileVerbOptions {
  std::string model, cluster, chip, trainer, precision, sharding = "manual", output = "-";
  std::int64_t seq_len = 0, samples = 11;
  bool measure = false;
  std::vector<std::string> dims;
  std::vector<std::string> tp = {"1"}, cp = {"1"}, ep = {"1"}, micro_batch = {"1"};
};

std::vector<int> degrees(const std::string& option, const std::vector<std::string>& texts) {
  std::vector<int> values;
  values.reserve(texts.size());
  for (const std::string& text : texts) {
    values.push_back(static_cast<int>(parse_count(option, text, 1, 1 << 20)));
  }
  return values;
}

/// All combinations that the devices are enough for, with and without sequence parallelism and each
/// kind of recomputation.
std::vector<Execution> executions_of(const ProfileVerbOptions& options, std::int64_t devices) {
  std::vector<Execution> executions;
  const std::vector<int> cps = degrees("--cp", options.cp);
  const std::vector<int> eps = degrees("--ep", options.ep);
  const std::vector<int> micro_batches = degrees("--micro-batch", options.micro_batch);
  for (const int tp : degrees("--tp", options.tp)) {
    for (const int cp : cps) {
      for (const int ep : eps) {
        if (std::int64_t{tp} * std::max(cp, ep) > devices) {
          throw Error(
              fmt::format("tp {}, cp {}, ep {} need more than {} devices", tp, cp, ep, devices),
              "give a larger --cluster");
        }
        for (const int micro_batch : micro_batches) {
          for (const bool sequence_parallel : {false, true}) {
            if (sequence_parallel && tp == 1) continue;
            for (const Recompute recompute :
                 {Recompute::none, Recompute::selective, Recompute::full}) {
              Execution how;
              how.micro_batch = micro_batch;
              how.tp = tp;
              how.cp = cp;
              how.ep = ep;
              how.sequence_parallel = sequence_parallel;
              how.recompute = recompute;
              executions.push_back(how);
            }
          }
        }
      }
    }
  }
  return executions;
}

/// Throws Error for a profile that cannot be measured on this machine.
LayerMeasurement measurement_of(const ProfileVerbOptions& options, const System& system,
                                const Precision& precision) {
  for (const auto& [name, degrees] :
       {std::pair("--tp", &options.tp), std::pair("--cp", &options.cp),
        std::pair("--ep", &options.ep)}) {
    if (*degrees == std::vector<std::string>{"1"}) continue;
    throw Error(fmt::format("--measure with {}: layers are measured whole", name), "leave it out");
  }
  if (precision.activation != Dtype::f32) {
    throw Error("--measure: passes are measured in fp32", "give --precision fp32");
  }
  const MachineFacts facts = machine_facts();
  if (system.device_count > facts.cores) {
    throw Error(fmt::format("--measure: {} has {} devices, and this machine {} cores", system.name,
                            system.device_count, facts.cores),
                "give --cluster the file that braid measure wrote on this machine");
  }
  LayerMeasurement how;
  how.split.devices = system.device_count;
  how.split.threads = facts.cores / system.device_count;
  how.samples = options.samples;
  how.cache_bytes = facts.cache_bytes;
  return how;
}

/// Says which layers were not.
void measure(const Graph& model, const LayerMeasurement& how, Profile& profile) {
  const std::vector<std::string> estimated = measure_profile(profile, model, how);
  profile.provenance = fmt::format("measured: libtorch on {}", machine_facts().processor);
  for (const std::string& each : estimated) {
    std::cerr << "Not measured but estimated: " << each << "\n";
  }
  if (!estimated.empty()) {
    profile.provenance +=
        fmt::format("; {} of {} kinds of layers estimated", estimated.size(), profile.kinds.size());
  }
}

int run(const ProfileVerbOptions& options) {
  const System system = load_devices(options.cluster, options.chip);
  const Precision precision = job_precision(options.precision, system);
  if (!is_homogeneous(system)) {
    throw Error("a profile is of one kind of device, and " + system.name +
                    " mixes them or gives a bandwidth matrix",
                "profile each of its groups, or --chip");
  }
  const std::vector<Execution> executions = executions_of(options, system.device_count);
  Graph graph =
      load_model(options.model, {.seq_len = options.seq_len, .dims = parse_dims(options.dims)});
  set_working_precision(graph, precision.activation, precision.weight);
  Job job;
  job.graph = &graph;
  job.precision = precision;
  job.sharding = parse_sharding(options.sharding);
  SpaceOptions space;
  set_trainer(choose_trainer(options.trainer, TrainerNeeds{&job, &system, &space, {}}), system, job,
              space);
  const Graph model = graph;  // Trainers' own kernels are not what is measured.
  adapt_graph(job.trainer.does, graph);
  Profile profile = estimate_profile(graph, executions, job.precision,
                                     adapted_system(job.trainer.does, system), job.sharding);
  profile.trainer = job.trainer.name;
  if (options.measure) measure(model, measurement_of(options, system, job.precision), profile);
  write_file(options.output, to_text(to_json(profile)));
  say_written(
      {"Profile", options.output, "plan from it with: braid plan --profile " + options.output});
  return kFound;
}

}  // namespace

Run add_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileVerbOptions>();
  Verb verb(app, "profile", "Estimate what each layer costs with each execution option");
  verb.footer(
      "Example:\n  braid profile llama-3-8b --cluster dgx-h100 --tp 1,2,4,8 -o profile.json\n"
      "  braid plan llama-3-8b --profile profile.json --cluster dgx-h100:8 --global-batch 64\n\n"
      "Layers are estimated with all combinations of the degrees and micro-batches that are "
      "given, with and without sequence parallelism, and with each kind of recomputation. "
      "docs/file-formats.md has the file (\"Profile\"): put measured times in it and plan by "
      "them.");
  verb.add_option("MODEL", options->model,
                  "Zoo name, Hugging Face folder or config.json, ONNX file, or graph JSON")
      .required();
  add_text(verb, "--cluster", options->cluster,
           "Whose devices: as for braid plan; what is split needs as many of them");
  add_text(verb, "--chip", options->chip, "A single device instead of a cluster");
  add_text(verb, "--for", options->trainer,
           "The trainer whose kernels are taken: as for braid plan");
  add_count(verb, "--seq-len", options->seq_len, 1, std::int64_t{1} << 28,
            "Tokens per sample (default: the model's own maximum)");
  add_dims(verb, options->dims);
  add_text(verb, "--precision", options->precision,
           "bf16, fp16, fp8, tf32 or fp32 (default: the chip's usual one)");
  const auto list = [&verb](const char* name, std::vector<std::string>& values, const char* help) {
    verb.add_option(name, values, help).delimiter(',').type_name("N,N").one_value();
  };
  list("--tp", options->tp, "Tensor parallel degrees, separated by commas (default: 1)");
  list("--cp", options->cp, "Context parallel degrees (default: 1)");
  list("--ep", options->ep, "Expert parallel degrees (default: 1)");
  list("--micro-batch", options->micro_batch, "Samples per micro-batch (default: 1)");
  verb.add_option("--sharding", options->sharding,
                  "Sharding over tensor parallel ranks: as the model says (manual), or also the "
                  "best that a search finds (auto)")
      .one_of({"manual", "auto"});
  verb.add_flag("--measure", options->measure,
                "Measure the layers on this machine, forward and back as braid run does them");
  add_count(verb, "--samples", options->samples, 3, 1000,
            "With --measure: how often each layer is timed (default: 11)");
  add_output_file(verb, "-o,--out", options->output,
                  "Write the profile here (default: standard output)");
  return [options] { return run(*options); };
}

}  // namespace braid
