#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/error.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/base/suggest.h"
#include "braid/chip/accelerator/accelerator_reader.h"
#include "braid/cli/count_option.h"
#include "braid/cli/dim_option.h"
#include "braid/cli/show_accelerator.h"
#include "braid/cli/show_kernels.h"
#include "braid/cli/show_trainer.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/frontend/model.h"
#include "braid/graph/op_work.h"
#include "braid/graph/repeated_layers.h"
#include "braid/planners/registry.h"
#include "braid/system/system_json.h"
#include "braid/system/topology_name.h"

namespace braid {
namespace {

void line(const std::string& name, const std::string& value) {
  fmt::print("  {:<22} {}\n", name, value);
}

void print_provenance(const std::vector<Provenance>& provenance) {
  if (provenance.empty()) return;
  fmt::print("\nSources and assumptions\n");
  for (const Provenance& entry : provenance) {
    line(entry.key, (entry.assumed ? "assumed: " : "") + entry.source);
  }
}

/// `limited_by_uplinks`: each unit sends what its own uplink, printed above, lets it.
void print_level(const NetworkLevel& level, const char* units, bool limited_by_uplinks = false) {
  std::string text = fmt::format("{} of {} {}", name_of(level.topology), level.size, units);
  if (!level.torus_dims.empty()) text += fmt::format(" ({})", fmt::join(level.torus_dims, " x "));
  if (limited_by_uplinks) {
    text += ", each with its uplink";
  } else {
    text += fmt::format(", {} a device", format_bytes_per_s(level.bytes_per_s));
    if (level.unit_bytes_per_s > level.bytes_per_s) {
      text += fmt::format(", {} a unit", format_bytes_per_s(level.unit_bytes_per_s));
    }
  }
  if (level.rails > 1) text += fmt::format(" on {} rails", level.rails);
  if (level.oversubscription > 1) text += fmt::format(", {:g}:1", level.oversubscription);
  text += ", latency " + format_seconds(level.latency_s);
  line(level.name, text);
  line("", fmt::format("large messages reach {:g} %", 100 * level.efficiency) +
               (level.half_bytes > 0 ? ", half of that at " + format_bytes(level.half_bytes) : ""));
}

void print_memory(const Memory& level, const char* what) {
  line(level.name, fmt::format("{} at {}{}", format_bytes(level.bytes),
                               format_bytes_per_s(level.bytes_per_s), what));
}

void print_chip(const Chip& chip) {
  fmt::print("{}{}{}\n", chip.name, chip.description.empty() ? "" : ": ", chip.description);
  for (const PeakRate& peak : chip.peaks) {
    line(fmt::format("peak {}", name_of(peak.dtype)),
         fmt::format("{:.4g} {}", peak.matmul_flops_per_s / 1e12,
                     peak.dtype == Dtype::i8 ? "TOP/s" : "TFLOP/s"));
  }
  line("vector f32", fmt::format("{:.4g} TFLOP/s", chip.vector_flops_per_s / 1e12));
  line("compute units", std::to_string(chip.compute_units));
  if (chip.compute_capability) {
    line("compute capability", fmt::format("{:.1f}", *chip.compute_capability));
  }
  print_memory(chip.memory, "");
  if (chip.on_chip) print_memory(*chip.on_chip, ", on chip");
  if (chip.host) print_memory(*chip.host, ", on the host: the device's share");
  line("reserved", format_bytes(chip.reserved_bytes));
  if (chip.accelerator) print_accelerator(*chip.accelerator);
  line("power", chip.power_w ? fmt::format("{:g} W", *chip.power_w) : "not stated");
  line("price", chip.price_usd ? fmt::format("{:.7g} USD", *chip.price_usd) : "not stated");
  const Efficiency& reached = chip.efficiency;
  line("large kernels reach",
       fmt::format(
           "{:g} % of peak in GEMMs, {:g} % in attention, {:g} % of vector, {:g} % of memory",
           100 * reached.matmul_peak_fraction, 100 * reached.attention_peak_fraction,
           100 * reached.vector_peak_fraction, 100 * reached.memory_peak_fraction));
  if (reached.narrow_matmul_peak_fraction > 0) {
    line("in 8 bits and less",
         fmt::format("{:g} % of peak in GEMMs", 100 * reached.narrow_matmul_peak_fraction));
  }
  line("kernel launch", format_seconds(reached.kernel_launch_s));
  line("host, per operator", format_seconds(reached.host_operator_s));
  line("hidden collectives", fmt::format("slow the kernels that they run behind by {:g} % of their "
                                         "own time",
                                         100 * reached.overlap_loss));
  line("tile", fmt::format("{} x {} x {}", reached.tile_m, reached.tile_n, reached.tile_k));
  print_provenance(chip.provenance);
}

void print_system(const System& system) {
  fmt::print("{}: {}{}{} device{}\n", system.name, system.description,
             system.description.empty() ? "" : "; ", system.device_count,
             system.device_count == 1 ? "" : "s");
  double power_w = 0;
  std::int64_t rest = system.device_count;
  bool power_known = true;
  for (const DeviceGroup& group : system.groups) {
    line("nodes",
         fmt::format("{} of {} x {}", group.nodes, group.devices_per_node, group.chip.name));
    print_level(group.intra_node, "devices");
    if (group.node_bytes_per_s > 0) {
      line("uplink", format_bytes_per_s(group.node_bytes_per_s) + " a node");
    }
    if (group.node_usd_per_hour > 0) {
      line("price", fmt::format("{:.2f} USD a node and hour", group.node_usd_per_hour));
    }
    power_known = power_known && group.chip.power_w.has_value();
    const std::int64_t devices = std::min(rest, group.nodes * group.devices_per_node);
    power_w += group.chip.power_w.value_or(0) * static_cast<double>(devices);
    rest -= devices;
  }
  const bool have_uplinks =
      std::all_of(system.groups.begin(), system.groups.end(),
                  [](const DeviceGroup& group) { return group.node_bytes_per_s > 0; });
  for (std::size_t l = 0; l < system.levels.size(); ++l) {
    print_level(system.levels[l], "units", l == 0 && have_uplinks);
  }
  if (!system.bandwidth_matrix.empty()) {
    line("bandwidth matrix", fmt::format("{0} x {0}", system.device_count));
  }
  if (power_known) line("power of the chips", fmt::format("{:.4g} kW", power_w / 1e3));
  print_provenance(system.provenance);
  std::vector<std::string> shown;
  for (const DeviceGroup& group : system.groups) {
    if (std::find(shown.begin(), shown.end(), group.chip.name) != shown.end()) continue;
    shown.push_back(group.chip.name);
    fmt::print("\n");
    print_chip(group.chip);
  }
}

/// `description`: the zoo's, empty for files.
int show_model(const std::string& name, const std::string& description, const ModelOptions& options,
               bool json) {
  const Graph graph = load_model(name, options);
  double forward = 0;
  double backward = 0;
  for (const Operator& op : graph.operators) {
    forward += forward_model_flops(graph, op);
    backward += backward_model_flops(graph, op);
  }
  const auto kinds = layer_kind_count(graph);
  const double tokens = static_cast<double>(graph.samples) *
                        static_cast<double>(std::max<std::int64_t>(1, graph.seq_len));
  const auto parameters = static_cast<double>(parameter_count(graph));
  if (json) {
    Json out = Json::object();
    out["name"] = graph.name;
    if (!description.empty()) out["description"] = description;
    out["parameters"] = parameter_count(graph);
    out["layers"] = graph.layers.size();
    out["distinct_layers"] = kinds;
    out["operators"] = graph.operators.size();
    out["seq_len"] = graph.seq_len;
    out["samples"] = graph.samples;
    out["forward_flops"] = forward;
    out["backward_flops"] = backward;
    fmt::print("{}", to_text(out));
    return kFound;
  }
  fmt::print("{}\n", graph.name);
  if (!description.empty()) fmt::print("{}\n", description);
  line("parameters", format_count(parameters) + fmt::format(" ({})", parameter_count(graph)));
  line("layers", fmt::format("{} ({} distinct)", graph.layers.size(), kinds));
  line("operators", std::to_string(graph.operators.size()));
  if (graph.seq_len > 0) line("sequence length", std::to_string(graph.seq_len));
  line(graph.seq_len > 0 ? "FLOPs per token" : "FLOPs per sample",
       fmt::format("{:.4g} forward, {:.4g} with backward (GEMMs)", forward / tokens,
                   (forward + backward) / tokens));
  fmt::print("\nLayers\n");
  for (std::size_t i = 0; i < graph.layers.size();) {
    std::size_t j = i;
    while (j + 1 < graph.layers.size() && graph.layers[j + 1].kind == graph.layers[i].kind) ++j;
    line(i == j ? std::to_string(i) : fmt::format("{}-{}", i, j),
         graph.layers[i].name + (i == j ? "" : " … " + graph.layers[j].name));
    i = j + 1;
  }
  return kFound;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int show_chip(const std::string& name, bool json) {
  const Chip chip = load_chip(name);
  if (json) {
    fmt::print("{}", to_text(to_json(chip)));
  } else {
    print_chip(chip);
    print_measured_kernels(chip);
  }
  return kFound;
}

int show_system(const std::string& name, bool json) {
  const System system = load_system(name);
  if (json) {
    fmt::print("{}", to_text(to_json(system)));
  } else {
    print_system(system);
  }
  return kFound;
}

int show(const std::string& name, const ModelOptions& options, bool json) {
  if (contains(chip_names(), name)) return show_chip(name, json);
  if (contains(cluster_names(), name.substr(0, name.find_first_of(":+"))))
    return show_system(name, json);
  std::vector<std::string> known = chip_names();
  for (const std::string& cluster : cluster_names()) known.push_back(cluster);
  for (const ZooEntry& entry : zoo_models()) {
    if (entry.name == name) return show_model(name, entry.description, options, json);
    known.push_back(entry.name);
  }
  for (const TrainerFile& trainer : trainer_catalogue()) {
    if (trainer.name == name) return show_trainer(trainer, json);
    known.push_back(trainer.name);
  }
  for (const PlannerEntry& entry : planners()) {
    if (entry.name == name) {
      if (json) {
        Json out = Json::object();
        out["name"] = entry.name;
        out["description"] = entry.description;
        fmt::print("{}", to_text(out));
      } else {
        fmt::print("{}: {}\n", entry.name, entry.description);
      }
      return kFound;
    }
    known.emplace_back(entry.name);
  }
  const std::string extension = std::filesystem::path(name).extension().string();
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored) && extension.substr(0, 5) != ".yaml") {
    throw Error("nothing is called '" + name + "', and there is no such file",
                did_you_mean(name, known));
  }
  if (extension == ".yaml" || extension == ".yml") {
    const Document document = Document::parse_file(name);
    const Value root = document.root();
    if (root.is_object() && (root["memory"].exists() || root["accelerator"].exists())) {
      return show_chip(name, json);
    }
    if (root.is_object() && root["architectures"].exists()) {
      root.expect_only({"name", "architectures"});
      return show_architectures(read_architecture_space(root["architectures"]), json);
    }
    if (root.is_object() && (root["can"].exists() || root["does"].exists())) {
      return show_trainer(read_trainer(root), json);
    }
    return show_system(name, json);
  }
  if (extension.substr(0, 5) == ".yaml") return show_system(name, json);
  return show_model(name, "", options, json);
}

}  // namespace

Run add_show(CLI::App& app) {
  struct Arguments {
    std::string name;
    ModelOptions options;
    std::vector<std::string> dims;
    std::string kernel;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  Verb verb(app, "show",
            "A model, chip, cluster, trainer or planner, and where its figures come from");
  verb.footer(
      "Example:\n  braid show h100-sxm\n  braid show h100-sxm --kernel "
      "gemm=4096,4096,4096\n\nKernels: "
      "docs/kernels.md.");
  verb.add_option("NAME", arguments->name, "A name that braid list prints, or a file").required();
  add_count(verb, "--seq-len", arguments->options.seq_len, 1, std::int64_t{1} << 28,
            "Tokens per sample of a model");
  add_dims(verb, arguments->dims);
  add_text(verb, "--kernel", arguments->kernel,
           "What one kernel of a chip takes: OPERATION=SIZES; OPERATION alone: its figures");
  verb.add_flag("--json", arguments->json, "Print exactly one JSON object");
  return [arguments] {
    arguments->options.dims = parse_dims(arguments->dims);
    if (!arguments->kernel.empty()) {
      return show_kernel(load_chip(arguments->name), arguments->kernel, arguments->json);
    }
    return show(arguments->name, arguments->options, arguments->json);
  };
}

}  // namespace braid
