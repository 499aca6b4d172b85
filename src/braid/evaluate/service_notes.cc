#include "braid/evaluate/service_notes.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/and_list.h"
#include "braid/base/dtype.h"
#include "braid/base/quantity.h"
#include "braid/kernels/number_format.h"

namespace braid {
namespace {

/// Which of the plan's numbers are others than the model's; empty: none.
std::string changed_numbers(const ServingFormat& format, const WorkerPlan& of,
                            const LaunchNames& names) {
  std::string changed = changes_weights(of, names) ? "weights" : "";
  if (format.cache != names.published.cache) changed += changed.empty() ? "caches" : " and caches";
  return changed;
}

std::string choice_text(const ServingOutcome& outcome, const ServingJob& job,
                        const std::string& chosen) {
  const auto is_served = [&](const ServingFormat& format) {
    return std::none_of(outcome.unserved.begin(), outcome.unserved.end(),
                        [&](const UnservedFormat& each) { return each.name == format.name; });
  };
  std::vector<std::string> served;
  for (const ServingFormat& each : job.formats) {
    if (is_served(each)) served.push_back(each.name);
  }
  std::string text = served.size() > 1
                         ? fmt::format("Precision: {} was chosen of {}, as it serves most", chosen,
                                       and_list(served))
                         : fmt::format("Precision: {}, the only one that can be served", chosen);
  const std::string unserved = unserved_text(outcome.unserved);
  return text + (unserved.empty() ? ". " : fmt::format(" ({}). ", unserved));
}

/// Of the precision that was chosen, where it is not the model's.
std::string precision_note(const ServingOutcome& outcome, const ServingJob& job,
                           const LaunchNames& names) {
  const WorkerPlan& of = outcome.plan->decode;
  const std::string changed = changed_numbers(of.format, of, names);
  if (changed.empty()) return "";
  const std::string so = choice_text(outcome, job, of.format.name);
  if (of.format.name == "bf16") {
    return so + fmt::format("The model is published in {}: a checkpoint in bf16 is to be made.",
                            names.published.name);
  }
  return so + fmt::format(
                  "The model is published in {0}: other {1} change its answers. Judge their "
                  "quality, or plan with --precision {0}.",
                  names.published.name, changed);
}

/// In what a chip's kernels multiply weights of a format: MXFP4 with activations of 16 bits or,
/// where the chip has such kernels of experts, of 8.
std::string multiplied_in(const KernelFormat& format, const ServingJob& job) {
  std::string text(name_of(format.multiplied));
  if (format.name != "w4a16_mxfp4") return text;
  const auto& experts = job.kernels->operations.experts;
  const bool narrower = std::any_of(experts.begin(), experts.end(), [](const auto& entry) {
    return entry.format.starts_with("w4a8_mxfp4_mxfp8");
  });
  return narrower ? text + " or fp8" : text;
}

/// Of parts whose weights are narrower than what they are multiplied in; one line for each format.
std::vector<std::string> stored_notes(const ServingFormat& format, const ServingJob& job) {
  const std::vector<ServedLayer>& layers = job.model->layers;
  const auto any = [&](double ServedLayer::*size) {
    return std::any_of(layers.begin(), layers.end(),
                       [&](const ServedLayer& layer) { return layer.*size > 0; });
  };
  std::vector<std::pair<std::string, const char*>> parts = {{format.attention, "attention"}};
  if (any(&ServedLayer::inner) || any(&ServedLayer::shared_inner)) {
    parts.emplace_back(format.dense, "dense networks");
  }
  if (any(&ServedLayer::experts)) parts.emplace_back(format.experts, "experts");
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& name = parts[i].first;
    const KernelFormat kept = *kernel_format(name);
    const auto same = [&](const auto& part) { return part.first == name; };
    const bool said =
        std::any_of(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i), same);
    if (said || kept.weight_bytes >= bytes_per_element(kept.multiplied)) continue;
    std::vector<std::string> alike;
    for (const auto& [other, part] : parts) {
      if (other == name) alike.emplace_back(part);
    }
    constexpr double kBitsOfByte = 8;
    notes.push_back(fmt::format("Weights of {} are kept in {:.0f} bits and multiplied in {}.",
                                and_list(alike), std::floor(kBitsOfByte * kept.weight_bytes),
                                multiplied_in(kept, job)));
  }
  return notes;
}

}  // namespace

std::vector<std::string> service_notes(const ServingOutcome& outcome, const ServingJob& job,
                                       const LaunchNames& names, bool asked) {
  std::vector<std::string> notes;
  if (!asked) {
    std::string note = precision_note(outcome, job, names);
    if (!note.empty()) notes.push_back(std::move(note));
  }
  for (std::string& note : stored_notes(outcome.plan->decode.format, job)) {
    notes.push_back(std::move(note));
  }
  return notes;
}

std::string unserved_text(const std::vector<UnservedFormat>& unserved) {
  std::vector<std::string> texts;
  texts.reserve(unserved.size());
  for (const UnservedFormat& each : unserved) {
    texts.push_back(each.name + ": " +
                    (each.lacks.empty()
                         ? fmt::format("weights and one request lack {} GiB of a GPU",
                                       four_figures(each.missing_bytes / kGiB))
                         : each.lacks));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace braid
