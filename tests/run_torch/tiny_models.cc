#include "run_torch/tiny_models.h"

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"
#include "braid/frontend/model.h"

namespace braid::test {

std::vector<TinyModel> tiny_models() {
  return {
      {"gpt2", R"({"model_type": "gpt2", "vocab_size": 24, "n_positions": 8, "n_embd": 8,
                   "n_layer": 3, "n_head": 2})"},
      {"llama", R"({"model_type": "llama", "vocab_size": 24, "max_position_embeddings": 6,
                    "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 3,
                    "num_attention_heads": 4, "num_key_value_heads": 2})"},
      {"mixtral", R"({"model_type": "mixtral", "vocab_size": 24, "max_position_embeddings": 6,
                      "hidden_size": 16, "intermediate_size": 12, "num_hidden_layers": 2,
                      "num_attention_heads": 4, "num_key_value_heads": 2,
                      "num_local_experts": 4, "num_experts_per_tok": 2})"},
      {"t5", R"({"model_type": "t5", "vocab_size": 24, "n_positions": 6, "d_model": 8, "d_kv": 4,
                 "d_ff": 12, "num_layers": 2, "num_heads": 2,
                 "relative_attention_num_buckets": 8})"},
      {"bert", R"({"model_type": "bert", "vocab_size": 20, "max_position_embeddings": 6,
                   "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2,
                   "num_attention_heads": 2, "type_vocab_size": 2})"},
      {"resnet", R"({"model_type": "resnet", "embedding_size": 4, "hidden_sizes": [8, 12],
                     "depths": [1, 2], "layer_type": "bottleneck", "image_size": 16,
                     "num_labels": 5})"},
      {"multi-modal", R"({"model_type": "multi_modal_transformer", "num_branches": 2,
                          "num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2,
                          "intermediate_size": 12, "max_position_embeddings": 4})"},
      {"dlrm", R"({"model_type": "dlrm", "dense_branches": 2, "dense_features": 5,
                   "bottom_mlp": [6, 4], "num_tables": 3, "embedding_rows": 10,
                   "embedding_dim": 4, "lookups": 3, "interaction": "cat", "top_mlp": [6, 1]})"},
      {"dlrm-joined", R"({"model_type": "dlrm", "dense_branches": 1, "dense_features": 5,
                          "bottom_mlp": [6, 4], "num_tables": 2, "embedding_rows": 10,
                          "embedding_dim": 4, "lookups": 3, "bag": "concat",
                          "interaction": "cat", "top_mlp": [6, 1]})"},
      {"candle-uno", R"({"model_type": "candle_uno", "features": {"dose": 1, "cell": 5, "drug": 7},
                         "feature_layers": [6, 6], "dense_layers": [4], "num_labels": 1})"},
      {"vit", R"({"model_type": "vit", "hidden_size": 8, "num_hidden_layers": 2,
                  "num_attention_heads": 2, "intermediate_size": 12, "image_size": 8,
                  "patch_size": 4, "num_labels": 5})"},
  };
}

Graph graph_of(const TinyModel& model) {
  const TemporaryFolder folder;
  const std::string file = folder / "config.json";
  write_file(file, model.config);
  return load_model(file, {});
}

}  // namespace braid::test
