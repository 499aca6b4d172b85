#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"
#include "braid/chip/cores/schedule_cores.h"
#include "braid/chip/graph_kernels.h"
#include "braid/cli/count_option.h"
#include "braid/cli/job_options.h"
#include "braid/cli/map_cores.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/dataflow/dataflow_plan.h"
#include "braid/frontend/model.h"
#include "braid/graph/working_precision.h"
#include "braid/profile/precision.h"
#include "braid/report/mapping_text.h"
#include "braid/report/roofline.h"
#include "braid/system/system.h"

namespace braid {
namespace {

struct MapOptions {
  std::string setup, compat, style, sharding, search, roofline, chip, layer, precision;
  std::string gantt;
  std::int64_t seq_len = 0;
  std::int64_t micro_batch = 0;
  std::int64_t budget = 0;
  bool training = false;
  bool step = false;
  bool json = false;
};

void check_word(const char* option, const std::string& word,
                std::initializer_list<std::string_view> known) {
  if (word.empty()) return;
  for (const std::string_view name : known) {
    if (word == name) return;
  }
  const std::vector<std::string_view> names(known);
  throw Error(fmt::format("{}: unknown {}", option, in_quotes(word)), did_you_mean(word, names));
}

const char* status_name(MappingStatus status) {
  switch (status) {
    case MappingStatus::optimal:
      return "optimal";
    case MappingStatus::feasible:
      return "feasible";
    case MappingStatus::infeasible:
      return "infeasible";
    case MappingStatus::exhausted:
      return "budget_exhausted";
  }
  return "";
}

Json partition_json(const DataflowPlan& plan, std::size_t p) {
  const PartitionCost& cost = plan.outcome.cost.partitions[p];
  Json json = Json::object();
  json["kernels"] = Json::array();
  json["tiles"] = Json::array();
  for (std::size_t i = 0; i < plan.work.kernels.size(); ++i) {
    if (static_cast<std::size_t>(plan.outcome.mapping.partition_of[i]) != p) continue;
    json["kernels"].push_back(plan.work.kernels[i].name);
    if (!plan.outcome.cost.tiles.empty()) json["tiles"].push_back(plan.outcome.cost.tiles[i]);
  }
  json["time_s"] = cost.time_s;
  json["compute_s"] = cost.compute_s;
  json["memory_s"] = cost.memory_s;
  json["network_s"] = cost.network_s;
  json["bound_by"] = name_of(cost.bound);
  json["flops"] = cost.flops;
  json["dram_traffic_bytes"] = cost.dram_traffic_bytes;
  json["network_bytes"] = cost.network_bytes;
  json["sram_bytes"] = cost.sram_bytes;
  json["dram_bytes"] = cost.dram_bytes;
  json["parts"] = cost.parts;
  return json;
}

Json job_json(const DataflowPlan& plan) {
  const JobTime& time = plan.time;
  const MachineCost machine = machine_cost(plan.setup);
  Json json = Json::object();
  json["time_s"] = time.time_s;
  json["utilisation"] = time.utilisation;
  json["flops"] = time.flops;
  json["chips"] = plan.setup.chips;
  json["tp"] = time.tensor;
  json["pp"] = time.pipeline;
  json["dp"] = time.data;
  json["micro_batches"] = time.micro_batches;
  json["bubble"] = time.bubble;
  json["network"] = fabric_text(plan.setup.fabric);
  json["price_usd"] = machine.usd;
  json["power_w"] = machine.watts;
  return json;
}

/// What a kernel is sharded along by each of the network's dimensions that divide kernels.
std::vector<std::string_view> sharding_words(const KernelDims& dims, std::size_t axes) {
  static constexpr std::string_view kWords[] = {"outer", "M", "K", "N", "none"};
  std::vector<std::string_view> words;
  words.reserve(axes);
  for (std::size_t a = 0; a < axes; ++a) {
    words.push_back(kWords[static_cast<std::size_t>(dims.along[a])]);
  }
  return words;
}

Json sharding_json(const DataflowPlan& plan) {
  const std::size_t axes = shard_axes(plan.setup.fabric).size();
  Json json = Json::array();
  for (std::size_t i = 0; i < plan.work.kernels.size(); ++i) {
    json.push_back(
        {{"kernel", plan.work.kernels[i].name}, {"along", sharding_words(plan.dims[i], axes)}});
  }
  return json;
}

/// The kernels that are sharded along different dimensions.
std::string sharding_text(const DataflowPlan& plan) {
  const std::size_t axes = shard_axes(plan.setup.fabric).size();
  std::string text;
  for (std::size_t i = 0; i < plan.work.kernels.size(); ++i) {
    if (plan.dims[i].is_one()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", plan.work.kernels[i].name,
                        fmt::join(sharding_words(plan.dims[i], axes), " x "));
  }
  return text.empty() ? "No kernel is sharded along two dimensions.\n"
                      : fmt::format("Sharded by each dimension of the network: {}.\n", text);
}

Json to_json(const DataflowPlan& plan, double wall_s, std::int64_t networks) {
  const MappingOutcome& outcome = plan.outcome;
  Json json = Json::object();
  json["status"] = status_name(outcome.status);
  if (!outcome.mapping.partition_of.empty()) {
    json["time_s"] = outcome.cost.time_s;
    json["lower_bound_s"] = outcome.lower_bound_s;
    json["partitions"] = Json::array();
    for (std::size_t p = 0; p < outcome.cost.partitions.size(); ++p) {
      json["partitions"].push_back(partition_json(plan, p));
    }
    for (const PlannedStage& stage : plan.stages) {
      json["stages"].push_back({{"time_s", stage.time_s},
                                {"first_partition", stage.first_partition},
                                {"partitions", stage.partitions},
                                {"mapped_s", stage.mapped_s},
                                {"message_s", stage.message_s}});
    }
    json["job"] = job_json(plan);
    if (plan.boxes > 0) json["sharding"] = sharding_json(plan);
  } else if (outcome.cost.violation) {
    json["reason"] = *outcome.cost.violation;
  }
  json["search"] = {{"wall_s", wall_s},
                    {"work", outcome.partitions},
                    {"downsets", outcome.downsets},
                    {"boxes", plan.boxes},
                    {"networks", networks}};
  return json;
}

DataflowPlanRules rules_of(const MapOptions& options, const DataflowSetup& setup) {
  DataflowPlanRules rules =
      options.compat.empty() ? default_plan_rules(setup) : published_plan_rules(setup);
  if (!options.style.empty()) rules.kernel_by_kernel = options.style == "kernel-by-kernel";
  rules.job.grid_sharding = options.sharding == "grid";
  if (!options.sharding.empty()) rules.job.joint_sharding = true;
  if (options.budget > 0) rules.budget.partitions = options.budget;
  return rules;
}

/// The layers [first, last) that --layer names; all of them without it.
std::pair<LayerId, LayerId> layers_of(const Graph& graph, const std::string& layer) {
  const auto count = static_cast<LayerId>(graph.layers.size());
  if (layer.empty()) return {0, count};
  std::vector<std::string_view> names;
  for (LayerId id = 0; id < count; ++id) {
    const std::string& name = graph.layers[static_cast<std::size_t>(id)].name;
    if (name == layer) return {id, id + 1};
    names.emplace_back(name);
  }
  throw Error(fmt::format("--layer: {} has no layer {}", graph.name, in_quotes(layer)),
              did_you_mean(layer, names));
}

/// A model and the chip that it is mapped onto.
struct MappedModel {
  System system;
  Precision precision;
  Graph graph;
  const Chip& chip() const { return system.groups.front().chip; }
};

MappedModel mapped_model(const MapOptions& options) {
  MappedModel model;
  model.system = load_devices("", options.chip);
  model.precision = job_precision(options.precision, model.system);
  model.graph = load_model(options.setup, {.seq_len = options.seq_len, .dims = {}});
  set_working_precision(model.graph, model.precision.activation, model.precision.weight);
  return model;
}

/// A model's layers on one chip of the catalogue, once through, or there and back.
DataflowSetup model_setup(const MapOptions& options, const MappedModel& model) {
  const Chip& chip = model.chip();
  const Precision& precision = model.precision;
  const Graph& graph = model.graph;
  const auto [first, last] = layers_of(graph, options.layer);
  DataflowSetup setup;
  const double word = bytes_per_element(precision.activation);
  const GraphPasses passes = options.step       ? GraphPasses::step
                             : options.training ? GraphPasses::gradients
                                                : GraphPasses::forward;
  setup.graph = kernels_of(graph, first, last, word, passes);
  // Training keeps gradients, an fp32 copy and two moments as well.
  const double kept_bytes = passes == GraphPasses::forward ? word : 2 * word + 12;
  setup.job.resident_bytes = table_elements(graph, first, last) * kept_bytes;
  setup.chip = dataflow_chip(chip, precision.activation);
  setup.rules.compute_fraction = chip.efficiency.matmul_peak_fraction;
  return setup;
}

/// Chips without a role would stand idle.
void check_roles(const MapOptions& options, const DataflowSetup& setup) {
  if (!options.search.empty() || setup.job.workload != DataflowWorkload::layers) return;
  for (std::size_t i = 0; i < setup.fabric.dimensions.size(); ++i) {
    const FabricDimension& dimension = setup.fabric.dimensions[i];
    if (dimension.size == 1 || dimension.role != FabricRole::none) continue;
    throw Error(
        {options.setup, 0, fmt::format("par_{}", "xyz"[i])},
        fmt::format("what the {} chips of this dimension divide is not said", dimension.size),
        "give TP, PP or DP, or --search roles");
  }
}

/// A kernel's parameters lie in DRAM however it is sharded and mapped.
void check_kernels_fit(const MapOptions& options, const DataflowSetup& setup) {
  const DataflowWorkload workload = setup.job.workload;
  if (workload == DataflowWorkload::linpack || workload == DataflowWorkload::fourier) return;
  const std::int64_t ways = workload != DataflowWorkload::layers ? 1
                            : !options.search.empty()            ? setup.chips
                                                      : degree_of(setup.fabric, FabricRole::tensor);
  const double room = setup.chip.dram_bytes + setup.chip.spill_bytes;
  for (const Kernel& kernel : setup.graph.kernels) {
    const double bytes =
        weight_elements(kernel) * setup.graph.word_bytes / static_cast<double>(ways);
    if (bytes <= room) continue;
    throw Error(
        {options.setup, 0, kernel.name},
        fmt::format("this kernel fits no chip: {} of parameters{}, {} of DRAM", format_bytes(bytes),
                    ways == 1 ? "" : fmt::format(" on each of {} chips", ways),
                    format_bytes(room)));
  }
}

int exit_status(const DataflowPlan& plan) {
  if (!plan.outcome.mapping.partition_of.empty()) return kFound;
  return plan.outcome.status == MappingStatus::exhausted ? kExhausted : kInfeasible;
}

void print(const MapOptions& options, const DataflowPlan& plan, std::int64_t networks) {
  const MappingOutcome& outcome = plan.outcome;
  if (outcome.mapping.partition_of.empty()) {
    fmt::print("No mapping: {}\n", outcome.cost.violation ? *outcome.cost.violation
                                   : outcome.status == MappingStatus::exhausted
                                       ? "the budget was used up and none was found"
                                       : "DRAM is too small for what every mapping keeps there");
    return;
  }
  fmt::print("{}", mapping_text(plan));
  if (options.sharding == "grid") fmt::print("{}", sharding_text(plan));
  if (networks > 1) fmt::print("The best of {} networks.\n", networks);
  const bool sharded = plan.boxes > 0;
  const bool staged = !plan.stages.empty();
  if (outcome.status == MappingStatus::optimal) {
    fmt::print("{} optimal ({} sets of kernels looked at{}).\n",
               sharded  ? "The sharding and the mapping are"
               : staged ? "The stages and their mappings are"
                        : "The mapping is",
               outcome.partitions,
               sharded ? fmt::format(", {} sets of shardings", plan.boxes) : "");
  } else if (outcome.lower_bound_s > 0) {
    fmt::print("Within {:.2f} % of the best {}.\n",
               100 * (1 - outcome.lower_bound_s / outcome.cost.time_s),
               sharded  ? "sharding and mapping"
               : staged ? "stages and mappings with this sharding"
                        : "mapping");
  }
  fmt::print(
      "Charged: {}.\n",
      options.compat.empty()
          ? "what docs/dfmodel.md calls the default; --compat dfmodel for the published model"
          : "as DFModel's published runs");
}

void refuse(bool given, const char* option, const char* remedy) {
  if (given) throw Error(fmt::format("{}: not of a model on an accelerator", option), remedy);
}

int run_on_cores(const MapOptions& options, const MappedModel& model) {
  refuse(options.step, "--step", "the step of an optimizer is no layer's: give --training");
  refuse(!options.style.empty(), "--style", "leave it out");
  refuse(!options.roofline.empty(), "--roofline", "give --gantt");
  CoreMapOptions core;
  if (!options.layer.empty()) core.layer = layers_of(model.graph, options.layer).first;
  core.micro_batch = std::max<std::int64_t>(1, options.micro_batch);
  core.training = options.training;
  core.budget = options.budget > 0 ? options.budget : kCoreWork;
  core.gantt = options.gantt;
  core.json = options.json;
  return map_on_cores(model.graph, model.chip(), core);
}

int run_setup(const MapOptions& options, const DataflowSetup& setup) {
  check_roles(options, setup);
  check_kernels_fit(options, setup);
  const DataflowPlanRules rules = rules_of(options, setup);
  if (!options.search.empty() && setup.job.workload != DataflowWorkload::layers) {
    throw Error("--search: only models of layers have roles to search", "leave it out");
  }
  if (!options.sharding.empty() && setup.job.workload != DataflowWorkload::layers) {
    throw Error("--sharding: only kernels of layers have a choice of shardings", "leave it out");
  }
  const auto start = std::chrono::steady_clock::now();
  DataflowPlan plan;
  std::int64_t networks = 1;
  if (options.search.empty()) {
    plan = plan_dataflow(setup, rules);
  } else {
    DataflowSearch search = search_fabrics(
        setup, rules, options.search == "roles" ? FabricSearch::roles : FabricSearch::shapes);
    plan = std::move(search.best);
    networks = search.tried + search.skipped;
  }
  const double wall_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!options.roofline.empty() && !plan.outcome.mapping.partition_of.empty()) {
    write_file(options.roofline, roofline_svg(plan));
  }
  if (options.roofline == "-") return exit_status(plan);
  if (options.json) {
    fmt::print("{}", to_text(to_json(plan, wall_s, networks)));
  } else {
    print(options, plan, networks);
    if (!plan.outcome.mapping.partition_of.empty()) {
      say_written_below({{"Picture", options.roofline}});
    }
  }
  return exit_status(plan);
}

/// Throws Error for what only accelerators take.
void refuse_accelerators_options(const MapOptions& options) {
  if (options.gantt.empty() && options.micro_batch == 0) return;
  throw Error("--gantt and --micro-batch are for a model on an accelerator",
              "give --chip an accelerator, such as phaze-tpuv4, or leave them out");
}

int run_model(const MapOptions& options) {
  if (!options.compat.empty() || !options.search.empty() || !options.sharding.empty()) {
    throw Error(
        "--compat, --search and --sharding are for DFModel's inputs, not for a model on one chip",
        "leave out --chip or them");
  }
  const MappedModel model = mapped_model(options);
  if (model.chip().execution == ChipExecution::cores) return run_on_cores(options, model);
  refuse_accelerators_options(options);
  return run_setup(options, model_setup(options, model));
}

/// Throws Error for what is no input of DFModel but a model, which needs a chip to be mapped onto.
void refuse_model_without_chip(const std::string& input) {
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string extension = fs::path(input).extension().string();
  const bool is_model =
      extension == ".json" || extension == ".onnx" || fs::is_directory(input, error);
  if (!is_model && fs::exists(input, error)) return;
  throw Error(is_model ? in_quotes(input) + " is no input of DFModel"
                       : "there is no file " + in_quotes(input),
              "a model, by its name or file, needs the chip that it is mapped onto: --chip "
              "h100-sxm");
}

int run(const MapOptions& options) {
  check_word("--compat", options.compat, {"dfmodel"});
  check_word("--style", options.style, {"dataflow", "kernel-by-kernel"});
  check_word("--sharding", options.sharding, {"joint", "grid"});
  check_word("--search", options.search, {"roles", "shapes"});
  if (!options.chip.empty()) return run_model(options);
  refuse_accelerators_options(options);
  if (!options.layer.empty() || options.seq_len > 0 || options.training || options.step) {
    throw Error("--layer, --seq-len, --training and --step are for a model on a chip",
                "give --chip");
  }
  refuse_model_without_chip(options.setup);
  return run_setup(options, read_dataflow_setup(options.setup));
}

}  // namespace

Run add_map(CLI::App& app) {
  auto options = std::make_shared<MapOptions>();
  Verb verb(app, "map",
            "Map a graph of kernels onto dataflow chips, or operators onto an accelerator's cores");
  verb.footer(
      "Example:\n  braid map setup.txt --compat dfmodel --roofline roofline.svg\n  braid map "
      "llama-3-8b --chip sn30 --layer block0 --seq-len 4096 --training\n  braid map bert-large "
      "--chip "
      "phaze-tpuv4 --layer block0 --training --gantt cores.svg\n\nWithout --chip the file "
      "is an "
      "input of DFModel (protobuf text): a graph of kernels, a chip, a network, a job.");
  verb.add_option("INPUT", options->setup, "DFModel's setup.txt, or with --chip a model")
      .required();
  add_text(verb, "--chip", options->chip, "Map a model onto one chip like this");
  add_text(verb, "--layer", options->layer, "One layer of the model (default: all)");
  verb.add_flag("--training", options->training, "The model's backward pass as well");
  verb.add_flag("--step", options->step, "Its backward pass and the optimizer's step as well");
  add_count(verb, "--seq-len", options->seq_len, 1, std::int64_t{1} << 28, "Tokens per sample");
  add_count(verb, "--micro-batch", options->micro_batch, 1, 1 << 20,
            "Samples of a micro-batch, on an accelerator (default: 1)");
  add_text(verb, "--precision", options->precision, "As for braid plan");
  add_text(verb, "--compat", options->compat, "dfmodel: charge what its published runs charge");
  add_text(verb, "--style", options->style,
           "dataflow or kernel-by-kernel (default: as the file says)");
  add_text(verb, "--sharding", options->sharding,
           "joint: shardings are searched together with mappings, as without --compat; grid: and "
           "kernels may be sharded along another dimension by each of the network's");
  add_text(verb, "--search", options->search,
           "roles: find what each dimension of the network divides; shapes: and its sizes");
  add_count(verb, "--budget", options->budget, 1, std::int64_t{1} << 40,
            "Sets of kernels, or starts of operators, to look at before settling for the best "
            "found (default: 20,000,000, or 2,000,000)");
  add_output_file(verb, "--roofline", options->roofline, "Write a roofline picture (SVG)");
  add_output_file(
      verb, "--gantt", options->gantt,
      "Write a picture of a layer's schedule on an accelerator (SVG, or a page if it ends "
      "in .html)");
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run(*options); };
}

}  // namespace braid
