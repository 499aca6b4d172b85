#include <algorithm>
#include <cmath>

#include "braid/base/least_squares.h"
#include "braid/machine/measure_links.h"

namespace braid {

LinkFigures fit_links(std::span<const MessageTime> times) {
  LeastSquares problem;
  problem.figures = {{1e-9, 1}, {1e3, 1e13}};
  problem.weights.assign(times.size(), 1);
  problem.loss = huber_loss(1);
  problem.residuals = [&](const std::vector<double>& figures) {
    std::vector<double> residuals;
    residuals.reserve(times.size());
    for (const MessageTime& each : times) {
      const double fitted_s = static_cast<double>(each.messages) * figures[0] +
                              static_cast<double>(each.bytes) / figures[1];
      residuals.push_back(std::log(fitted_s / each.time_s));
    }
    return residuals;
  };
  const MessageTime& last = times.back();
  constexpr int steps = 60;
  const Descent fit =
      descend(problem, {times.front().time_s, static_cast<double>(last.bytes) / last.time_s},
              {steps, 1e-9, true});
  LinkFigures link{fit.figures[0], fit.figures[1], 0};
  double sum = 0;
  for (const double residual : problem.residuals(fit.figures)) sum += std::abs(residual);
  link.mean_error = std::exp(sum / static_cast<double>(times.size())) - 1;
  return link;
}

}  // namespace braid
