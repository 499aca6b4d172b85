#include "braid/serve/speculation.h"

#include <cmath>

#include <fmt/format.h>

#include "braid/base/error.h"

namespace braid {

double draft_step_tokens(const Speculation& of, std::int64_t k) {
  return std::pow(static_cast<double>(of.width), static_cast<double>(k));
}

double drafted_tokens(const Speculation& of) {
  double tokens = 0;
  for (std::int64_t k = 1; k <= of.draft_tokens; ++k) tokens += draft_step_tokens(of, k);
  return tokens;
}

double expected_tokens(const Speculation& of) {
  const double accepted = 1 - std::pow(1 - of.acceptance, static_cast<double>(of.width));
  double tokens = 0, reached = 1;
  for (std::int64_t k = 0; k <= of.draft_tokens; ++k) {
    tokens += reached;
    reached *= accepted;
  }
  return tokens;
}

void check_draft(const ServedModel& draft, const ServedModel& target, double context) {
  const Where where{"", 0, "--draft"};
  if (draft.vocab != target.vocab) {
    throw Error(where,
                fmt::format("{} has a vocabulary of {:.0f} tokens, {} one of {:.0f}", draft.name,
                            draft.vocab, target.name, target.vocab),
                "take a draft model with the target's tokens");
  }
  if (draft.positions > 0 && context > static_cast<double>(draft.positions)) {
    throw Error(where, fmt::format("input and output are longer than the {} tokens that {} takes",
                                   draft.positions, draft.name));
  }
}

}  // namespace braid
