#include "braid/dataflow/dataflow_setup.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/dataflow/text_proto.h"

namespace braid {
namespace {

constexpr std::int64_t kLargestDim = std::int64_t{1} << 40;
constexpr std::int64_t kMostChips = std::int64_t{1} << 24;
constexpr std::int64_t kMostTiles = std::int64_t{1} << 22;

void read_message(ProtoReader& shape, const char* type_key, const char* size_key, Kernel& kernel) {
  static constexpr KernelTransfer kTransfers[] = {
      KernelTransfer::all_reduce, KernelTransfer::all_gather,
      KernelTransfer::all_to_all, KernelTransfer::all_reduce_per_batch,
      KernelTransfer::broadcast,  KernelTransfer::point_to_point};
  const double bytes = shape.number(size_key, 0, 0, kMostStated);
  const std::size_t type = shape.word(type_key,
                                      {"NO_COMMUNICATION", "ALL_REDUCE", "ALL_GATHER", "ALL_TO_ALL",
                                       "ALL_REDUCE_PERIODIC", "BROADCAST", "POINT_TO_POINT"},
                                      0);
  if (type > 0) kernel.messages.push_back({kTransfers[type - 1], bytes});
}

Kernel read_kernel(ProtoReader& entry, std::int32_t number) {
  Kernel kernel;
  kernel.name = entry.text("name", "");
  if (entry.required_integer("id", 1, 1 << 20) != number) {
    entry.fail("id", "kernels are not numbered 1, 2, … in order",
               fmt::format("this one is number {}", number));
  }
  kernel.pinned_partition = static_cast<std::int32_t>(entry.integer("config", -1, -1, 1 << 20));
  kernel.backward = entry.word("fwd_bwd", {"FWD", "BWD"}, 0) == 1;
  kernel.matrix = entry.word("type", {"SYSTOLIC", "SIMD"}, 0) == 0;
  entry.ignore({"topological_number"});
  const std::vector<std::string> forms = entry.message_names();
  if (forms.size() != 1) {
    entry.fail("",
               "a kernel has one shape: gemm_input1_weight, gemm_input1_input2, "
               "elementwise_input1 or elementwise_input1_input2");
  }
  const std::string& form = forms.front();
  const bool gemm = form == "gemm_input1_weight" || form == "gemm_input1_input2";
  if (!gemm && form != "elementwise_input1" && form != "elementwise_input1_input2") {
    entry.fail(form, "unknown shape of a kernel",
               "known: gemm_input1_weight, gemm_input1_input2, elementwise_input1, "
               "elementwise_input1_input2");
  }
  if (gemm != kernel.matrix)
    entry.fail("type", "SIMD kernels are elementwise, SYSTOLIC ones GEMMs");
  ProtoReader shape = entry.message(form);
  kernel.weights = form == "gemm_input1_weight" && !shape.boolean("skip_weight", false);
  kernel.outer = shape.integer("outer", 1, 1, kLargestDim);
  kernel.m = shape.required_integer("M", 1, kLargestDim);
  kernel.n = shape.required_integer("N", 1, kLargestDim);
  if (gemm) kernel.k = shape.required_integer("K", 1, kLargestDim);
  kernel.first_input_bytes = shape.number("input_tensor_1_size", 0, 0, kMostStated);
  static constexpr KernelDim kTilings[] = {KernelDim::none, KernelDim::outer, KernelDim::m,
                                           KernelDim::k, KernelDim::n};
  kernel.tiled = kTilings[shape.word(
      "tiling", {"NO_TILING", "OUTER_TILING", "M_TILING", "K_TILING", "N_TILING"}, 0)];
  kernel.dram_bytes = shape.number("memory_size", 0, 0, kMostStated);
  read_message(shape, "communication_type", "communication_size", kernel);
  read_message(shape, "communication_type_2", "communication_size_2", kernel);
  shape.ignore({"input_tensor_size", "weight_tensor_size", "output_tensor_size",
                "input_tensor_2_size", "sharding", "shard_outer_M", "shard_K", "shard_N",
                "use_effective_stage", "num_input", "sram_extra", "dram_extra"});
  shape.finish();
  entry.finish();
  return kernel;
}

KernelGraph read_graph(ProtoReader& part) {
  KernelGraph graph;
  std::vector<ProtoReader> kernels = part.messages("kernels");
  graph.kernels.reserve(kernels.size());
  for (ProtoReader& entry : kernels) {
    graph.kernels.push_back(
        read_kernel(entry, static_cast<std::int32_t>(graph.kernels.size() + 1)));
  }
  const auto count = static_cast<std::int64_t>(graph.kernels.size());
  std::vector<ProtoReader> connections = part.messages("connections");
  graph.tensors.reserve(connections.size());
  for (ProtoReader& entry : connections) {
    const std::int64_t from =
        entry.required_integer("startIdx", 1, std::max<std::int64_t>(count, 1));
    const std::int64_t to = entry.required_integer("endIdx", 1, std::max<std::int64_t>(count, 1));
    if (from == to) entry.fail("endIdx", "a kernel reads its own output");
    graph.tensors.push_back(
        {static_cast<std::int32_t>(from - 1), static_cast<std::int32_t>(to - 1)});
    entry.ignore({"id", "communication_type", "communication_size", "buffer_depth", "tensor_size",
                  "shard_tensor_size", "startName", "endName", "lane_stage_type", "zero_out"});
    entry.finish();
  }
  part.finish();
  return graph;
}

FabricRole read_role(ProtoReader& shape, const std::string& key) {
  const std::string role = shape.text(key, "");
  if (role.empty()) return FabricRole::none;
  if (role == "TP") return FabricRole::tensor;
  if (role == "PP") return FabricRole::pipeline;
  if (role == "DP") return FabricRole::data;
  shape.fail(key, "unknown role " + in_quotes(role), "known: TP, PP, DP");
}

Fabric read_fabric(ProtoReader& system, const std::string& name, std::int64_t chips) {
  static constexpr const char* kAxes[] = {"x", "y", "z"};
  Fabric fabric;
  ProtoReader shape = system.message(name);
  std::size_t free_at = 0, free_count = 0;
  std::int64_t product = 1;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('_', at), name.size());
    const std::string_view part = std::string_view(name).substr(at, end - at);
    const std::size_t axis = fabric.dimensions.size();
    FabricDimension dimension;
    dimension.shape = part == "r"    ? FabricShape::ring
                      : part == "fc" ? FabricShape::fully_connected
                                     : FabricShape::switched;
    dimension.size = shape.integer(kAxes[axis], 0, 0, kMostChips);
    dimension.bytes_per_s =
        1e9 * shape.required_number(fmt::format("link_bw_{}", kAxes[axis]), 1e-6, 1e9);
    dimension.role = read_role(shape, fmt::format("par_{}", kAxes[axis]));
    if (dimension.size == 0) {
      free_at = axis;
      ++free_count;
    } else if (__builtin_mul_overflow(product, dimension.size, &product) || product > chips) {
      shape.fail(kAxes[axis], fmt::format("the network joins more than the {} chips", chips));
    }
    fabric.dimensions.push_back(dimension);
    at = end + 1;
  }
  if (free_count > 1) shape.fail("", "more than one size of the network is missing");
  if (free_count == 1 && chips % product == 0) {
    fabric.dimensions[free_at].size = chips / product;
    product = chips;
  }
  if (product != chips) {
    shape.fail("", fmt::format("the network's sizes do not multiply to the {} chips", chips),
               "correct num_chip or x, y, z");
  }
  shape.finish();
  return fabric;
}

void read_system(ProtoReader& system, DataflowSetup& setup) {
  setup.chips = system.required_integer("num_chip", 1, kMostChips);
  ProtoReader chip = system.message("accelerator");
  setup.chip.tiles = chip.required_integer("core", 1, kMostTiles);
  setup.chip.lanes = chip.required_integer("systolic_width", 1, 1 << 20);
  setup.chip.stages = chip.required_integer("systolic_height", 1, 1 << 20);
  setup.chip.clock_hz = 1e9 * chip.required_number("freq", 1e-6, 1e6);
  setup.chip.sram_bytes = chip.required_number("sram_cap", 1, kMostStated);
  setup.fabric.latency_s = 1e-9 * chip.number("link_latency", 0, 0, 1e9);
  chip.ignore({"pmu", "pmu_cap", "x", "y", "placement"});
  chip.finish();
  ProtoReader memory = system.message("memory");
  setup.chip.dram_bytes_per_s = 1e9 * memory.required_number("dram_bw", 1e-6, 1e9);
  setup.chip.dram_bytes = memory.required_number("dram_cap", 1, kMostStated);
  setup.chip.spill_bytes_per_s = 1e9 * memory.number("second_dram_bw", 0, 0, 1e9);
  setup.chip.spill_bytes = memory.number("second_dram_cap", 0, 0, kMostStated);
  if ((setup.chip.spill_bytes > 0) != (setup.chip.spill_bytes_per_s > 0)) {
    memory.fail("", "second_dram_bw and second_dram_cap go together");
  }
  memory.finish();
  const double latency_s = setup.fabric.latency_s;
  bool found = false;
  for (const std::string& name : system.message_names()) {
    if (name == "accelerator" || name == "memory") continue;
    static constexpr std::string_view kKnown[] = {
        "r", "sw", "fc", "r_r", "r_fc", "r_sw", "sw_sw", "fc_fc", "r_r_r", "r_sw_sw", "sw_sw_sw"};
    if (std::find(std::begin(kKnown), std::end(kKnown), name) == std::end(kKnown)) {
      system.fail(name, "unknown network",
                  "known: r, sw, fc and products such as r_r, fc_fc, r_sw_sw");
    }
    if (found) system.fail(name, "a second network");
    found = true;
    setup.fabric = read_fabric(system, name, setup.chips);
  }
  if (!found) system.fail("", "no network", "give one, such as r { x: 8 link_bw_x: 50.0 }");
  setup.fabric.latency_s = latency_s;
  setup.fabric.domain_size = system.number("HBD", 0, 0, 1e9);
  system.finish();
}

void read_prices(ProtoReader& cost, DataflowPrices& prices) {
  const auto price = [&cost](const char* key) { return cost.number(key, 0, 0, 1e12); };
  prices.link_usd = price("link_unit_price");
  prices.switch_usd = price("switch_unit_price");
  prices.dram_usd = price("dram_unit_price");
  prices.chip_usd = price("accelerator_price");
  prices.link_w[0] = price("link_unit_power_x");
  prices.link_w[1] = price("link_unit_power_y");
  prices.link_w[2] = price("link_unit_power_z");
  prices.switch_w = price("switch_unit_power");
  prices.dram_w = price("dram_unit_power");
  prices.chip_w = price("accelerator_power");
  cost.finish();
}

void read_layers(ProtoReader& llm, DataflowJob& job) {
  job.hidden = llm.required_integer("hidden_dim", 1, kLargestDim);
  job.seq_len = llm.required_integer("seq_len", 1, kLargestDim);
  job.layers = llm.required_integer("num_layer", 1, 1 << 20);
  job.global_batch = llm.required_integer("global_batch_size", 1, kLargestDim);
  job.micro_batch = llm.integer("micro_batch_size", 1, 1, kLargestDim);
  job.tile = std::max<std::int64_t>(1, llm.integer("tile_size", 1, 0, kLargestDim));
  job.whole_model = llm.integer("num_layer_in_graph", 1, 0, 1 << 20) > 1;
  llm.ignore({"head_dim", "num_head"});
}

void read_job(ProtoReader& execution, DataflowSetup& setup) {
  DataflowJob& job = setup.job;
  const double word = execution.number("word", 2, 0.125, 64);
  const std::vector<std::string> kinds = execution.message_names();
  if (kinds.size() != 1) execution.fail("", "it needs one workload: llm, dlrm, hpl or fft");
  const std::string& kind = kinds.front();
  if (kind != "llm" && kind != "dlrm" && kind != "hpl" && kind != "fft") {
    execution.fail(kind, "unknown workload", "known: llm, dlrm, hpl, fft");
  }
  ProtoReader workload = execution.message(kind);
  if (kind != "llm" && workload.number("num_copy", 1, 0, 1e9) > 1) {
    workload.fail("num_copy", "only one copy is read");
  }
  if (kind == "llm") {
    job.workload = DataflowWorkload::layers;
    read_layers(workload, job);
  } else if (kind == "dlrm") {
    job.workload = DataflowWorkload::recommendation;
    job.global_batch = workload.required_integer("global_batch_size", 1, kLargestDim);
    job.resident_bytes = workload.required_number("num_table", 1, 1e9) *
                         workload.required_number("emb_dim", 1, 1e9) *
                         workload.required_number("row", 1, 1e15) * word;
  } else if (kind == "hpl") {
    job.workload = DataflowWorkload::linpack;
    const double side = workload.required_number("n", 1, 1e12);
    job.resident_bytes = side * side * word;
    workload.ignore({"b"});
    if (setup.fabric.dimensions.size() != 2) {
      workload.fail("", "hpl needs a network of two dimensions");
    }
  } else {
    job.workload = DataflowWorkload::fourier;
    job.resident_bytes = workload.required_number("length", 1, kMostStated) * word;
  }
  workload.finish();
  setup.graph.word_bytes = word;
  setup.kernel_by_kernel =
      execution.word("execution_style", {"DATAFLOW", "KERNEL_BY_KERNEL"}, 0) == 1;
  setup.most_partitions = execution.integer("num_config", 0, 0, 1 << 20);
  const bool perfect = execution.boolean("perfect_overlap", false);
  static constexpr PartitionOverlap kOverlaps[] = {PartitionOverlap::none, PartitionOverlap::all,
                                                   PartitionOverlap::compute_memory};
  const PartitionOverlap overlap = kOverlaps[execution.word(
      "overlap", {"NO_OVERLAP", "PERFECT_OVERLAP", "OVERLAP_COMPUTE_MEMORY"}, perfect ? 1 : 0)];
  setup.rules = dfmodel_rules(overlap);
  const double fraction = execution.number("compute_util", 0, 0, 1);
  // Passes lie in the halves of the partitions: of one partition both.
  setup.rules.separate_passes = setup.most_partitions != 1;
  setup.rules.whole_tiles = fraction == 0;
  setup.rules.compute_fraction = fraction == 0 ? 1 : fraction;
  setup.rules.sram_limit =
      job.workload == DataflowWorkload::layers || job.workload == DataflowWorkload::recommendation;
  setup.all_reduce_passes = execution.boolean("separate_rs_ag_for_ar", true) ? 2 : 1;
  execution.ignore({"optimization", "effective_stage"});
  execution.finish();
}

void check_roles(const DataflowSetup& setup, const std::string& file) {
  if (setup.job.workload != DataflowWorkload::layers) return;
  const std::int64_t data = degree_of(setup.fabric, FabricRole::data);
  if (setup.job.global_batch < data) {
    throw Error({file, 0, "global_batch_size"},
                fmt::format("{} samples are fewer than the {} data-parallel chips",
                            setup.job.global_batch, data));
  }
}

}  // namespace

DataflowSetup parse_dataflow_setup(std::string_view text, const std::string& file) {
  const ProtoField tree = parse_text_proto(text, file);
  ProtoReader root(tree, "", file);
  DataflowSetup setup;
  ProtoReader graph = root.message("dataflow_graph");
  setup.graph = read_graph(graph);
  ProtoReader system = root.message("system");
  read_system(system, setup);
  if (root.has("cost")) {
    ProtoReader cost = root.message("cost");
    read_prices(cost, setup.prices);
  }
  const char* part = root.has("execution")  ? "execution"
                     : root.has("training") ? "training"
                                            : "miscellany";
  ProtoReader execution = root.message(part);
  read_job(execution, setup);
  root.ignore({"gurobi"});
  root.finish();
  check_kernel_graph(setup.graph, file);
  check_roles(setup, file);
  return setup;
}

DataflowSetup read_dataflow_setup(const std::string& path) {
  return parse_dataflow_setup(read_file(path), path == "-" ? "standard input" : path);
}

}  // namespace braid
