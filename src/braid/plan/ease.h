#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace braid {

// Which of several plans to recommend: not always the fastest (docs/design.md, "What is
// recommended").

/// What a plan asks of those who run it, what counts most first: less is easier.
struct Ease {
  bool offload = false;     ///< Something lies in host memory.
  int dimensions = 0;       ///< How many of tp, cp, ep and pp are above 1: dp is what they leave.
  bool own_layout = false;  ///< Layers, devices or tensors lie otherwise than trainers put them.
  bool extreme = false;     ///< Of the micro-batch or the chunks, see below.

  // NOLINTNEXTLINE(modernize-use-nullptr): misread by clang-tidy 14, there is no pointer here.
  friend auto operator<=>(const Ease&, const Ease&) = default;
};
inline constexpr int kPlanDimensions = 4;

/// How much longer than the fastest plan, as a share, an easier one may take. The mean error of
/// predicted times is several times that (docs/accuracy.md), so that less decides nothing.
inline constexpr double kSlowerForEase = 0.01;
/// The same of a plan without offload against one with it. Host memory costs more than other ways
/// to be hard to run: the link's rate is shared, and the host's memory is wanted by loaders of
/// data.
inline constexpr double kSlowerWithoutOffload = 0.03;

// Of the measured runs that docs/accuracy.md counts, with pipelines and with tokens, 98 % have no
// more chunks than this and 99 % no micro-batch of more tokens: beyond, a trainer is hardly tried,
// and neither are the predictions.
inline constexpr int kMostUsualChunks = 8;
inline constexpr std::int64_t kMostUsualTokens = 65536;

/// The largest micro-batch that is not extreme: one sample always is not. `seq_len`: tokens of a
/// sample; 0, a sample has none: no micro-batch is extreme.
int most_usual_micro_batch(std::int64_t seq_len);

/// Which of tp, cp, ep and pp are above 1, a bit for each: of any form that has them.
template <typename Form>
unsigned parallel_dimensions(const Form& form) {
  unsigned bits = 0;
  for (const int degree : {form.tp, form.cp, form.ep, form.pp}) {
    bits = 2 * bits + (degree > 1 ? 1U : 0U);
  }
  return bits;
}

/// Of a plan whose stages share a form.
template <typename Form>
Ease ease_of(const Form& form, bool own_layout, std::int64_t seq_len) {
  return {form.offload_optimizer || form.offload_weights || form.offload_activations,
          std::popcount(parallel_dimensions(form)), own_layout,
          form.vp > kMostUsualChunks || form.micro_batch > most_usual_micro_batch(seq_len)};
}

/// What may be recommended: plans that take at most `most_s`.
struct EaseLimits {
  bool offload = false;  ///< With offload too; those without all take too long then.
  double most_s = 0;
};
/// Offload is left out where the fastest plan without it takes at most kSlowerWithoutOffload longer
/// than the fastest. Of what is left, what takes at most kSlowerForEase longer than the fastest of
/// that may be recommended, but never more than kSlowerWithoutOffload longer than the fastest of
/// all. `without_offload_s`: infinite where there is none.
EaseLimits ease_limits(double fastest_s, double without_offload_s);

struct TimedEase {
  double time_s = 0;
  Ease ease;
};
/// The number of the plan to recommend of these, of which there is at least one: within
/// ease_limits() the easiest, of equally easy ones the fastest, of equal ones the first.
std::size_t easiest_of(std::span<const TimedEase> plans);

}  // namespace braid
