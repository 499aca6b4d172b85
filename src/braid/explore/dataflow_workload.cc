#include <filesystem>

#include <fmt/format.h>

#include "braid/dataflow/workload_graphs.h"
#include "braid/explore/axis_reader.h"
#include "braid/explore/dataflow_parts.h"

namespace braid {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 24;
constexpr std::int64_t kMostKernels = 1024;

double word_bytes(const Value& value, double otherwise) {
  const Value word = value["word"];
  if (!word.exists()) return otherwise;
  const double bytes = word.as_positive_quantity(Unit::bytes);
  if (bytes < 0.125 || bytes > 64) word.fail("a number takes 1 bit to 64 bytes");
  return bytes;
}

void read_transformer(const Value& value, DataflowSpaceWorkload& workload) {
  value.expect_only({"kind", "hidden", "heads", "feed_forward", "seq_len", "layers", "training",
                     "global_batch", "micro_batch", "word"});
  TransformerShape shape;
  shape.hidden = value["hidden"].as_int_in(1, kLargest);
  shape.heads = value["heads"].as_int_in(1, shape.hidden);
  if (shape.hidden % shape.heads != 0) {
    value["heads"].fail(
        fmt::format("{} heads do not divide the width {}", shape.heads, shape.hidden));
  }
  shape.feed_forward = 4 * shape.hidden;
  if (const Value inner = value["feed_forward"]; inner.exists()) {
    shape.feed_forward = inner.as_int_in(1, kLargest);
  }
  shape.seq_len = value["seq_len"].as_int_in(1, kLargest);
  shape.training = value["training"].bool_or(true);
  shape.word_bytes = word_bytes(value, 2);
  DataflowJob& job = workload.job;
  job.workload = DataflowWorkload::layers;
  job.hidden = shape.hidden;
  job.seq_len = shape.seq_len;
  job.layers = value["layers"].as_int_in(1, 1 << 20);
  job.global_batch = value["global_batch"].as_int_in(1, std::int64_t{1} << 40);
  if (const Value micro = value["micro_batch"]; micro.exists()) {
    // The mapping is of one sample; DFModel's layers know no other size.
    job.micro_batch = micro.as_int_in(1, 1);
  }
  workload.graph = transformer_layer(shape);
}

void read_recommendation(const Value& value, DataflowSpaceWorkload& workload,
                         std::int64_t devices) {
  value.expect_only({"kind", "tables", "rows", "embedding", "pooled", "width", "bottom_layers",
                     "top_layers", "micro_batch", "global_batch", "word"});
  RecommendationShape shape;
  shape.tables = value["tables"].as_int_in(1, kLargest);
  shape.embedding = value["embedding"].as_int_in(1, kLargest);
  shape.pooled = value["pooled"].as_int_in(1, kLargest);
  shape.width = value["width"].as_int_in(1, kLargest);
  shape.bottom_layers = value["bottom_layers"].as_int_in(1, kMostKernels);
  shape.top_layers = value["top_layers"].as_int_in(0, kMostKernels);
  shape.micro_batch = value["micro_batch"].as_int_in(1, kLargest);
  shape.chips = devices;
  shape.word_bytes = word_bytes(value, 2);
  const auto rows = static_cast<double>(value["rows"].as_int_in(1, std::int64_t{1} << 50));
  const Value global = value["global_batch"];
  const std::int64_t samples = global.as_int_in(1, std::int64_t{1} << 50);
  if (samples % shape.micro_batch != 0 || samples / shape.micro_batch % devices != 0) {
    global.fail(fmt::format("{} samples are no multiple of {} devices with {} each", samples,
                            devices, shape.micro_batch));
  }
  workload.job.workload = DataflowWorkload::recommendation;
  workload.job.global_batch = samples / shape.micro_batch;
  workload.job.resident_bytes = static_cast<double>(shape.tables) *
                                static_cast<double>(shape.embedding) * rows * shape.word_bytes;
  workload.graph = recommendation_layers(shape);
}

void read_linpack(const Value& value, DataflowSpaceWorkload& workload) {
  value.expect_only({"kind", "side", "block", "iterations", "word"});
  LinpackShape shape;
  shape.side = value["side"].as_int_in(1, std::int64_t{1} << 32);
  shape.block = value["block"].as_int_in(1, shape.side);
  const std::int64_t all = shape.side / shape.block;
  const Value iterations = value["iterations"];
  shape.iterations = iterations.exists() ? iterations.as_int_in(1, all) : all;
  if (shape.iterations > kMostKernels) {
    (iterations.exists() ? iterations : value["block"])
        .fail(fmt::format("{} iterations are more than {}", shape.iterations, kMostKernels),
              "give 'iterations' for the first ones, or a larger block");
  }
  shape.word_bytes = word_bytes(value, 8);
  workload.job.workload = DataflowWorkload::linpack;
  workload.job.resident_bytes =
      static_cast<double>(shape.side) * static_cast<double>(shape.side) * shape.word_bytes;
  workload.graph = linpack_iterations(shape);
}

void read_fourier(const Value& value, DataflowSpaceWorkload& workload) {
  value.expect_only({"kind", "points", "radix", "word"});
  FourierShape shape;
  shape.points = static_cast<double>(value["points"].as_int_in(4, std::int64_t{1} << 60));
  shape.radix = value["radix"].as_int_in(2, 1 << 20);
  shape.word_bytes = word_bytes(value, 2);
  workload.job.workload = DataflowWorkload::fourier;
  workload.job.resident_bytes = shape.points * shape.word_bytes;
  workload.graph = fourier_steps(shape);
}

// The graph and job of one of DFModel's inputs; its machine is not used.
void read_published(const Value& value, DataflowSpaceWorkload& workload) {
  value.expect_only({"kind", "file"});
  const Value file = value["file"];
  std::filesystem::path path = std::string(file.as_string());
  if (path.is_relative()) {
    path = std::filesystem::path(value.where().file).parent_path() / path;
  }
  const DataflowSetup setup = read_dataflow_setup(path.string());
  workload.graph = setup.graph;
  workload.job = setup.job;
}

}  // namespace

DataflowSpaceWorkload read_dataflow_workload(const std::string& name, const Value& value,
                                             std::int64_t devices) {
  DataflowSpaceWorkload workload;
  workload.name = name;
  static const std::vector<std::string_view> kKinds{"transformer", "dlrm", "hpl", "fft", "dfmodel"};
  switch (word_index(value["kind"], "kind of workload", kKinds)) {
    case 0:
      read_transformer(value, workload);
      break;
    case 1:
      read_recommendation(value, workload, devices);
      break;
    case 2:
      read_linpack(value, workload);
      break;
    case 3:
      read_fourier(value, workload);
      break;
    default:
      read_published(value, workload);
      break;
  }
  try {
    check_kernel_graph(workload.graph, value.where().file);
  } catch (const Error& error) {
    value.fail(error.what());
  }
  return workload;
}

}  // namespace braid
