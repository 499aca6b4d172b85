#include "braid/cli/serving_options.h"

#include <algorithm>
#include <cstdlib>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/cli/count_option.h"
#include "braid/cli/text_option.h"

namespace braid {
namespace {

constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;

double target_of(const std::string& option, const std::string& text) {
  const std::optional<double> seconds = parse_quantity(text, Unit::seconds);
  if (!seconds && parse_quantity(text + "s", Unit::seconds)) {
    throw Error(Where{"", 0, option}, "'" + text + "' has no unit",
                "write " + text + "s or " + text + "ms");
  }
  if (!seconds || !(*seconds > 0)) {
    throw Error(Where{"", 0, option}, "'" + text + "' is no time above zero", "such as 2s or 50ms");
  }
  return *seconds;
}

}  // namespace

double rate_of(const ServingOptions& options) {
  if (options.rate.empty()) return 0;
  std::string text = options.rate;
  const std::string given = text;
  if (text.ends_with("/s")) text.resize(text.size() - 2);
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(rate > 0) || rate > 1e9) {
    throw Error(Where{"", 0, "--rate"}, "'" + given + "' is no rate of requests above zero",
                "such as 20/s");
  }
  return rate;
}

DraftOffer offer_of(const ServingOptions& options, const ServedModel* model) {
  if (model == nullptr) {
    if (options.acceptance.empty() && options.draft_tokens == 0) return {};
    throw Error(Where{"", 0, options.acceptance.empty() ? "--draft-tokens" : "--acceptance"},
                "there is no draft model", "name one with --draft");
  }
  if (options.acceptance.empty()) {
    throw Error(Where{"", 0, "--draft"}, "how often its tokens are accepted is not known",
                "say it with --acceptance, such as 0.7");
  }
  char* end = nullptr;
  const double acceptance = std::strtod(options.acceptance.c_str(), &end);
  if (end == options.acceptance.c_str() || *end != '\0' || !(acceptance >= 0 && acceptance <= 1)) {
    throw Error(Where{"", 0, "--acceptance"},
                "'" + options.acceptance + "' is no share from 0 to 1", "such as 0.7");
  }
  return {model, acceptance, options.draft_tokens};
}

void take_options(const ServingOptions& options, ServingJob& job) {
  job.ttft_s = target_of("--ttft", options.ttft);
  job.tpot_s = target_of("--tpot", options.tpot);
  job.input_tokens = static_cast<double>(options.input_len);
  job.output_tokens = static_cast<double>(options.output_len);
  job.cached_share = static_cast<double>(std::max<std::int64_t>(options.cached, 0)) / 100;
}

ChipKernels served_kernels(const System& system) {
  if (system.groups.size() > 1) {
    throw Error(Where{"", 0, "--cluster"},
                "serving is planned for one kind of device, and it has " +
                    std::to_string(system.groups.size()),
                "plan for the devices of each kind by themselves and add up what they serve");
  }
  if (!is_homogeneous(system)) {
    throw Error(Where{"", 0, "--cluster"}, "serving is not planned for a matrix of bandwidths",
                "describe the network by levels");
  }
  const Chip& chip = system.groups.front().chip;
  std::optional<ChipKernels> kernels = load_kernels(chip);
  if (!kernels) {
    throw Error(Where{"", 0, "--cluster"}, "no kernels of " + chip.name + " were measured",
                "docs/kernels.md lists the chips whose kernels were");
  }
  return *std::move(kernels);
}

std::vector<VerbOption> add_serving_options(Verb& verb, ServingOptions& o,
                                            const std::string& heading) {
  std::vector<VerbOption> all = {
      add_count(verb, "--input-len", o.input_len, 1, kMostTokens, "Tokens of a request's input"),
      add_count(verb, "--output-len", o.output_len, 1, kMostTokens, "Tokens of a request's output"),
      add_text(verb, "--ttft", o.ttft, "Target: mean time to the first token").show_default(o.ttft),
      add_text(verb, "--tpot", o.tpot, "Target: mean time per output token after the first")
          .show_default(o.tpot),
      add_text(verb, "--rate", o.rate, "Also tell the GPUs for so many requests a second: 20/s"),
      add_count(verb, "--cached", o.cached, 0, 99, "Percent of the input that a prefix cache has"),
      add_text(verb, "--draft", o.draft, "Draft model for speculative decoding"),
      add_text(verb, "--acceptance", o.acceptance,
               "Chance that a drafted token is accepted where those before it were"),
      add_count(verb, "--draft-tokens", o.draft_tokens, 1, 64,
                "Tokens that are drafted at once; else as many as are best, or none")};
  if (!heading.empty()) {
    for (const VerbOption& option : all) option.group(heading);
  }
  return all;
}

}  // namespace braid
