#include "braid/frontend/dlrm.h"

#include <vector>

#include "braid/base/suggest.h"
#include "braid/frontend/config_fields.h"
#include "braid/frontend/dense.h"

namespace braid {
namespace {

constexpr std::int64_t kMostTables = 16384;
constexpr std::int64_t kMostRows = std::int64_t{1} << 40;
constexpr std::int64_t kMostEmbeddingDim = 65536;
constexpr std::int64_t kMostLookups = std::int64_t{1} << 16;
constexpr std::int64_t kMostInteraction = std::int64_t{1} << 30;

struct DlrmSpec {
  std::int64_t dense_features = 1, dense_branches = 1;
  std::vector<std::int64_t> bottom, top;
  std::vector<std::int64_t> rows;  ///< Of each table.
  std::int64_t embedding = 1, lookups = 1;
  bool concatenated_bags = false;
  std::string interaction;
  bool bias = true;

  std::int64_t bag_width() const { return concatenated_bags ? lookups * embedding : embedding; }
};

std::vector<std::int64_t> read_rows(const Value& config) {
  if (config["embedding_rows"].is_array()) {
    std::vector<std::int64_t> rows = sizes_of(config, "embedding_rows", 1, kMostRows);
    const auto count = static_cast<std::int64_t>(rows.size());
    if (count > kMostTables) config["embedding_rows"].fail("has too many tables");
    if (size_or(config, "num_tables", count) != count) {
      config["num_tables"].fail("is not the number of embedding_rows, " + std::to_string(count));
    }
    return rows;
  }
  const std::int64_t tables = size_of(config, "num_tables", kMostTables);
  return std::vector<std::int64_t>(static_cast<std::size_t>(tables),
                                   size_of(config, "embedding_rows", kMostRows));
}

/// "first" when the field is missing, else the one of both that it names.
bool is_second(const Value& value, const std::string& first, const std::string& second) {
  const std::string text = value.string_or(first);
  if (text != first && text != second) {
    value.fail("is '" + text + "'", "use " + first + " or " + second);
  }
  return text == second;
}

void check_interaction(const Value& config, const DlrmSpec& spec) {
  const Value kind = config["interaction"];
  if (spec.interaction != "cat" && spec.interaction != "dot" && spec.interaction != "fold") {
    kind.fail("unknown interaction '" + spec.interaction + "'",
              did_you_mean(spec.interaction, std::vector<std::string_view>{"cat", "dot", "fold"}));
  }
  if (spec.interaction == "dot" &&
      (spec.concatenated_bags || spec.bottom.back() != spec.embedding)) {
    kind.fail("dot products need dense and embedded vectors of one width",
              "end bottom_mlp in embedding_dim and use bag sum");
  }
  const auto tables = static_cast<std::int64_t>(spec.rows.size());
  if (spec.bag_width() > kMostInteraction / tables ||
      spec.bottom.back() > kMostInteraction / spec.dense_branches) {
    config["embedding_dim"].fail("makes more than " + std::to_string(kMostInteraction) +
                                 " features for the interaction");
  }
}

DlrmSpec read_dlrm(const Value& config) {
  DlrmSpec spec;
  spec.dense_features = size_of(config, "dense_features");
  spec.dense_branches = size_or(config, "dense_branches", 1, kMostTables);
  spec.bottom = sizes_of(config, "bottom_mlp");
  spec.top = sizes_of(config, "top_mlp");
  check_layer_count(config, "bottom_mlp",
                    spec.dense_branches * static_cast<std::int64_t>(spec.bottom.size()));
  spec.rows = read_rows(config);
  spec.embedding = size_of(config, "embedding_dim", kMostEmbeddingDim);
  spec.lookups = size_of(config, "lookups", kMostLookups);
  spec.concatenated_bags = is_second(config["bag"], "sum", "concat");
  spec.interaction = config["interaction"].as_string();
  spec.bias = flag_or(config, "mlp_bias", true);
  check_interaction(config, spec);
  return spec;
}

Features embedding_bag(GraphBuilder& builder, const DlrmSpec& spec, const std::string& name,
                       std::int64_t rows) {
  builder.begin_layer(name);
  const TensorId lookups = builder.input(name + ".lookups", {spec.lookups}, Dtype::i64);
  const TensorId table = builder.parameter(name + ".weight", {rows, spec.embedding});
  const std::int64_t pooling = spec.concatenated_bags ? 1 : spec.lookups;
  const std::int64_t width = spec.bag_width();
  return {builder.add(name, Embedding{rows, spec.embedding, spec.lookups, pooling},
                      {lookups, table}, {1, width}, Split::vocab),
          width};
}

/// The products of all pairs of the `count` vectors, each pair once, beside the dense ones.
Features pairwise_products(GraphBuilder& builder, Features dense, Features vectors,
                           std::int64_t count) {
  const TensorId products = builder.add(
      "interaction.products", MatMul{1, count, count, vectors.width / count, false, false},
      {vectors.tensor, vectors.tensor}, {count, count}, Split::replicated);
  const std::int64_t width = dense.width + count * (count - 1) / 2;
  return {builder.add("interaction.pairs", DataMovement{}, {dense.tensor, products}, {1, width},
                      Split::replicated),
          width};
}

Features interaction(GraphBuilder& builder, const DlrmSpec& spec,
                     const std::vector<Features>& dense, const std::vector<Features>& bags) {
  builder.begin_layer("interaction");
  std::vector<Features> all = dense;
  all.insert(all.end(), bags.begin(), bags.end());
  const Features features = concatenate(builder, "interaction", all);
  if (spec.interaction == "dot") {
    return pairwise_products(builder, concatenate(builder, "interaction.dense", dense), features,
                             static_cast<std::int64_t>(all.size()));
  }
  if (spec.interaction == "fold") {
    const std::int64_t width = spec.bottom.back();
    return {builder.add("interaction.fold", Reduction{features.width}, {features.tensor},
                        {1, width}, Split::replicated),
            width};
  }
  return features;
}

}  // namespace

Graph dlrm_from_config(const Value& config, const std::string& name, const ModelOptions& options) {
  refuse_seq_len(name, options);
  const DlrmSpec spec = read_dlrm(config);
  GraphBuilder builder(name, 0);
  std::vector<Features> dense;
  for (std::int64_t b = 0; b < spec.dense_branches; ++b) {
    const std::string branch = spec.dense_branches == 1 ? "bottom" : "bottom" + std::to_string(b);
    const Features x = feature_input(builder, branch + ".features", spec.dense_features);
    dense.push_back(dense_stack(builder, {branch + ".dense", spec.bias}, x, spec.bottom));
  }
  std::vector<Features> bags;
  for (std::size_t t = 0; t < spec.rows.size(); ++t) {
    bags.push_back(embedding_bag(builder, spec, "table" + std::to_string(t), spec.rows[t]));
  }
  Features x = interaction(builder, spec, dense, bags);
  x = dense_stack(builder, {"top.dense", spec.bias, true}, x, spec.top);
  return builder.finish(
      {builder.add("loss", Loss{1, x.width}, {x.tensor}, {1}, Split::replicated)});
}

}  // namespace braid
