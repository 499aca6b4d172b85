#include "braid/cli/stated_options.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/cli/count_option.h"
#include "braid/cli/text_option.h"
#include "braid/plan/names.h"

namespace braid {
namespace {

std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == between) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// "20,21x2,20" as 20, 21, 21, 20.
std::vector<std::int64_t> parse_layout(const std::string& text) {
  constexpr std::int64_t kMost = 1 << 16;
  std::vector<std::int64_t> counts;
  for (const std::string& part : split(text, ',')) {
    const std::vector<std::string> factors = split(part, 'x');
    if (factors.size() > 2) {
      throw Error(Where{"", 0, "--layout"}, in_quotes(part) + " is no number of layers",
                  "write 20, or 20x3 for three chunks of 20");
    }
    const std::int64_t layers = parse_count("--layout", factors.front(), 0, kMost);
    const std::int64_t times =
        factors.size() == 2 ? parse_count("--layout", factors.back(), 1, kMost) : 1;
    counts.insert(counts.end(), static_cast<std::size_t>(times), layers);
  }
  return counts;
}

void set_offload(const std::string& text, Parallelism& parallel) {
  if (text.empty() || text == "none") return;
  for (const std::string& part : split(text, ',')) {
    if (part == "optimizer") {
      parallel.offload_optimizer = true;
    } else if (part == "weights") {
      parallel.offload_weights = true;
    } else if (part == "activations") {
      parallel.offload_activations = true;
    } else {
      throw Error(Where{"", 0, "--offload"}, in_quotes(part) + " cannot be moved to the host",
                  "name optimizer, weights and activations, separated by commas, or none");
    }
  }
}

std::vector<Axis> parse_order(const std::string& text) {
  std::vector<Axis> order;
  for (const std::string& part : split(text, '-')) {
    const std::optional<Axis> axis = parse_axis(part);
    if (!axis || std::find(order.begin(), order.end(), *axis) != order.end()) order.clear();
    if (!axis) break;
    order.push_back(*axis);
  }
  if (order.size() != 4) {
    throw Error(Where{"", 0, "--order"}, in_quotes(text) + " is no order of the axes",
                "write them from the innermost outwards, such as tp-cp-dp-pp");
  }
  return order;
}

}  // namespace

void add_stated_options(Verb& verb, StatedOptions& options) {
  add_text(verb, "--layout", options.layout,
           "Transformer blocks, or layers, of each stage (with --vp of each chunk) in model order: "
           "20,21x2,19");
  add_text(verb, "--offload", options.offload,
           "What is kept in host memory: optimizer, weights, activations, separated by commas");
  add_text(verb, "--order", options.order,
           "Axes from neighbouring devices outwards (default: tp-cp-dp-pp)");
}

StatedConfiguration stated_configuration(const JobOptions& job, const StatedOptions& options,
                                         const TrainerUsual& usual, const Graph& graph,
                                         std::vector<std::string>& not_given) {
  StatedConfiguration stated;
  Parallelism& p = stated.parallel;
  const auto degree = [&](const char* name, int given, int& value) {
    value = given > 0 ? given : 1;
    if (given == 0) not_given.push_back(fmt::format("{}: 1", name));
  };
  degree("--tp", job.tp, p.tp);
  degree("--pp", job.pp, p.pp);
  p.dp = job.dp;
  p.cp = std::max(1, job.cp);
  p.ep = std::max(1, job.ep);
  p.vp = std::max(1, job.vp);
  degree("--micro-batch", job.micro_batch, p.micro_batch);
  const auto by_trainer = [&](const char* name, std::string_view value) {
    not_given.push_back(fmt::format("{}: {}, as the trainer usually has it", name, value));
  };
  p.sequence_parallel = p.tp > 1 && (job.sequence_parallel.empty() ? usual.sequence_parallel
                                                                   : job.sequence_parallel == "on");
  if (p.tp > 1 && job.sequence_parallel.empty()) {
    by_trainer("--sequence-parallel", p.sequence_parallel ? "on" : "off");
  }
  p.recompute = job.recompute.empty() ? usual.recompute : *parse_recompute(job.recompute);
  if (job.recompute.empty()) by_trainer("--recompute", name_of(p.recompute));
  p.zero = job.zero >= 0 ? static_cast<Zero>(job.zero) : usual.zero;
  if (job.zero < 0) by_trainer("--zero", name_of(p.zero));
  p.schedule = p.vp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
  if (!job.schedule.empty()) p.schedule = *parse_schedule(job.schedule);
  p.whole_experts = usual.whole_experts && p.ep > 1;
  set_offload(options.offload, p);
  if (!options.order.empty()) p.order = parse_order(options.order);
  if (!options.layout.empty()) {
    stated.layers = layers_of_counts(parse_layout(options.layout), graph, std::int64_t{p.pp} * p.vp,
                                     "--layout");
  }
  return stated;
}

}  // namespace braid
