#include "braid/validate/accuracy_text.h"

#include <array>

#include <fmt/format.h>

namespace braid {
namespace {

struct Figure {
  const char* head;
  std::string (*text)(const Accuracy&);
};
constexpr std::array kFigures = {
    Figure{"mean", [](const Accuracy& a) { return percent(a.mape); }},
    Figure{"median", [](const Accuracy& a) { return percent(a.median_ape); }},
    Figure{"bias", [](const Accuracy& a) { return signed_percent(a.bias); }},
    Figure{"p90", [](const Accuracy& a) { return percent(a.p90_ape); }},
    Figure{"worst", [](const Accuracy& a) { return signed_percent(a.worst); }},
    Figure{"rank",
           [](const Accuracy& a) {
             return a.ranked > 0 ? fmt::format("{:.3f}", a.spearman) : std::string("-");
           }},
    Figure{"regret",
           [](const Accuracy& a) { return a.ranked > 0 ? percent(a.regret) : std::string("-"); }},
    Figure{"one constant", [](const Accuracy& a) { return percent(a.constant_efficiency_mape); }},
    Figure{"bound", [](const Accuracy& a) { return percent(a.bound_mape); }},
    Figure{"within",
           [](const Accuracy& a) {
             return a.intervals > 0 ? fmt::format("{:.0f} %", 100 * a.covered) : std::string("-");
           }},
    Figure{"width",
           [](const Accuracy& a) {
             return a.intervals > 0 ? fmt::format("{:.0f} %", 100 * a.width) : std::string("-");
           }},
    Figure{"memory", [](const Accuracy& a) {
             return a.memory_runs > 0 ? percent(a.memory_mape) : std::string("-");
           }}};

}  // namespace

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::vector<std::string> accuracy_heads() {
  std::vector<std::string> heads;
  heads.reserve(kFigures.size());
  for (const Figure& figure : kFigures) heads.emplace_back(figure.head);
  return heads;
}

std::vector<std::string> accuracy_figures(const Accuracy& accuracy) {
  std::vector<std::string> texts;
  texts.reserve(kFigures.size());
  for (const Figure& figure : kFigures) {
    texts.push_back(accuracy.predicted > 0 ? figure.text(accuracy) : "-");
  }
  return texts;
}

std::string accuracy_legend() {
  return "Errors of iteration time, predicted / measured - 1: mean and median size, bias, what "
         "nine "
         "tenths of the runs stay below, worst. rank: Spearman's correlation between runs that "
         "split the same work in different ways; regret: how much longer than the best of them the "
         "one that is predicted to be the best took. one constant: mean error of the physical "
         "bound over one efficiency fitted to these very runs. bound: mean error of the bound "
         "itself. within: of how many runs the measured time lies in the 80 % interval (a run of "
         "the "
         "evidence does not count for itself); width: of that interval, of the predicted time. "
         "memory: mean error of the peak, where it was measured.";
}

}  // namespace braid
