#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "braid/trainers/exchange/given_arguments.h"
#include "braid/trainers/exchange/import.h"

namespace braid {

/// What the arguments are called that say how stages at the ends differ, and that of the chunks of
/// a stage.
struct StageEndNames {
  std::string_view first, last, embedding, loss, chunks;
};

/// What Megatron-LM is told of the stages at the ends of its pipeline.
struct StageEnds {
  std::optional<std::int64_t> first, last;  ///< Their blocks.
  bool counts_embedding = false, counts_loss = false;

  bool are_said() const { return first || last || counts_embedding || counts_loss; }
  std::int64_t counted() const { return (counts_embedding ? 1 : 0) + (counts_loss ? 1 : 0); }
  /// The first argument that says something of them. Precondition: are_said().
  std::string_view said_by(const StageEndNames& names) const {
    if (first) return names.first;
    if (last) return names.last;
    return counts_loss ? names.loss : names.embedding;
  }
};

/// Deals a model's blocks out to the chunks of run.parallel, where ends.are_said(), as Megatron-LM
/// does: evenly over the stages between the ends. Throws Error, naming the argument,
/// where they do not go evenly (megatron/core/transformer/transformer_block.py:
/// get_num_layers_to_build).
///
///     deal_blocks(given, names, 30, {.first = 6}, run);  // pp 4: run.chunk_blocks 6, 8, 8, 8
void deal_blocks(const GivenArguments& given, const StageEndNames& names, std::int64_t blocks,
                 const StageEnds& ends, Import& run);

}  // namespace braid
