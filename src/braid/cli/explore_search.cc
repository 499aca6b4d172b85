#include "braid/cli/explore_search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/cli/point_json.h"
#include "braid/cli/verb.h"
#include "braid/cli/written.h"
#include "braid/explore/findings_csv.h"
#include "braid/explore/findings_table.h"
#include "braid/explore/search_page.h"
#include "braid/explore/search_text.h"
#include "braid/explore/sweep.h"
#include "braid/explore/system_search.h"
#include "braid/plan/plan_json.h"
#include "braid/report/table.h"

namespace braid {
namespace {

void write_plans(const Space& space, const SystemSearchResult& found, const std::string& folder) {
  for (const PlannerSearch& search : found.searches) {
    for (const std::size_t number : best_points(space, search)) {
      const PlannedPoint point = plan_point(space, point_of(space, number));
      if (!point.plan) continue;
      write_file(folder + "/" + plan_file_name(space, number), to_text(to_json(*point.plan)));
    }
  }
}

void write_search(const Space& space, const SystemSearchResult& found, const std::string& folder) {
  std::vector<std::size_t> best;
  for (const PlannerSearch& search : found.searches) {
    const std::vector<std::size_t> numbers = best_points(space, search);
    best.insert(best.end(), numbers.begin(), numbers.end());
  }
  write_file(folder + "/points.csv", points_csv(space, found.results, found.planned));
  write_file(folder + "/best.csv", points_csv(space, found.results, best));
  write_file(folder + "/index.html", search_page(space, found));
}

Json search_json(const Space& space, const SystemSearchResult& found, const PlannerSearch& search,
                 bool plans) {
  Json json = Json::object();
  json["planner"] = space.axes[kMethodAxis].values[search.planner];
  json["systems"] = search.systems;
  json["planned"] = search.planned;
  json["bounded"] = search.bounded;
  const bool none = search.best.empty();
  json["status"] =
      name_of(search.open_value > 0 ? (none ? Status::budget_exhausted : Status::feasible)
                                    : (none ? Status::infeasible : Status::optimal));
  if (search.open_value > 0 && std::isfinite(search.open_value)) json["bound"] = search.open_value;
  json["best"] = Json::array();
  for (const FoundSystem& system : search.best) {
    Json entry = Json::object();
    entry["value"] = system.value;
    entry["points"] = Json::array();
    for (std::size_t w = 0; w < space.units.size(); ++w) {
      const std::size_t number = point_number(space, system.place, w, search.planner);
      entry["points"].push_back(point_json(space, found.results[number], number, plans));
    }
    json["best"].push_back(std::move(entry));
  }
  return json;
}

void print_search(const Space& space, const SystemSearchResult& found,
                  const PlannerSearch& search) {
  fmt::print("\n{}\n", search_text(space, search));
  if (search.best.empty()) return;
  if (space.units.size() > 1) fmt::print("\n{}", text_table(systems_table(space, search)));
  const std::vector<std::size_t> numbers = best_points(space, search);
  // Of several workloads the points of the best system alone.
  const std::size_t shown = space.units.size() > 1 ? space.units.size() : numbers.size();
  const std::span points(numbers.data(), shown);
  fmt::print("\n{}{}", text_table(points_table(space, found.results, points)),
             points_legend(space, found.results, points));
}

Json hysteresis_json(const Space& space, const HysteresisRule& rule,
                     const HysteresisFinding& finding) {
  Json json = Json::object();
  json["buckets"] = rule.buckets;
  json["walks"] = finding.walks;
  json["architectures"] = finding.architectures;
  json["least_area_um2"] = finding.least_area_um2;
  if (!(finding.value > 0)) return json;
  json["system"] = system_name(space, finding.system);
  json["value"] = finding.value;
  return json;
}

Json joint_json(const Space& space, const OneAfterOther& other) {
  Json json = Json::object();
  if (other.form.empty() || !(other.value > 0)) return json;
  json["reference_plan"] = other.form;
  json["system"] = system_name(space, other.system);
  json["fixed_value"] = other.fixed_value;
  json["value"] = other.value;
  return json;
}

int exit_status(const SystemSearchResult& found) {
  bool open = false;
  for (const PlannerSearch& search : found.searches) {
    if (!search.best.empty()) return kFound;
    open = open || search.open_value > 0;
  }
  return open ? kExhausted : kInfeasible;
}

}  // namespace

int run_search(const Space& space, PointStore* store, const ExploreSearchOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Clock::time_point shown = start;
  const SystemSearchResult found =
      search_systems(space, store, [&](std::size_t planned, std::size_t bounded) {
        const Clock::time_point now = Clock::now();
        if (!options.progress || now - shown < std::chrono::milliseconds(200)) return;
        shown = now;
        fmt::print(stderr, "\r{} systems planned, {} families bounded", planned, bounded);
      });
  if (options.progress) fmt::print(stderr, "\n");
  const double wall_s = std::chrono::duration<double>(Clock::now() - start).count();
  if (!options.out.empty()) write_search(space, found, options.out);
  if (!options.plans.empty()) write_plans(space, found, options.plans);
  std::vector<OneAfterOther> others;
  std::vector<HysteresisFinding> walked;
  const HysteresisRule rule{.buckets = static_cast<std::size_t>(options.hysteresis)};
  for (const PlannerSearch& search : found.searches) {
    if (options.joint) others.push_back(choose_one_after_other(space, search.planner));
    if (options.hysteresis > 0) {
      walked.push_back(search_by_hysteresis(space, search.planner, rule));
    }
  }
  const std::vector<std::string> assumptions = best_assumptions(space, found);
  if (options.json) {
    Json json = Json::object();
    json["space"] = space.name;
    json["searches"] = Json::array();
    for (const PlannerSearch& search : found.searches) {
      json["searches"].push_back(search_json(space, found, search, !options.plans.empty()));
      Json& last = json["searches"].back();
      if (options.joint) last["one_after_other"] = joint_json(space, others[search.planner]);
      if (options.hysteresis > 0) {
        last["hysteresis"] = hysteresis_json(space, rule, walked[search.planner]);
      }
    }
    json["assumptions"] = assumptions;
    json["search"] = {{"wall_s", wall_s}, {"resumed", found.resumed}};
    fmt::print("{}", to_text(json));
  } else {
    fmt::print("{}\n", space.name);
    if (found.resumed > 0) fmt::print("{} points were known from before.\n", found.resumed);
    for (const PlannerSearch& search : found.searches) {
      print_search(space, found, search);
      if (options.joint) fmt::print("\n{}\n", joint_text(space, search, others[search.planner]));
      if (options.hysteresis > 0) {
        fmt::print("\n{}\n", hysteresis_text(space, search, rule, walked[search.planner]));
      }
    }
    if (!assumptions.empty()) fmt::print("\nAssumed:\n");
    for (const std::string& line : assumptions) fmt::print("  {}\n", line);
    say_written_below({{"Points and page", options.out,
                        fmt::format("open {}/index.html in a browser", options.out)},
                       {"Plans", options.plans}});
  }
  return exit_status(found);
}

}  // namespace braid
