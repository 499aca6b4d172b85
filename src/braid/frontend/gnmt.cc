#include "braid/frontend/gnmt.h"

#include "braid/frontend/config_fields.h"
#include "braid/frontend/graph_builder.h"

namespace braid {
namespace {

constexpr std::int64_t kMostSteps = 65536;
constexpr std::int64_t kMostHidden = std::int64_t{1} << 20;
constexpr std::int64_t kLstmGates = 4;
constexpr std::int64_t kFirstShortcut = 2;  ///< The third layer is the first with a shortcut.

struct GnmtSpec {
  std::int64_t hidden = 1, encoder_layers = 1, decoder_layers = 1, vocab = 1, tokens = 1;
  bool share_embedding = false;
  bool dropout = true;
};

class Builder {
 public:
  Builder(const GnmtSpec& spec, const std::string& name) : spec_(spec), graph_(name, spec.tokens) {}

  Graph build() {
    const TensorId memory = encoder();
    return graph_.finish({decoder(memory)});
  }

 private:
  /// A state for each token, `width` wide.
  TensorId dropout(const std::string& name, TensorId x, std::int64_t width) {
    return spec_.dropout ? add(name, Elementwise{spec_.tokens * width, 2, Elementwise::Keeps::mask},
                               {x}, width)
                         : x;
  }

  TensorId add(const std::string& name, const OperatorKind& kind, std::vector<TensorId> inputs,
               std::int64_t width) {
    return graph_.add(name, kind, std::move(inputs), {spec_.tokens, width}, Split::replicated);
  }

  TensorId sum(const std::string& name, TensorId a, TensorId b) {
    return add(name, Elementwise{spec_.tokens * spec_.hidden, 1, Elementwise::Keeps::nothing},
               {a, b}, spec_.hidden);
  }

  TensorId embedding(const std::string& side, TensorId table) {
    graph_.begin_layer(side + ".embedding");
    const TensorId words = graph_.input(side + ".words", {spec_.tokens}, Dtype::i64);
    return add(side + ".embedding", Embedding{spec_.vocab, spec_.hidden, spec_.tokens, 1},
               {words, table}, spec_.hidden);
  }

  TensorId table(const std::string& side) {
    return graph_.parameter(side + ".embedding.weight", {spec_.vocab, spec_.hidden});
  }

  /// One LSTM over x [tokens × width]; one bias for each of its two GEMMs, as in cuDNN.
  TensorId lstm(const std::string& name, TensorId x, std::int64_t width) {
    const std::int64_t gates = kLstmGates * spec_.hidden;
    return add(name, Recurrent{spec_.tokens, 1, gates, width + spec_.hidden},
               {x, graph_.parameter(name + ".input_weight", {width, gates}),
                graph_.parameter(name + ".hidden_weight", {spec_.hidden, gates}),
                graph_.parameter(name + ".bias", {2, gates})},
               spec_.hidden);
  }

  TensorId encoder() {
    const std::int64_t h = spec_.hidden;
    source_table_ = table("encoder");
    TensorId x = embedding("encoder", source_table_);
    for (std::int64_t l = 0; l < spec_.encoder_layers; ++l) {
      const std::string name = "encoder.layer" + std::to_string(l);
      graph_.begin_layer(name);
      const std::int64_t width = l == 1 ? 2 * h : h;
      const TensorId read = dropout(name + ".dropout", x, width);
      if (l == 0) {
        x = add(name + ".directions", DataMovement{},
                {lstm(name + ".forward", read, h), lstm(name + ".backward", read, h)}, 2 * h);
        continue;
      }
      const TensorId y = lstm(name + ".lstm", read, width);
      x = l >= kFirstShortcut ? sum(name + ".shortcut", y, x) : y;
    }
    return x;
  }

  /// Context of each target token: softmax(vᵀ·tanh(W·query + U·memory)) over the memory.
  TensorId attention(TensorId query, TensorId memory) {
    const std::int64_t h = spec_.hidden;
    const std::int64_t n = spec_.tokens;
    constexpr double sum_and_tanh_flops = 6;
    const TensorId q = graph_.linear("attention.query", query, {n, h, h}, false, Split::replicated);
    const TensorId k = graph_.linear("attention.key", memory, {n, h, h}, false, Split::replicated);
    const TensorId pairs = graph_.add(
        "attention.pairs", Elementwise{n * n * h, sum_and_tanh_flops, Elementwise::Keeps::inputs},
        {q, k}, {n, n, h}, Split::replicated);
    TensorId scores =
        graph_.linear("attention.scores", pairs, {n * n, h, 1}, false, Split::replicated);
    scores = add("attention.softmax", Softmax{n * n, n}, {scores}, n);
    return add("attention.context", MatMul{1, n, h, n, false, false}, {scores, memory}, h);
  }

  TensorId decoder(TensorId memory) {
    const std::int64_t h = spec_.hidden;
    TensorId x = embedding("decoder", spec_.share_embedding ? source_table_ : table("decoder"));
    TensorId context = -1;
    for (std::int64_t l = 0; l < spec_.decoder_layers; ++l) {
      const std::string name = "decoder.layer" + std::to_string(l);
      graph_.begin_layer(name);
      if (l == 0) {
        x = lstm(name + ".lstm", dropout(name + ".dropout", x, h), h);
        context = attention(x, memory);
        continue;
      }
      const TensorId both = add(name + ".join", DataMovement{}, {x, context}, 2 * h);
      const TensorId y = lstm(name + ".lstm", dropout(name + ".dropout", both, 2 * h), 2 * h);
      x = l >= kFirstShortcut ? sum(name + ".shortcut", y, x) : y;
    }
    graph_.begin_layer("classifier");
    const TensorId weight = graph_.parameter("classifier.weight", {h, spec_.vocab});
    const TensorId bias = graph_.parameter("classifier.bias", {spec_.vocab});
    return graph_.language_loss(x, weight, spec_.tokens, h, spec_.vocab, bias);
  }

  const GnmtSpec& spec_;
  GraphBuilder graph_;
  TensorId source_table_ = -1;
};

}  // namespace

Graph gnmt_from_config(const Value& config, const std::string& name, const ModelOptions& options) {
  GnmtSpec spec;
  spec.hidden = size_of(config, "hidden_size", kMostHidden);
  // The first encoder layer reads both directions, so that a second one has to bring them together.
  spec.encoder_layers = config["encoder_layers"].as_int_in(2, kMostLayers);
  spec.decoder_layers = size_of(config, "decoder_layers", kMostLayers);
  spec.vocab = size_of(config, "vocab_size");
  spec.share_embedding = flag_or(config, "share_embedding", false);
  spec.dropout = any_dropout(config, {"dropout"}, 0.2);
  spec.tokens =
      sample_tokens(options, size_of(config, "max_position_embeddings", kMostSteps), false);
  if (spec.tokens > kMostSteps) {
    throw Error(Where{"", 0, "--seq-len"},
                std::to_string(spec.tokens) + " tokens are too many for a recurrent model",
                "choose at most " + std::to_string(kMostSteps));
  }
  return Builder(spec, name).build();
}

}  // namespace braid
