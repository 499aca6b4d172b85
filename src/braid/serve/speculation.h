#pragma once

#include <cstdint>

#include "braid/serve/number_formats.h"
#include "braid/serve/served_model.h"

namespace braid {

/// How tokens are drafted and judged. A draft model makes K tokens one after the other, or a tree
/// of depth K in which every token has `width` successors; the target model judges them all in one
/// step and adds a token of its own after the last one that it accepts.
struct Speculation {
  double acceptance = 0;          ///< That one drafted token is accepted where all before it were.
  std::int64_t draft_tokens = 0;  ///< K; 0: nothing is drafted.
  std::int64_t width = 1;
};

/// Of a sequence in one round: K, or width + width² + … + width^K.
double drafted_tokens(const Speculation& of);
/// That the draft model computes in its k-th step, from 0 on: width^k.
double draft_step_tokens(const Speculation& of, std::int64_t k);

/// Tokens of a round in the mean, the target's own included, where drafts are accepted
/// independently of each other (Leviathan et al. 2023, equation 1):
///
///     (1 - a^(K+1)) / (1 - a),     K + 1 for a = 1
///
/// With a tree, a is 1 - (1 - acceptance)^width: that one of a token's successors is accepted, as
/// though they were drawn independently.
double expected_tokens(const Speculation& of);

/// A draft model beside a worker's own, on the same devices with the same tensor parallelism.
struct DraftModel {
  const ServedModel* model = nullptr;
  ServingFormat format;
  Speculation speculation;
};

/// Throws Error naming --draft where `draft` cannot draft for `target`: another vocabulary, or too
/// few positions for `context` tokens.
void check_draft(const ServedModel& draft, const ServedModel& target, double context);

/// Drafted tokens that a search tries where none is given: 1 to this.
inline constexpr std::int64_t kMostDraftTokens = 8;

}  // namespace braid
