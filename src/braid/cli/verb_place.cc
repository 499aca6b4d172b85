#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "braid/backend/backends.h"
#include "braid/backend/executor.h"
#include "braid/backend/place/place_network.h"
#include "braid/backend/place/placed_program.h"
#include "braid/backend/place/placement_file.h"
#include "braid/backend/report/placement_report.h"
#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"
#include "braid/cli/count_option.h"
#include "braid/cli/dim_option.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/frontend/load_program.h"
#include "braid/frontend/onnx_program.h"
#include "braid/program/random_tensor.h"

namespace braid {
namespace {

struct VerbPlaceOptions {
  std::string model, run, out, picture, store, inputs, outputs;
  std::vector<std::string> dims, backends;
  std::int64_t seq_len = 0, layers = 0, threads = 1, seed = 1, samples = 21, region_parts = 6,
               evolved_regions = 20;
  bool json = false;
};

/// Where measured times are kept unless the user says where.
std::string usual_store() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache != '\0') {
    folder = cache;
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    throw Error("there is no folder for measured times: HOME is not set", "give --store FILE");
  }
  std::error_code problem;
  std::filesystem::create_directories(folder / "braid", problem);
  if (problem) {
    throw Error({(folder / "braid").string(), 0, ""}, "cannot be made: " + problem.message(),
                "give --store FILE");
  }
  return (folder / "braid" / "kernel-times.sqlite").string();
}

/// Those that are named, or all.
std::vector<FoundBackend> chosen_backends(const std::vector<std::string>& names,
                                          std::int64_t threads) {
  BackendOptions options{.threads = static_cast<int>(threads)};
  if (!names.empty()) options.names = names;
  std::vector<FoundBackend> found = find_backends(options);
  std::vector<std::string_view> known;
  known.reserve(found.size());
  for (const FoundBackend& each : found) known.push_back(each.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error("--backends: there is no backend " + in_quotes(name), did_you_mean(name, known));
    }
    const auto each = std::find_if(found.begin(), found.end(),
                                   [&](const FoundBackend& b) { return b.name == name; });
    if (!each->backend) throw Error("--backends: without " + name + ": " + each->missing);
  }
  if (!names.empty()) {
    std::erase_if(found, [&](const FoundBackend& each) {
      return std::find(names.begin(), names.end(), each.name) == names.end();
    });
  }
  return found;
}

/// The program of a model with weights and what it is fed.
struct ReadyProgram {
  Program program;
  std::vector<DenseTensor> inputs;
  std::size_t random_weights = 0;
};

ReadyProgram ready_program(const std::string& model, const ModelOptions& options,
                           std::uint64_t seed, const std::string& inputs) {
  ReadyProgram ready{load_program(model, options), {}, 0};
  check_weights_fit(ready.program, model);
  ready.random_weights = ready.program.missing.size();
  fill_missing_weights(ready.program, seed);
  if (inputs.empty()) {
    ready.inputs = random_inputs(ready.program, seed);
    return ready;
  }
  for (std::size_t i = 0; i < ready.program.inputs.size(); ++i) {
    const auto file = std::filesystem::path(inputs) / fmt::format("input_{}.pb", i);
    ready.inputs.push_back(tensor_from_onnx(file.string()));
  }
  return ready;
}

PlacementFile file_of(const VerbPlaceOptions& options, const PlacementReport& report) {
  const NetworkWay& way = report.chosen();
  PlacementFile file;
  file.model = options.model;
  file.dims = parse_dims(options.dims);
  file.seq_len = options.seq_len;
  file.layers = options.layers;
  file.seed = static_cast<std::uint64_t>(options.seed);
  file.threads = options.threads;
  file.machine = report.machine;
  file.placement = way.placement;
  file.measured = way.measured;
  for (const PlacedGroup& group : way.placement.groups) {
    file.operators.push_back(operator_names(report.fixed, group));
    for (const FoundBackend& each : report.backends) {
      if (each.name == group.backend) file.versions[each.name] = each.backend->version;
    }
  }
  return file;
}

/// What people compare of a measurement; null where there is none.
Json interval_json(const std::optional<Measurement>& measured) {
  if (!measured) return nullptr;
  return {{"median_s", measured->median_s},
          {"low_s", measured->low_s},
          {"high_s", measured->high_s},
          {"samples", measured->samples}};
}

const char* kind_name(NetworkWay::Kind kind) {
  switch (kind) {
    case NetworkWay::Kind::mix:
      return "mix";
    case NetworkWay::Kind::backend:
      return "backend";
    case NetworkWay::Kind::network:
      return "network";
  }
  return "";
}

Json to_json(const PlacementReport& report) {
  const ProgramPlacement& mix = report.answer.ways.front().placement;
  Json json = Json::object();
  json["model"] = report.model;
  json["machine"] = report.machine;
  json["threads"] = report.threads;
  json["operators"] = report.fixed.program.nodes.size();
  json["backends"] = Json::array();
  for (const FoundBackend& each : report.backends) {
    json["backends"].push_back({{"name", each.name},
                                {"version", each.backend ? Json(each.backend->version) : Json()},
                                {"missing", each.backend ? Json() : Json(each.missing)}});
  }
  json["kernels"] = mix.kernels;
  json["measured"] = mix.measured;
  json["known"] = mix.known;
  json["refused"] = mix.refused;
  json["left_out"] = mix.wrong;
  for (const std::string& each : report.answer.left_out) json["left_out"].push_back(each);
  json["chosen"] = report.chosen().name;
  json["ways"] = Json::array();
  for (const NetworkWay& way : report.answer.ways) {
    json["ways"].push_back({{"name", way.name},
                            {"kind", kind_name(way.kind)},
                            {"predicted_s", way.placement.predicted_s},
                            {"measured", interval_json(way.measured)}});
  }
  json["groups"] = Json::array();
  for (const PlacedGroup& group : report.chosen().placement.groups) {
    json["groups"].push_back({{"backend", group.backend},
                              {"kernel", group.pattern},
                              {"operators", operator_names(report.fixed, group)},
                              {"cost_s", group.cost_s}});
  }
  return json;
}

int place(const VerbPlaceOptions& options) {
  const ModelOptions model{
      .seq_len = options.seq_len, .layers = options.layers, .dims = parse_dims(options.dims)};
  const std::vector<FoundBackend> backends = chosen_backends(options.backends, options.threads);
  const ReadyProgram ready =
      ready_program(options.model, model, static_cast<std::uint64_t>(options.seed), options.inputs);
  const FixedProgram fixed = fixed_program(ready.program, ready.inputs);
  CostStore store(options.store.empty() ? usual_store() : options.store);
  PlaceOptions place_options;
  place_options.threads = options.threads;
  place_options.measure.samples = options.samples;
  place_options.region_parts = options.region_parts;
  place_options.evolved_regions = options.evolved_regions;
  const bool shows_progress = isatty(STDERR_FILENO) != 0 && !options.json;
  if (shows_progress) {
    place_options.progress = [](std::int64_t measured) {
      fmt::print(stderr, "\r{} kernels measured …\x1b[K", measured);
      std::fflush(stderr);
    };
  }
  const NetworkAnswer answer = place_network(fixed, ready.inputs, backends, &store, place_options);
  if (shows_progress) fmt::print(stderr, "\r\x1b[K");
  const PlacementReport report{options.model, machine_name(), options.threads,
                               fixed,         backends,       answer};
  if (!options.out.empty()) write_file(options.out, placement_text(file_of(options, report)));
  if (!options.picture.empty()) {
    write_file(options.picture,
               options.picture.ends_with(".html") ? placement_page(report) : placement_svg(report));
  }
  // What goes to standard output is one thing.
  if (options.out == "-" || options.picture == "-") return kFound;
  if (options.json) {
    fmt::print("{}", to_text(to_json(report)));
    return kFound;
  }
  fmt::print("{}", placement_report_text(report));
  if (ready.random_weights > 0) {
    fmt::print("Weights are random: the model brings none for {} of its tensors.\n",
               ready.random_weights);
  }
  say_written_below({{"Placement", options.out, "run it with: braid place --run " + options.out},
                     written_picture(options.picture)});
  return kFound;
}

int run_placed(const VerbPlaceOptions& options) {
  const PlacementFile file = read_placement_file(options.run);
  const ModelOptions model{.seq_len = file.seq_len, .layers = file.layers, .dims = file.dims};
  // No library is loaded but those that it names.
  BackendOptions wanted{.threads = static_cast<int>(file.threads),
                        .names = std::vector<std::string>()};
  for (const auto& [name, version] : file.versions) wanted.names->push_back(name);
  const std::vector<FoundBackend> backends = find_backends(wanted);
  const ReadyProgram ready = ready_program(file.model, model, file.seed, options.inputs);
  const FixedProgram fixed = fixed_program(ready.program, ready.inputs);
  check_placement(file, fixed, backends, options.run);
  PlacedProgram placed(fixed, file.placement, backends);
  const std::vector<DenseTensor> outputs = placed.run(ready.inputs);
  const std::string differs = answer_difference(outputs, fixed.expected);
  const std::vector<std::function<void()>> tasks{[&] { placed.run(ready.inputs); }};
  const Measurement measured = measure(tasks, {.samples = options.samples}).front();
  if (!options.outputs.empty()) {
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto path = std::filesystem::path(options.outputs) / fmt::format("output_{}.pb", i);
      write_file(path.string(), onnx_of_tensor(outputs[i]));
    }
  }
  if (options.json) {
    Json json = Json::object();
    json["model"] = file.model;
    json["measured"] = interval_json(measured);
    json["measured_when_placed"] = interval_json(file.measured);
    json["differs"] = differs.empty() ? Json() : Json(differs);
    fmt::print("{}", to_text(json));
    return differs.empty() ? kFound : kInfeasible;
  }
  fmt::print(
      "{}: {:.3f} ms a run (95 % interval {:.3f} to {:.3f}; {} samples), {} thread{} of {}\n",
      file.model, measured.median_s * 1e3, measured.low_s * 1e3, measured.high_s * 1e3,
      measured.samples, file.threads, file.threads == 1 ? "" : "s", machine_name());
  if (file.machine != machine_name()) fmt::print("It was placed on {}.\n", file.machine);
  fmt::print("{}\n", differs.empty() ? "The answer is that of the reference kernels."
                                     : "The answer differs from the reference's: " + differs);
  return differs.empty() ? kFound : kInfeasible;
}

int run(const VerbPlaceOptions& options) {
  if (options.run.empty()) {
    if (options.model.empty()) throw Error("MODEL: give a model, or --run a placement");
    if (!options.outputs.empty()) throw Error("--outputs: only --run gives outputs");
    return place(options);
  }
  if (!options.model.empty()) {
    throw Error("MODEL: the placement names its model", "leave it out with --run");
  }
  return run_placed(options);
}

}  // namespace

Run add_place(CLI::App& app) {
  auto options = std::make_shared<VerbPlaceOptions>();
  Verb verb(app, "place",
            "Find the fastest mix of this machine's libraries for inference, and run it");
  verb.footer(
      "Example:\n  braid place resnet-50 -o resnet-50.placement.json --picture resnet-50.html\n  "
      "braid place --run resnet-50.placement.json\n\nMODEL is an ONNX file, or a model as for "
      "braid plan, which gets random weights. Kernels of all libraries that are installed "
      "(oneDNN, XNNPACK, OpenBLAS, BLIS, libxsmm, Eigen, libtorch) are measured where they can be "
      "on a "
      "fastest mix; times are kept and not measured again. docs/placing.md says more.");
  verb.add_option("MODEL", options->model, "The model to place");
  add_text(verb, "--run", options->run, "Run this placement rather than find one");
  add_output_file(verb, "-o,--out", options->out, "Write the placement here (JSON)");
  add_output_file(
      verb, "--picture", options->picture,
      "Write a picture of which library runs what (SVG, or a page if it ends in .html)");
  add_dims(verb, options->dims);
  add_count(verb, "--seq-len", options->seq_len, 1, std::int64_t{1} << 20, "Tokens per sample");
  add_count(verb, "--layers", options->layers, 1, 1 << 20, "Only so many blocks of a decoder");
  add_texts(verb, "--backends", options->backends, "Only these, separated by commas")
      .delimiter(',');
  add_count(verb, "--threads", options->threads, 1, 1024, "That a kernel may use (default: 1)");
  add_count(verb, "--region-parts", options->region_parts, 0, 64,
            "Parts that libtorch may also compile, alone and together (default: 6; 0: none)");
  add_count(verb, "--evolved-regions", options->evolved_regions, 0, 1 << 20,
            "Of smaller parts, how many more to try at most, by evolution (default: 20)");
  add_text(verb, "--store", options->store,
           "Keep measured times in this file (default: kernel-times.sqlite in the user's cache)");
  add_count(verb, "--samples", options->samples, 3, 100000,
            "Samples of each kernel and of the whole (default: 21)");
  add_count(verb, "--seed", options->seed, 0, std::int64_t{1} << 40,
            "Of weights that the model does not bring, and of inputs (default: 1)");
  add_text(verb, "--inputs", options->inputs,
           "Folder with input_0.pb … (ONNX tensors) to feed (default: random numbers)");
  add_text(verb, "--outputs", options->outputs, "With --run: write output_0.pb … to this folder");
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run(*options); };
}

}  // namespace braid
