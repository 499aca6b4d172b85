#include "round_trip.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/graph/working_precision.h"
#include "braid/plan/direct_stages.h"
#include "braid/plan/names.h"
#include "braid/plan/trainer_file.h"
#include "braid/planners/trainer_choice.h"
#include "braid/profile/trainer_behaviour.h"
#include "braid/trainers/registry.h"

namespace braid::test {
namespace {

const Graph& cached_model(const std::string& name, std::int64_t seq_len) {
  static std::map<std::pair<std::string, std::int64_t>, Graph> known;
  const auto key = std::make_pair(name, seq_len);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, load_model(name, {.seq_len = seq_len, .dims = {}})).first->second;
}

/// A job of a trainer, as the program makes it from its options.
struct TrainerJob {
  Graph graph;
  System system;
  Job job;
  SpaceOptions space;
};

TrainerJob trainer_job(Graph graph, const RoundTripCase& one, const Precision& precision,
                       const std::string& trainer, const Import* run = nullptr) {
  TrainerJob made{std::move(graph), load_system(one.cluster), {}, {}};
  made.job.precision = precision;
  made.job.global_batch = one.global_batch;
  made.job.model_source = one.model;
  set_working_precision(made.graph, precision.activation, precision.weight);
  made.job.graph = &made.graph;
  set_trainer(load_trainer(trainer), made.system, made.job, made.space);
  if (run != nullptr && run->trainer == trainer) take_behaviour(*run, made.job.trainer.does);
  adapt_graph(made.job.trainer.does, made.graph);
  return made;
}

StatedPlan planned(TrainerJob& made, const StatedConfiguration& stated) {
  made.job.graph = &made.graph;
  return stated_plan(made.job, made.system, made.space.can, stated, false);
}

std::string words_of(const Parallelism& p) {
  std::string text = fmt::format("tp {} pp {} dp {} cp {} ep {} vp {} batch {}x{}", p.tp, p.pp,
                                 p.dp, p.cp, p.ep, p.vp, p.micro_batch, p.num_micro_batches);
  if (p.sequence_parallel) text += " sp";
  if (p.whole_experts) text += " whole experts";
  if (p.offload_optimizer) text += " off opt";
  if (p.offload_activations) text += " off act";
  text += fmt::format(" {} {} {}", name_of(p.recompute), name_of(p.zero), name_of(p.schedule));
  for (const Axis axis : p.order) text += " " + std::string(name_of(axis));
  return text;
}

int degree_of(Axis axis, const Parallelism& p) {
  return axis == Axis::tp ? p.tp : axis == Axis::cp ? p.cp : axis == Axis::dp ? p.dp : p.pp;
}

/// Without what says nothing.
Parallelism in_short(Parallelism p) {
  std::erase_if(p.order, [&p](Axis axis) { return degree_of(axis, p) == 1; });
  if (p.pp == 1) p.schedule = ScheduleKind::one_f_one_b;
  p.whole_experts = p.whole_experts && p.ep > 1 && p.tp > 1;
  p.sequence_parallel = p.sequence_parallel && p.tp > 1;
  return p;
}

/// What the program evaluates where a run is read from a file.
StatedConfiguration read_configuration(const Import& run, const Graph& graph) {
  StatedConfiguration stated;
  stated.parallel = run.parallel;
  const std::int64_t chunks = std::int64_t{run.parallel.pp} * run.parallel.vp;
  if (std::ssize(run.chunk_blocks) == chunks) {
    stated.layers = layers_of_counts(run.chunk_blocks, graph, chunks, "--from");
  }
  return stated;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string difference_of(const StatedPlan& before, const StatedPlan& after) {
  const Plan& a = before.candidate.plan;
  const Plan& b = after.candidate.plan;
  if (in_short(a.parallel) != in_short(b.parallel)) {
    return fmt::format("the configuration: {} became {}", words_of(a.parallel),
                       words_of(b.parallel));
  }
  if (layer_counts(a) != layer_counts(b)) return "the layers of the chunks";
  if (!(a.precision == b.precision)) return "the precision";
  const Metrics& x = before.candidate.metrics;
  const Metrics& y = after.candidate.metrics;
  if (x.iteration_time_s != y.iteration_time_s) {
    return fmt::format("the time: {} s became {} s", x.iteration_time_s, y.iteration_time_s);
  }
  if (x.peak_memory_bytes != y.peak_memory_bytes) {
    return fmt::format("the memory: {} B became {} B", x.peak_memory_bytes, y.peak_memory_bytes);
  }
  return "";
}

}  // namespace

namespace {

bool says(const Export& written, const std::string& words) {
  return std::any_of(
      written.warnings.begin(), written.warnings.end(),
      [&](const std::string& text) { return text.find(words) != std::string::npos; });
}

/// The configuration that the file has, where its warnings say that it is another.
StatedConfiguration as_written(StatedConfiguration stated, const Export& written) {
  if (says(written, "order of ranks")) stated.parallel.order = Parallelism{}.order;
  return stated;
}

/// Whether the file has all sizes of the model, and no part of it is without an argument.
bool says_model(const Import& run, const Export& written) {
  return run.shape && run.shape->vocab > 0 && !says(written, "no argument");
}

/// Whether Accelerate's file does: it is FSDP's there.
bool says_recomputation(const Parallelism& p) {
  return p.zero != Zero::none || p.tp > 1 || p.cp > 1;
}

/// With what the target's file cannot say, as options beside it would.
StatedConfiguration with_options(StatedConfiguration read, const Plan& plan,
                                 const std::string& target) {
  if (target == "accelerate") {
    read.parallel.micro_batch = plan.parallel.micro_batch;
    if (!says_recomputation(plan.parallel)) read.parallel.recompute = plan.parallel.recompute;
  }
  if (target != "deepspeed") return read;
  read.parallel.pp = plan.parallel.pp;
  read.parallel.recompute = plan.parallel.recompute;
  if (plan.parallel.pp > 1) read.parallel.ep = plan.parallel.ep;
  read.layers = layer_counts(plan);
  return read;
}

}  // namespace

RoundTripOutcome round_trip(const RoundTripCase& one, const std::string& trainer,
                            const std::string& target) {
  std::optional<StatedPlan> before;
  Export written;
  try {
    TrainerJob made = trainer_job(cached_model(one.model, one.seq_len), one,
                                  parse_precision(one.precision), trainer);
    before = planned(made, one.stated);
    written = export_plan(before->candidate.plan, target);
    if (!written.warnings.empty()) before = planned(made, as_written(one.stated, written));
  } catch (const Error& error) {
    return {error.what(), ""};
  }
  try {
    const Import run = import_run(written.text, "written by export");
    if (!run.unknown.empty()) return {"", "arguments not known: " + joined(run.unknown)};
    if (run.devices != 0 && run.devices != before->candidate.plan.parallel.devices()) {
      return {"", fmt::format("the devices: {}", run.devices)};
    }
    RoundTripCase again = one;
    if (run.global_batch != 0) again.global_batch = run.global_batch;
    if (run.accumulation != 0) {
      again.global_batch =
          run.accumulation * run.parallel.micro_batch * before->candidate.plan.parallel.dp;
    }
    if (run.seq_len != 0) again.seq_len = run.seq_len;
    const auto difference = [&](const Graph& graph) {
      TrainerJob made =
          trainer_job(graph, again, run.precision.value_or(Precision{}), trainer, &run);
      const StatedPlan after = planned(
          made, with_options(read_configuration(run, made.graph), before->candidate.plan, target));
      return difference_of(*before, after);
    };
    const std::string found = difference(cached_model(one.model, again.seq_len));
    if (!found.empty() || !says_model(run, written)) return {"", found};
    const std::string alone =
        difference(graph_of_shape(*run.shape, {.file = one.model, .seq_len = again.seq_len}));
    return {"", alone.empty() ? "" : "without the model's name: " + alone};
  } catch (const Error& error) {
    return {"", std::string("reading it: ") + error.what()};
  }
}

namespace {

/// Degrees and the like by which the cases of a model differ.
std::vector<Parallelism> forms() {
  const auto make = [](int tp, int pp, int cp, int ep) {
    Parallelism p;
    p.tp = tp;
    p.pp = pp;
    p.cp = cp;
    p.ep = ep;
    p.dp = 0;
    p.sequence_parallel = tp > 1;
    p.zero = Zero::optimizer;
    return p;
  };
  std::vector<Parallelism> all = {make(1, 1, 1, 1), make(2, 2, 1, 1), make(2, 1, 2, 1),
                                  make(1, 2, 2, 1), make(2, 2, 1, 2), make(1, 4, 1, 4),
                                  make(4, 1, 1, 4), make(2, 3, 1, 1)};
  all[1].recompute = Recompute::selective;
  all[2].recompute = Recompute::full;
  all[3].order = {Axis::tp, Axis::cp, Axis::pp, Axis::dp};
  all[4].whole_experts = true;
  all[5].vp = 2;
  all[5].schedule = ScheduleKind::interleaved;
  all[6].offload_optimizer = true;
  all[7].zero = Zero::none;
  all.push_back(make(2, 1, 1, 1));
  all.back().zero = Zero::parameters;
  all.back().sequence_parallel = false;
  all.back().micro_batch = 2;
  return all;
}

}  // namespace

std::vector<RoundTripCase> round_trip_cases() {
  std::vector<RoundTripCase> cases;
  for (const ZooEntry& model : zoo_models()) {
    std::size_t number = 0;
    for (const Parallelism& form : forms()) {
      const bool thirds = form.pp == 3;
      for (const char* cluster : {"dgx-h100", "p3.8xlarge", "gb200-nvl72"}) {
        const bool old = cluster[0] == 'p';
        RoundTripCase one;
        one.model = model.name;
        one.cluster = std::string(cluster) + (thirds ? ":12" : ":16");
        one.precision = old ? "fp16" : number % 3 == 1 ? "fp8" : number % 7 == 5 ? "tf32" : "bf16";
        one.stated.parallel = form;
        one.global_batch = thirds ? 96 : 64;
        one.seq_len = 1024;
        cases.push_back(std::move(one));
        ++number;
      }
    }
  }
  return cases;
}

std::string name_of(const RoundTripCase& one) {
  return fmt::format("{} on {} in {}: {}", one.model, one.cluster, one.precision,
                     words_of(one.stated.parallel));
}

}  // namespace braid::test
