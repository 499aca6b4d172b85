#include "braid/cli/run_cost_options.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/quantity.h"
#include "braid/base/text.h"
#include "braid/cli/text_option.h"

namespace braid {

void add_run_cost_options(Verb& verb, RunCostOptions& o) {
  add_text(verb, "--tokens", o.tokens,
           "Days, price and energy of a run on so many tokens: 15T, 300B, 2e12")
      .group("Output");
  const auto add = [&](const char* name, std::string& value, const char* help) {
    o.others.push_back(add_text(verb, name, value, help).group(kRunCosts));
  };
  add("--price-per-hour", o.price_per_hour,
      "What one node costs an hour, in USD (default: the cluster's file)");
  add("--mtbf", o.mtbf, "Mean time between failures of one device, e.g. '50000 h'");
  add("--save-time", o.save_time, "Time to save a checkpoint, e.g. '30 s' (default: by its size)");
  add("--load-time", o.load_time, "Time to load a checkpoint (default: by its size)");
  add("--restart-time", o.restart_time,
      "Time from a failure to the start of loading (default: 10 min)");
  add("--pue", o.pue, "What the site draws for each watt of the chips (default: 1)");
}

double parse_amount(const std::string& option, const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, code] = std::from_chars(text.data(), end, number);
  const std::string suffix(stopped, end);
  const std::size_t first = suffix.find_first_not_of(' ');
  const std::string unit = first == std::string::npos ? "" : suffix.substr(first);
  double factor = 0;
  for (const auto& [name, value] :
       {std::pair{"", 1.0}, std::pair{"k", 1e3}, std::pair{"K", 1e3}, std::pair{"M", 1e6},
        std::pair{"B", 1e9}, std::pair{"G", 1e9}, std::pair{"T", 1e12}}) {
    if (unit == name) factor = value;
  }
  if (code != std::errc() || factor == 0) {
    throw Error(Where{"", 0, option}, in_quotes(text) + " is no number",
                "write it like 15T, 300B or 2e12");
  }
  const double amount = number * factor;
  if (!(amount >= 1 && amount <= 1e18)) {
    throw Error(Where{"", 0, option}, text + " is out of range", "use 1 to 1e18");
  }
  return amount;
}

namespace {

/// A time of at least `least_s`.
double parse_time_s(const char* option, const std::string& text, double least_s) {
  constexpr double kMost_s = 1e12;
  const auto time_s = parse_quantity(text, Unit::seconds);
  if (!time_s) {
    throw Error(Where{"", 0, option}, in_quotes(text) + " is no time",
                "write it with its unit, such as '30 s', '10 min' or '50000 h'");
  }
  if (*time_s < least_s || *time_s > kMost_s) {
    throw Error(Where{"", 0, option}, text + " is out of range",
                fmt::format("use {:g} s to {:g} s", least_s, kMost_s));
  }
  return *time_s;
}

double parse_number(const char* option, const std::string& text, double least, double most) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || stopped != end) {
    throw Error(Where{"", 0, option}, in_quotes(text) + " is no number", "write digits only");
  }
  if (!(number >= least && number <= most)) {
    throw Error(Where{"", 0, option}, text + " is out of range",
                fmt::format("use {:g} to {:g}", least, most));
  }
  return number;
}

}  // namespace

std::optional<RunQuestion> run_question(const RunCostOptions& o) {
  if (o.tokens.empty()) {
    for (const VerbOption& option : o.others) {
      if (!option.given()) continue;
      throw Error(Where{"", 0, option.name()}, "is of a run, and no --tokens are given",
                  "add --tokens 15T, or leave it out");
    }
    return std::nullopt;
  }
  RunQuestion question;
  question.tokens = parse_amount("--tokens", o.tokens);
  FailureModel& failures = question.failures;
  if (!o.mtbf.empty()) failures.device_mtbf_s = parse_time_s("--mtbf", o.mtbf, 1);
  if (!o.save_time.empty()) failures.save_s = parse_time_s("--save-time", o.save_time, 1e-3);
  if (!o.load_time.empty()) failures.load_s = parse_time_s("--load-time", o.load_time, 0);
  if (!o.restart_time.empty()) {
    failures.restart_s = parse_time_s("--restart-time", o.restart_time, 0);
  }
  if (!o.pue.empty()) question.pue = parse_number("--pue", o.pue, 1, 10);
  return question;
}

void set_price(const RunCostOptions& o, System& system) {
  if (o.price_per_hour.empty()) return;
  const auto usd = parse_quantity(o.price_per_hour, Unit::usd);
  const double price = usd ? *usd : parse_number("--price-per-hour", o.price_per_hour, 0, 1e9);
  if (!(price >= 1e-6 && price <= 1e9)) {
    throw Error(Where{"", 0, "--price-per-hour"}, o.price_per_hour + " is out of range",
                "use 1e-06 to 1e+09 USD");
  }
  for (DeviceGroup& group : system.groups) group.node_usd_per_hour = price;
  std::erase_if(system.provenance,
                [](const Provenance& entry) { return entry.key == "price_per_hour"; });
  system.provenance.push_back({"price_per_hour", "--price-per-hour", false});
}

RunCosts costs_of_run(const Candidate& candidate, const RunQuestion& question) {
  RunCosts costs = run_costs(candidate, question);
  if (!(costs.goodput > 1e-6) || !std::isfinite(costs.wall_s)) {
    throw Error(Where{"", 0, "--mtbf"},
                fmt::format("the job fails every {} and takes {} to go on, so it makes no progress",
                            format_seconds(costs.mtbf_s),
                            format_seconds(question.failures.restart_s + costs.load_s)),
                "give more time between failures, or less for --restart-time, --save-time and "
                "--load-time");
  }
  return costs;
}

Json to_json(const RunCosts& costs) {
  const auto known = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  Json json = Json::object();
  json[costs.unit] = costs.tokens;
  json["iterations"] = costs.iterations;
  json["days"] = costs.wall_s / 86400;
  json["goodput"] = costs.goodput;
  json["compute_s"] = costs.compute_s;
  json["device_hours"] = costs.device_hours;
  json["usd"] = known(costs.usd);
  json["kwh"] = known(costs.kwh);
  json["mtbf_s"] = costs.mtbf_s;
  json["checkpoint"] = {{"bytes", costs.checkpoint_bytes},
                        {"save_s", costs.checkpoint_s},
                        {"load_s", costs.load_s},
                        {"interval_s", costs.checkpoint_interval_s}};
  json["assumptions"] = costs.assumptions;
  return json;
}

}  // namespace braid
