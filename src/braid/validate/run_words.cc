#include "braid/validate/run_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "braid/base/text.h"

namespace braid {
namespace {

/// In lower case, without spaces, hyphens and underscores.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ' ' || c == '-' || c == '_') continue;
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

template <std::size_t N>
bool has_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return contains(text, word); });
}

template <std::size_t N>
bool is_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr std::array<std::string_view, 7> kOff = {"none", "no",       "false", "off",
                                                  "n/a",  "disabled", "0"};
constexpr std::array<std::string_view, 5> kOn = {"yes", "true", "on", "enabled", "1"};

}  // namespace

bool read_sharding(const std::string& text, Zero& zero, bool& offload_optimizer) {
  const std::string name = plain(text);
  if (name.empty() || name == "fsdp=0") return true;
  // State in files, and gathers within a node from a second copy of the weights.
  constexpr std::array<std::string_view, 4> kOthers = {"infinity", "nvme", "zero++", "mics"};
  if (has_any(name, kOthers)) return false;
  constexpr std::array<std::string_view, 5> kFirst = {"zero1", "stage1", "distributedoptimizer",
                                                      "distopt", "zero2like"};
  constexpr std::array<std::string_view, 3> kSecond = {"zero2", "stage2", "shardgradop"};
  constexpr std::array<std::string_view, 6> kThird = {"zero3", "stage3",      "fullshard",
                                                      "fsdp",  "hybridshard", "hsdp"};
  constexpr std::array<std::string_view, 4> kUnsharded = {"ddp", "noshard", "zero0", "stage0"};
  // FSDP that keeps weights after the forward pass and sums gradients over micro-batches before it
  // reduces them ("ZeRO-2-like") communicates as ZeRO-1 does (Llama 3 report, section 3.3.2).
  if (has_any(name, kFirst)) {
    zero = Zero::optimizer;
  } else if (has_any(name, kSecond) || name == "zerooffload") {  // Ren et al. 2021.
    zero = Zero::gradients;
  } else if (has_any(name, kThird)) {
    zero = Zero::parameters;
  } else if (is_any(name, kOff) || has_any(name, kUnsharded)) {
    zero = Zero::none;
  } else {
    return false;
  }
  offload_optimizer = contains(name, "offload") && !contains(name, "offload=false");
  return true;
}

bool read_recompute(const std::string& text, Recompute& recompute) {
  const std::string name = plain(text);
  if (name.empty()) return true;
  // Of some layers or operators alone.
  constexpr std::array<std::string_view, 3> kParts = {"perop", "partial", "block"};
  if (has_any(name, kParts)) return false;
  constexpr std::array<std::string_view, 3> kScores = {"selective", "coreattn", "coreattention"};
  constexpr std::array<std::string_view, 3> kAll = {"checkpointing", "activationcheckpointing",
                                                    "gradientcheckpointing"};
  if (contains(name, "full") || is_any(name, kOn) || is_any(name, kAll)) {
    recompute = Recompute::full;
  } else if (has_any(name, kScores)) {
    recompute = Recompute::selective;
  } else if (contains(name, "none") || is_any(name, kOff)) {
    recompute = Recompute::none;
  } else {
    return false;
  }
  return true;
}

bool recomputes_every_second(const std::string& text) {
  const std::string name = plain(text);
  return contains(name, "selective") && contains(name, "perop");
}

bool read_precision(const std::string& text, Precision& precision) {
  const std::string name = plain(text);
  if (name.empty()) return true;
  constexpr std::array<std::string_view, 2> kEight = {"fp8", "float8"};
  constexpr std::array<std::string_view, 2> kFour = {"fp4", "float4"};
  constexpr std::array<std::string_view, 2> kBrain = {"bf16", "bfloat16"};
  constexpr std::array<std::string_view, 3> kHalf = {"fp16", "float16", "half"};
  constexpr std::array<std::string_view, 4> kMixed = {"mixed", "amp", "mixedprecision", "16mixed"};
  const bool brain = has_any(name, kBrain);
  const bool half = !brain && (has_any(name, kHalf) || is_any(name, kMixed));
  if (half) {
    precision.matmul = precision.activation = precision.weight = Dtype::f16;
  }
  // Training in 8 bits or fewer is GEMMs in these and the rest in 16 bits: "fp8/bf16" says both.
  if (has_any(name, kEight)) {
    precision.matmul = Dtype::f8;
  } else if (has_any(name, kFour)) {
    precision.matmul = Dtype::f4;
  } else if (brain || half) {
    return true;
  } else if (contains(name, "tf32") || contains(name, "fp32") || contains(name, "float32")) {
    precision.matmul = contains(name, "tf32") ? Dtype::tf32 : Dtype::f32;
    precision.activation = precision.weight = Dtype::f32;
    precision.optimizer_bytes_per_parameter = 8;
  } else {
    return false;
  }
  return true;
}

bool read_schedule(const std::string& text, ScheduleKind& schedule) {
  const std::string name = plain(text);
  if (name.empty() || is_any(name, kOff)) return true;
  constexpr std::array<std::string_view, 11> kOthers = {
      "zb",      "zerobubble", "dualpipe",      "vhalf",        "vmin", "vschedule",
      "chimera", "hanayo",     "bidirectional", "pipedream2bw", "async"};
  if (has_any(name, kOthers)) return false;
  if (contains(name, "interleav") || contains(name, "1f1bi") || contains(name, "virtual")) {
    schedule = ScheduleKind::interleaved;
  } else if (contains(name, "1f1b") || contains(name, "dapple") ||
             contains(name, "pipedreamflush")) {
    schedule = ScheduleKind::one_f_one_b;
  } else if (contains(name, "gpipe") || contains(name, "afab") || name == "fillanddrain") {
    schedule = ScheduleKind::gpipe;
  } else {
    return false;
  }
  return true;
}

}  // namespace braid
