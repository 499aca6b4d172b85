#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/backend/backends.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/cli/count_option.h"
#include "braid/cli/measure_trained.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/machine/measure_links.h"
#include "braid/machine/measure_operators.h"
#include "braid/machine/system_text.h"
#include "braid/report/table.h"

namespace braid {
namespace {

struct VerbMeasureOptions {
  std::string out, name = "here";
  std::int64_t devices = 0, samples = 11;
  bool json = false, trained = false;
};

constexpr std::int64_t kMostDevices = 256;
/// The largest tensors: three of them are more than the caches of most machines hold, and checking
/// a sum of larger ones takes longer than all the rest.
constexpr double kLargestTensor_bytes = 64 << 20;

/// Throws Error for a name that no file of a cluster should have.
void check_name(const std::string& name) {
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  if (name.find_first_not_of(allowed) == std::string::npos) return;
  throw Error("--name " + in_quotes(name) + ": a cluster is named by letters, digits, -, _ and .");
}

/// Throws Error where a file's folder is not there: better now than after minutes of measuring.
void check_folder(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder)) return;
  throw Error({file, 0, ""}, "its folder is not there");
}

DeviceSplit split_of(const VerbMeasureOptions& options, std::int64_t cores) {
  DeviceSplit split;
  split.devices = options.devices > 0 ? options.devices : cores;
  if (split.devices > cores) {
    throw Error(fmt::format("--devices {}: there are {} cores", split.devices, cores),
                "devices that share a core are not measured");
  }
  split.threads = cores / split.devices;
  return split;
}

std::string names_of(const std::vector<FoundBackend>& backends) {
  std::string names;
  for (const FoundBackend& each : backends) {
    if (!each.backend) continue;
    names += (names.empty() ? "" : ", ") + each.name + " " + each.backend->version;
  }
  return names;
}

/// Throws Error where there is no library: the reference kernels say nothing of the machine.
void expect_libraries(const std::vector<FoundBackend>& backends, const std::string& names) {
  if (!names.empty()) return;
  std::string missing;
  for (const FoundBackend& each : backends) {
    missing += (missing.empty() ? "" : "; ") + each.name + ": " + each.missing;
  }
  throw Error("there is no library to measure this machine with", missing);
}

Chip bare_chip(const MeasuredMachine& machine) {
  Chip bare;
  bare.compute_units = static_cast<int>(machine.split.threads);
  bare.memory.bytes = machine.facts.memory_bytes / static_cast<double>(machine.split.devices);
  return bare;
}

/// By the fastest kernels of all libraries.
MeasuredMachine measured_machine(const VerbMeasureOptions& options,
                                 std::vector<std::string>& unmeasured) {
  MeasuredMachine machine;
  machine.facts = machine_facts();
  machine.split = split_of(options, machine.facts.cores);
  const std::vector<FoundBackend> backends =
      find_backends({.threads = static_cast<int>(machine.split.threads)});
  machine.libraries = names_of(backends);
  expect_libraries(backends, machine.libraries);
  machine.link =
      fit_links(measure_links({.processes = std::max<std::int64_t>(2, machine.split.devices)}));
  machine.messages =
      "messages between processes over TCP on the loopback interface, all sending at once";
  MeasureOptions measure;
  measure.samples = options.samples;
  OperatorMeasurements measured =
      measure_operators(sample_operators(kLargestTensor_bytes), backends, machine.split, measure);
  unmeasured = std::move(measured.unmeasured);
  machine.device = fit_chip(bare_chip(machine), measured.operators, machine.facts.cache_bytes);
  return machine;
}

/// By what `braid run` computes with.
MeasuredMachine trained_machine(const VerbMeasureOptions& options) {
  MeasuredMachine machine;
  machine.facts = machine_facts();
  machine.split = split_of(options, machine.facts.cores);
  const TrainedMachine measured =
      measure_trained(sample_operators(kLargestTensor_bytes), machine.split, options.samples,
                      machine.facts.cache_bytes);
  machine.libraries = fmt::format("libtorch{}, passes forward and back as braid run does them",
                                  measured.blas.empty() ? "" : " with GEMMs by " + measured.blas);
  machine.link = fit_links(measured.messages);
  machine.messages = "messages and all-reduces of Gloo over the loopback interface";
  machine.device = fit_chip(bare_chip(machine), measured.operators, machine.facts.cache_bytes);
  return machine;
}

/// "GEMM 8.1%, sum 230%": how far off the model is by the first word of the operators' names.
std::string errors_by_kind(const std::vector<FittedOperator>& operators) {
  std::map<std::string, std::vector<FittedOperator>> kinds;
  for (const FittedOperator& each : operators) {
    kinds[each.name.substr(0, each.name.find(' '))].push_back(each);
  }
  std::string text;
  for (const auto& [kind, of_kind] : kinds) {
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", kind, 100 * mean_error(of_kind));
  }
  return text;
}

void print(const MeasuredMachine& machine, const std::vector<std::string>& unmeasured) {
  std::vector<std::vector<std::string>> table = {{"operator", "measured", "fitted", "off"}};
  for (const FittedOperator& each : machine.device.operators) {
    table.push_back({each.name, format_seconds(each.measured_s), format_seconds(each.fitted_s),
                     fmt::format("{:+.0f} %", 100 * (each.fitted_s / each.measured_s - 1))});
  }
  const Chip& chip = machine.device.chip;
  fmt::print("{}: {} device{} of {} thread{}\nMeasured with {}\n\n{}\n", machine.facts.processor,
             machine.split.devices, machine.split.devices == 1 ? "" : "s", machine.split.threads,
             machine.split.threads == 1 ? "" : "s", machine.libraries, text_table(table));
  for (const std::string& each : unmeasured) fmt::print("not measured: {}\n", each);
  fmt::print(
      "A device: {} at best in f32, {} of memory at {}.\n"
      "The model is off on average: {}. It knows no caches, so what these hold comes out slow.\n"
      "Messages between devices: {} and {}, {:.1f} % off on average.\n",
      fmt::format("{:.4g} GFLOP/s", 1e-9 * chip.peaks.front().matmul_flops_per_s),
      format_bytes(chip.memory.bytes), format_bytes_per_s(chip.memory.bytes_per_s),
      errors_by_kind(machine.device.operators), format_seconds(machine.link.latency_s),
      format_bytes_per_s(machine.link.bytes_per_s), 100 * machine.link.mean_error);
}

Json to_json(const MeasuredMachine& machine, const std::vector<std::string>& unmeasured) {
  Json json = Json::object();
  json["machine"] = machine.facts.processor;
  json["devices"] = machine.split.devices;
  json["threads"] = machine.split.threads;
  json["libraries"] = machine.libraries;
  json["operators"] = Json::array();
  for (const FittedOperator& each : machine.device.operators) {
    json["operators"].push_back(
        {{"operator", each.name}, {"measured_s", each.measured_s}, {"fitted_s", each.fitted_s}});
  }
  json["unmeasured"] = unmeasured;
  json["mean_error"] = mean_error(machine.device.operators);
  json["link"] = {{"latency_s", machine.link.latency_s},
                  {"bytes_per_s", machine.link.bytes_per_s},
                  {"mean_error", machine.link.mean_error}};
  return json;
}

int run(const VerbMeasureOptions& options) {
  check_name(options.name);
  if (options.json && options.out == "-") {
    throw Error("--json and --out - would both write to standard output", "name a file");
  }
  check_folder(options.out);
  std::vector<std::string> unmeasured;
  const MeasuredMachine machine =
      options.trained ? trained_machine(options) : measured_machine(options, unmeasured);
  const std::string text = system_text(machine, options.name);
  if (!options.out.empty()) write_file(options.out, text);
  if (options.json) {
    fmt::print("{}", to_text(to_json(machine, unmeasured)));
  } else if (options.out != "-") {
    print(machine, unmeasured);
    say_written_below({{"Cluster", options.out,
                        fmt::format("plan for it with: braid plan gpt2 --cluster {} "
                                    "--global-batch 8 --seq-len 256{}",
                                    options.out, options.trained ? " --for braid-run" : "")}});
  }
  return kFound;
}

}  // namespace

Run add_measure(CLI::App& app) {
  auto options = std::make_shared<VerbMeasureOptions>();
  Verb verb(app, "measure", "Measure this machine's processors as a cluster to plan for");
  verb.footer(
      "Example:\n  braid measure -o here.yaml\n  braid plan gpt2 --cluster here.yaml "
      "--global-batch 8 --seq-len 256\n\nA device is a process with its share of the cores and "
      "of the memory. Kernels of the libraries that are installed (oneDNN, OpenBLAS, …) are "
      "measured on all devices at once, and so are messages between them; the cost model's "
      "figures are fitted to the times. docs/measuring.md says more.");
  add_output_file(verb, "-o,--out", options->out,
                  "Write the cluster here (YAML), for --cluster of other verbs");
  add_count(verb, "--devices", options->devices, 1, kMostDevices,
            "How many devices: processes that share the cores evenly (default: one a core)");
  add_text(verb, "--name", options->name, "What the cluster is called in plans (default: here)");
  add_count(verb, "--samples", options->samples, 3, 1000,
            "How often each kernel is timed (default: 11)");
  verb.add_flag(
      "--trained", options->trained,
      "Measure what braid run computes with instead: passes of libtorch, messages of Gloo");
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run(*options); };
}

}  // namespace braid
