#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/folder.h"
#include "braid/base/json.h"
#include "braid/base/parallel.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/cli/count_option.h"
#include "braid/cli/explore_search.h"
#include "braid/cli/point_json.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/cli/written.h"
#include "braid/explore/explore_page.h"
#include "braid/explore/findings.h"
#include "braid/explore/findings_csv.h"
#include "braid/explore/findings_table.h"
#include "braid/explore/heat_map.h"
#include "braid/explore/space_reader.h"
#include "braid/explore/sweep.h"
#include "braid/report/table.h"

namespace braid {
namespace {

constexpr std::size_t kMostPictured = 20'000;  ///< Points that pictures are drawn of.

struct ExploreOptions {
  std::string space, out;
  int threads = 0;
  bool joint = false;
  int hysteresis = 0;
  bool plans = false, json = false, progress = false;
};

/// All that is known of a space.
struct Findings {
  Sweep sweep;
  std::vector<std::size_t> pareto;
  std::vector<RatioFinding> ratios;
  double wall_s = 0;
};

void write_findings(const std::string& folder, const Space& space, const Findings& findings) {
  const std::vector<PointResult>& results = findings.sweep.results;
  std::vector<std::size_t> all(results.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  write_file(folder + "/points.csv", points_csv(space, results, all));
  write_file(folder + "/pareto.csv", points_csv(space, results, findings.pareto));
  write_file(folder + "/ratios.csv", ratios_csv(space, findings.ratios));
  if (results.size() > kMostPictured) return;
  write_file(folder + "/index.html",
             explore_page(space, results, findings.pareto, findings.ratios));
  const std::vector<std::string>& methods = space.axes[kMethodAxis].values;
  for (std::size_t workload = 0; workload < space.units.size(); ++workload) {
    for (std::size_t way = 0; way < methods.size(); ++way) {
      const std::string end =
          fmt::format("-{}-{}.svg", space.axes[kWorkloadAxis].values[workload], methods[way]);
      for (const SpaceFigure figure : figures_of(space)) {
        write_file(fmt::format("{}/{}{}", folder, name_of(figure), end),
                   heat_map(space, results, workload, way, figure, TitleOfMap::drawn).svg);
      }
      write_file(fmt::format("{}/breakdown{}", folder, end),
                 breakdown_map(space, results, workload, way, TitleOfMap::drawn).svg);
    }
  }
}

Json to_json(const Space& space, const Findings& findings, bool plans) {
  Json json = Json::object();
  const std::vector<PointResult>& results = findings.sweep.results;
  json["space"] = space.name;
  json["points"] = Json::array();
  for (std::size_t number = 0; number < results.size(); ++number) {
    json["points"].push_back(point_json(space, results[number], number, plans));
  }
  json["pareto"] = findings.pareto;
  json["ratios"] = Json::array();
  for (const RatioFinding& finding : findings.ratios) {
    const SpaceRatio& ratio = space.ratios[finding.ratio];
    Json entry = Json::object();
    entry["name"] = ratio.name;
    entry["of"] = name_of(ratio.figure);
    const SpaceAxis& methods = space.axes[kMethodAxis];
    if (finding.method) entry[methods.name] = methods.values[*finding.method];
    if (finding.value) entry["value"] = *finding.value;
    if (ratio.published > 0) entry["published"] = ratio.published;
    json["ratios"].push_back(std::move(entry));
  }
  json["assumptions"] = assumptions_of(results);
  json["search"] = {{"wall_s", findings.wall_s}, {"resumed", findings.sweep.resumed}};
  return json;
}

void print_ratios(const Space& space, const std::vector<RatioFinding>& findings) {
  if (findings.empty()) return;
  std::size_t width = 5;
  for (const SpaceRatio& ratio : space.ratios) width = std::max(width, ratio.name.size());
  const std::vector<std::string>& methods = space.axes[kMethodAxis].values;
  const bool published = std::any_of(space.ratios.begin(), space.ratios.end(),
                                     [](const SpaceRatio& ratio) { return ratio.published > 0; });
  fmt::print("\n{:<{}}  {:<11}", "ratio", width, "of");
  for (const std::string& way : methods) fmt::print("  {:>7}", way);
  fmt::print("{}\n", published ? fmt::format("  {:>9}", "published") : "");
  for (std::size_t i = 0; i < findings.size();) {
    const std::size_t index = findings[i].ratio;
    const SpaceRatio& ratio = space.ratios[index];
    fmt::print("{:<{}}  {:<11}", ratio.name, width, words_of(ratio.figure));
    std::size_t columns = 0;
    for (; i < findings.size() && findings[i].ratio == index; ++i, ++columns) {
      fmt::print("  {:>7}", findings[i].value ? fmt::format("{:.2f}", *findings[i].value) : "-");
    }
    for (; columns < methods.size(); ++columns) fmt::print("  {:>7}", "");
    fmt::print("{}\n", ratio.published > 0 ? fmt::format("  {:>9.2f}", ratio.published) : "");
  }
}

/// The points of a space that planners plan for, where they are few; of others the best alone.
void print_points(const Space& space, const Findings& findings) {
  constexpr std::size_t kMostRows = 40;
  const std::vector<PointResult>& results = findings.sweep.results;
  const auto points = [](std::size_t number) {
    return fmt::format("{} point{}", number, number == 1 ? "" : "s");
  };
  if (std::holds_alternative<SystemSpace>(space.points) && results.size() <= kMostRows) {
    std::vector<std::size_t> all(results.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    fmt::print("\n{}{}", text_table(points_table(space, results, all)),
               points_legend(space, results, all));
    fmt::print("\nPareto-optimal in {}:\n", compared_text(space));
    for (const std::size_t number : findings.pareto) {
      const std::string name = point_name(space, number, " ");
      fmt::print("  {}\n", name.empty() ? "the only point" : name);
    }
    return;
  }
  fmt::print("\n{}, Pareto-optimal in {}:\n", points(findings.pareto.size()), compared_text(space));
  const std::span<const std::size_t> shown(findings.pareto.data(),
                                           std::min(findings.pareto.size(), kMostRows));
  fmt::print("{}{}", text_table(points_table(space, results, shown)),
             points_legend(space, results, shown));
  if (shown.size() < findings.pareto.size()) {
    fmt::print("and {} more\n", findings.pareto.size() - shown.size());
  }
}

void print(const Space& space, const Findings& findings) {
  const std::vector<PointResult>& results = findings.sweep.results;
  const auto count = [&](Status status) {
    return std::count_if(results.begin(), results.end(),
                         [status](const PointResult& result) { return result.status == status; });
  };
  fmt::print("{}: {} point{} ({} optimal, {} with a gap, {} without a plan)\n", space.name,
             results.size(), results.size() == 1 ? "" : "s", count(Status::optimal),
             count(Status::feasible), count(Status::infeasible) + count(Status::budget_exhausted));
  if (findings.sweep.resumed > 0) fmt::print("{} of them from before.\n", findings.sweep.resumed);
  print_points(space, findings);
  print_ratios(space, findings.ratios);
  const std::vector<std::string> assumptions = assumptions_of(results);
  if (!assumptions.empty()) fmt::print("\nAssumed:\n");
  for (const std::string& line : assumptions) fmt::print("  {}\n", line);
}

void check_plans(const Space& space, const ExploreOptions& options) {
  if (options.out.empty()) {
    throw Error(Where{"", 0, "--plans"}, "needs a folder to keep plans in", "add --out DIR");
  }
  if (!std::holds_alternative<SystemSpace>(space.points)) {
    throw Error(Where{"", 0, "--plans"}, "mappings under DFModel's rules are no plans",
                "leave it out");
  }
}

void check_hysteresis(const Space& space) {
  const auto* systems = std::get_if<SystemSpace>(&space.points);
  if (systems != nullptr && systems->search && systems->architectures) return;
  throw Error(Where{"", 0, "--hysteresis"}, "is for a search over architectures",
              "add 'search: throughput' and 'architectures' to the space, or leave it out");
}

int run(const ExploreOptions& options) {
  const Space space = read_space(options.space);
  if (options.threads > 0) set_thread_count(options.threads);
  const std::string plans = options.plans ? options.out + "/plans" : "";
  if (options.plans) check_plans(space, options);
  if (options.joint && (!is_searched(space) || space.units.size() != 1)) {
    throw Error(Where{"", 0, "--joint"}, "is for a search over systems for one workload",
                "add 'search: throughput' to the space, or leave it out");
  }
  if (options.hysteresis > 0) check_hysteresis(space);
  std::optional<PointStore> store;
  if (!options.out.empty()) {
    make_folder(options.out, "give --out a folder that can be written");
    store.emplace(options.out + "/points.sqlite", columns_of(space),
                  fmt::format("braid {}\n{}", BRAID_VERSION, canonical_text(space)),
                  point_count(space));
  }
  if (options.plans) make_folder(plans, "give --out a folder that can be written");
  const bool shows_progress = options.progress || (isatty(STDERR_FILENO) != 0 && !options.json);
  const std::size_t count = point_count(space);
  const auto start = std::chrono::steady_clock::now();
  auto shown = start;
  if (is_searched(space)) {
    return run_search(
        space, store ? &*store : nullptr,
        {options.out, plans, options.joint, options.hysteresis, options.json, shows_progress});
  }
  Findings findings;
  findings.sweep = sweep_space(
      space, store ? &*store : nullptr,
      [&](std::size_t done) {
        const auto now = std::chrono::steady_clock::now();
        if (!shows_progress || (done < count && now - shown < std::chrono::milliseconds(200)))
          return;
        shown = now;
        fmt::print(stderr, "\r{} of {} points{}", done, count, done == count ? "\n" : "");
      },
      plans);
  findings.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::vector<PointResult>& results = findings.sweep.results;
  findings.pareto = pareto_points(space, results);
  findings.ratios = find_ratios(space, results);
  if (!options.out.empty()) write_findings(options.out, space, findings);
  if (options.json) {
    fmt::print("{}", to_text(to_json(space, findings, options.plans)));
  } else {
    print(space, findings);
    const bool pictured = results.size() <= kMostPictured;
    say_written_below(
        {{pictured ? "Points, page and pictures" : "Points", options.out,
          pictured ? fmt::format("open {}/index.html in a browser", options.out) : ""},
         {"Plans", plans}});
  }
  if (std::any_of(results.begin(), results.end(), is_found)) return kFound;
  const bool exhausted = std::any_of(results.begin(), results.end(), [](const auto& result) {
    return result.status == Status::budget_exhausted;
  });
  return exhausted ? kExhausted : kInfeasible;
}

}  // namespace

Run add_explore(CLI::App& app) {
  auto options = std::make_shared<ExploreOptions>();
  Verb verb(app, "explore",
            "Plan all systems of a space and compare them, or search it for the best");
  verb.footer(
      "Example:\n  braid explore examples/explore/llama-3-70b.yaml --out sweep --plans\n\nA space "
      "says in YAML which models, chips, memories, networks and links are combined; "
      "docs/explore.md has its keys. Into the folder of --out go points.csv, pareto.csv, "
      "ratios.csv, a page (index.html) with heat maps, which are SVG files too, and "
      "points.sqlite, from which the same command goes on after an interruption. A space with "
      "'search' is not planned in full: there best.csv takes the place of pareto.csv and "
      "ratios.csv.");
  verb.add_option("SPACE", options->space, "The space to explore (YAML)").required();
  add_output_file(verb, "-o,--out", options->out, "Folder for results (default: they are printed)");
  verb.add_flag("--plans", options->plans,
                "Keep the plan of every point in plans/ of the folder of --out, for verify, report "
                "and export");
  verb.add_flag("--joint", options->joint,
                "Of a space with 'search': also say how much is lost by choosing the system first, "
                "for a fixed plan, and its own plan afterwards");
  add_count(verb, "--hysteresis", options->hysteresis, 1, 1000,
            "Of a space with 'search' and 'architectures': also say what Phaze's own search finds, "
            "which goes down in area and stops after N buckets of equal area without a better one "
            "(Phaze: 5 or 6)");
  add_count(verb, "--threads", options->threads, 1, 1024,
            "Threads; results do not depend on it (default: all cores)");
  verb.add_flag("--progress", options->progress, "Show progress even when not on a terminal");
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run(*options); };
}

}  // namespace braid
