#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/json.h"
#include "braid/base/parallel.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/cli/count_option.h"
#include "braid/cli/text_option.h"
#include "braid/cli/verb.h"
#include "braid/cli/verbs.h"
#include "braid/explore/findings.h"
#include "braid/explore/findings_csv.h"
#include "braid/explore/heat_map.h"
#include "braid/explore/space_reader.h"
#include "braid/explore/sweep.h"

namespace braid {
namespace {

constexpr std::size_t kMostPictured = 20'000;  ///< Points that pictures are drawn of.

struct ExploreOptions {
  std::string space, out;
  int threads = 0;
  bool json = false, progress = false;
};

/// All that is known of a space.
struct Findings {
  Sweep sweep;
  std::vector<std::size_t> pareto;
  std::vector<RatioFinding> ratios;
  double wall_s = 0;
};

std::string point_name(const Space& space, std::size_t number) {
  const SpacePoint point = point_of(space, number);
  std::string name;
  for (std::size_t axis = 0; axis < kSpaceAxes; ++axis) {
    const auto which = static_cast<SpaceAxis>(axis);
    if (size_of(space, which) == 1) continue;
    name += (name.empty() ? "" : " ") + std::string(value_name(space, which, point[axis]));
  }
  return name.empty() ? "the only point" : name;
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path)) {
    throw Error({path, 0, ""}, "cannot make this folder" + (error ? ": " + error.message() : ""),
                "give --out a folder that can be written");
  }
}

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
  for (std::size_t workload = 0; workload < space.workloads.size(); ++workload) {
    for (std::size_t way = 0; way < space.parallelisms.size(); ++way) {
      const std::string end = fmt::format("-{}-{}.svg", space.workloads[workload].name,
                                          name_of(space.parallelisms[way]));
      for (const SpaceFigure figure :
           {SpaceFigure::utilisation, SpaceFigure::per_usd, SpaceFigure::per_w}) {
        write_file(fmt::format("{}/{}{}", folder, name_of(figure), end),
                   heat_map_svg(space, results, workload, way, figure));
      }
      write_file(fmt::format("{}/breakdown{}", folder, end),
                 breakdown_svg(space, results, workload, way));
    }
  }
}

Json point_json(const Space& space, const PointResult& result, std::size_t number) {
  const SpacePoint point = point_of(space, number);
  Json json = Json::object();
  for (std::size_t axis = 0; axis < kSpaceAxes; ++axis) {
    const auto which = static_cast<SpaceAxis>(axis);
    json[std::string(name_of(which))] = value_name(space, which, point[axis]);
  }
  json["status"] = name_of(result.status);
  if (!is_found(result)) return json;
  json["time_s"] = result.time_s;
  json["lower_bound_s"] = result.lower_bound_s;
  json["utilisation"] = result.utilisation;
  json["flops_per_s"] = figure_of(result, SpaceFigure::throughput);
  json["price_usd"] = result.usd;
  json["power_w"] = result.watts;
  json["tp"] = result.tensor;
  json["pp"] = result.pipeline;
  json["dp"] = result.data;
  json["network"] = result.network;
  json["partitions"] = result.partitions;
  return json;
}

Json to_json(const Space& space, const Findings& findings) {
  Json json = Json::object();
  const std::vector<PointResult>& results = findings.sweep.results;
  json["space"] = space.name;
  json["points"] = Json::array();
  for (std::size_t number = 0; number < results.size(); ++number) {
    json["points"].push_back(point_json(space, results[number], number));
  }
  json["pareto"] = findings.pareto;
  json["ratios"] = Json::array();
  for (const RatioFinding& finding : findings.ratios) {
    const SpaceRatio& ratio = space.ratios[finding.ratio];
    Json entry = Json::object();
    entry["name"] = ratio.name;
    entry["of"] = name_of(ratio.figure);
    if (finding.parallelism) {
      entry["parallelism"] = name_of(space.parallelisms[*finding.parallelism]);
    }
    if (finding.value) entry["value"] = *finding.value;
    if (ratio.published > 0) entry["published"] = ratio.published;
    json["ratios"].push_back(std::move(entry));
  }
  json["search"] = {{"wall_s", findings.wall_s}, {"resumed", findings.sweep.resumed}};
  return json;
}

void print_ratios(const Space& space, const std::vector<RatioFinding>& findings) {
  if (findings.empty()) return;
  std::size_t width = 5;
  for (const SpaceRatio& ratio : space.ratios) width = std::max(width, ratio.name.size());
  fmt::print("\n{:<{}}  {:<11}", "ratio", width, "of");
  for (const SpaceParallelism way : space.parallelisms) fmt::print("  {:>7}", name_of(way));
  fmt::print("  {:>9}\n", "published");
  for (std::size_t i = 0; i < findings.size();) {
    const std::size_t index = findings[i].ratio;
    const SpaceRatio& ratio = space.ratios[index];
    fmt::print("{:<{}}  {:<11}", ratio.name, width, name_of(ratio.figure));
    std::size_t columns = 0;
    for (; i < findings.size() && findings[i].ratio == index; ++i, ++columns) {
      fmt::print("  {:>7}", findings[i].value ? fmt::format("{:.2f}", *findings[i].value) : "-");
    }
    for (; columns < space.parallelisms.size(); ++columns) fmt::print("  {:>7}", "");
    fmt::print("  {:>9}\n", ratio.published > 0 ? fmt::format("{:.2f}", ratio.published) : "");
  }
}

void print(const Space& space, const Findings& findings) {
  const std::vector<PointResult>& results = findings.sweep.results;
  const auto count = [&](MappingStatus status) {
    return std::count_if(results.begin(), results.end(),
                         [status](const PointResult& result) { return result.status == status; });
  };
  const auto points = [](std::size_t number) {
    return fmt::format("{} point{}", number, number == 1 ? "" : "s");
  };
  fmt::print("{}: {} in {} ({} optimal, {} with a gap, {} without a plan)\n", space.name,
             points(results.size()), format_seconds(findings.wall_s), count(MappingStatus::optimal),
             count(MappingStatus::feasible),
             count(MappingStatus::infeasible) + count(MappingStatus::exhausted));
  if (findings.sweep.resumed > 0) fmt::print("{} of them from before.\n", findings.sweep.resumed);
  fmt::print("\n{} that none beats in throughput, price and power:\n",
             points(findings.pareto.size()));
  fmt::print("{:>12}  {:>6}  {:>10}  {:>9}  {:<24}  point\n", "FLOP/s", "util", "USD", "W",
             "tp x pp x dp");
  constexpr std::size_t kMostRows = 40;
  std::size_t rows = 0;
  for (const std::size_t number : findings.pareto) {
    if (++rows > kMostRows) {
      fmt::print("and {} more\n", findings.pareto.size() - kMostRows);
      break;
    }
    const PointResult& result = results[number];
    fmt::print("{:>12.4g}  {:>5.1f}%  {:>10.4g}  {:>9.4g}  {:<24}  {}\n",
               figure_of(result, SpaceFigure::throughput), 100 * result.utilisation, result.usd,
               result.watts,
               fmt::format("{} x {} x {}", result.tensor, result.pipeline, result.data),
               point_name(space, number));
  }
  print_ratios(space, findings.ratios);
}

int run(const ExploreOptions& options) {
  const Space space = read_space(options.space);
  if (options.threads > 0) set_thread_count(options.threads);
  std::optional<PointStore> store;
  if (!options.out.empty()) {
    make_folder(options.out);
    store.emplace(options.out + "/points.sqlite",
                  fmt::format("braid {}\n{}", BRAID_VERSION, canonical_text(space)),
                  point_count(space));
  }
  const bool shows_progress = options.progress || (isatty(STDERR_FILENO) != 0 && !options.json);
  const std::size_t count = point_count(space);
  const auto start = std::chrono::steady_clock::now();
  auto shown = start;
  Findings findings;
  findings.sweep = sweep_space(space, store ? &*store : nullptr, [&](std::size_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (!shows_progress || (done < count && now - shown < std::chrono::milliseconds(200))) return;
    shown = now;
    fmt::print(stderr, "\r{} of {} points{}", done, count, done == count ? "\n" : "");
  });
  findings.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::vector<PointResult>& results = findings.sweep.results;
  findings.pareto = pareto_points(space, results);
  findings.ratios = find_ratios(space, results);
  if (!options.out.empty()) write_findings(options.out, space, findings);
  if (options.json) {
    fmt::print("{}", to_text(to_json(space, findings)));
  } else {
    print(space, findings);
  }
  if (std::any_of(results.begin(), results.end(), is_found)) return kFound;
  const bool exhausted = std::any_of(results.begin(), results.end(), [](const auto& result) {
    return result.status == MappingStatus::exhausted;
  });
  return exhausted ? kExhausted : kInfeasible;
}

}  // namespace

Run add_explore(CLI::App& app) {
  auto options = std::make_shared<ExploreOptions>();
  Verb verb(app, "explore", "Sweep chips, memories, networks and links, planning each");
  verb.footer(
      "Example:\n  braid explore examples/explore/gpt3-1t.yaml --out sweep\n\nWrites points.csv, "
      "pareto.csv, ratios.csv, index.html with heat maps (also as SVG) and points.sqlite into DIR. "
      "A sweep that was interrupted goes on "
      "where it was when it is started again with the same --out.");
  verb.add_option("SPACE", options->space, "The space to explore (YAML)").required();
  add_output_file(verb, "--out", options->out, "Folder for results");
  add_count(verb, "--threads", options->threads, 1, 1024, "Threads (default: all cores)");
  verb.add_flag("--progress", options->progress, "Show progress even when not on a terminal");
  verb.add_flag("--json", options->json, "Print exactly one JSON object");
  return [options] { return run(*options); };
}

}  // namespace braid
