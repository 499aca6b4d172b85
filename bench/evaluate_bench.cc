// How long one stated configuration takes on 131,072 H100, for every model of the zoo in every form
// below that it allows: reading the model, evaluating, and the same without verify(). Prints a row
// a model, its slowest form, then median and worst. Arguments: devices (131072), repeats (5).

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/evaluate/stated_plan.h"
#include "braid/frontend/model.h"
#include "braid/graph/working_precision.h"
#include "braid/planners/registry.h"
#include "braid/planners/trainer_choice.h"
#include "braid/profile/precision.h"

namespace braid {
namespace {

/// The least of several runs, ms.
double least_ms(int repeats, const std::function<void()>& run) {
  double least = 1e300;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  return least;
}

struct Form {
  int tp, pp, vp, micro_batches;  ///< Micro-batches of one sample.
};
// From data parallelism alone to long pipelines of many micro-batches.
constexpr Form kForms[] = {{1, 1, 1, 16},  {8, 1, 1, 16},  {8, 4, 1, 64},   {8, 8, 1, 256},
                           {8, 16, 1, 64}, {8, 8, 2, 256}, {8, 32, 1, 256}, {8, 16, 3, 1024}};

struct Figures {
  std::string model, form;
  double load_ms = 0, bare_ms = 0, checked_ms = 0;
};

/// The slowest form of a model; nullopt: it allows none.
std::optional<Figures> slowest_form(const std::string& model, const System& system, int repeats) {
  Figures slowest{model, "", 0, 0, -1};
  slowest.load_ms = least_ms(repeats, [&] { load_model(model, {}); });
  for (const Form& form : kForms) {
    Graph graph = load_model(model, {});
    Job job;
    job.precision = usual_precision(system);
    set_working_precision(graph, job.precision.activation, job.precision.weight);
    job.graph = &graph;
    StatedConfiguration stated;
    Parallelism& p = stated.parallel;
    p.tp = form.tp;
    p.pp = form.pp;
    p.vp = form.vp;
    p.dp = static_cast<int>(system.device_count / p.tp / p.pp);
    p.recompute = Recompute::full;
    p.zero = Zero::optimizer;
    if (p.vp > 1) p.schedule = ScheduleKind::interleaved;
    job.global_batch = std::int64_t{p.dp} * form.micro_batches;
    SpaceOptions space;
    const PlannerEntry& planner = find_planner("braid");
    set_trainer(choose_trainer("ideal", TrainerNeeds{&job, &system, &space, {&planner}}), system,
                job, space);
    adapt_graph(job.trainer.does, graph);
    try {
      Figures found{model,
                    fmt::format("tp {} pp {} vp {} x {}", p.tp, p.pp, p.vp, form.micro_batches),
                    slowest.load_ms, 0, 0};
      found.checked_ms =
          least_ms(repeats, [&] { stated_plan(job, system, space.can, stated, /*checked=*/true); });
      found.bare_ms = least_ms(
          repeats, [&] { stated_plan(job, system, space.can, stated, /*checked=*/false); });
      if (found.checked_ms > slowest.checked_ms) slowest = found;
    } catch (const Error&) {
      continue;  // The model does not allow it.
    }
  }
  return slowest.checked_ms < 0 ? std::nullopt : std::optional<Figures>(slowest);
}

void print_summary(const char* what, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  fmt::print("{:<28} median {:6.2f} ms, worst {:6.2f} ms\n", what, values[values.size() / 2],
             values.back());
}

void run(std::int64_t devices, int repeats) {
  const System system = load_system("dgx-h100:" + std::to_string(devices));
  fmt::print("{:<30}{:>22}{:>10}{:>14}{:>10}\n", "model", "slowest form", "read ms", "evaluate ms",
             "checked");
  std::vector<double> bare, checked, whole;
  for (const ZooEntry& entry : zoo_models()) {
    const std::string model = entry.name;
    const std::optional<Figures> found = slowest_form(model, system, repeats);
    if (!found) {
      fmt::print("{:<30}{:>22}\n", model, "none of the forms");
      continue;
    }
    fmt::print("{:<30}{:>22}{:>10.2f}{:>14.2f}{:>10.2f}\n", found->model, found->form,
               found->load_ms, found->bare_ms, found->checked_ms);
    bare.push_back(found->bare_ms);
    checked.push_back(found->checked_ms);
    whole.push_back(found->load_ms + found->checked_ms);
  }
  print_summary("without verify()", bare);
  print_summary("evaluated and verified", checked);
  print_summary("with reading the model", whole);
}

}  // namespace
}  // namespace braid

int main(int count, char** arguments) {
  const auto number = [&](int at, long otherwise) {
    return at < count ? std::strtol(arguments[at], nullptr, 10) : otherwise;
  };
  braid::run(number(1, 131072), static_cast<int>(number(2, 5)));
}
