#include "braid/serve/queueing.h"

#include <limits>

namespace braid {

double erlang_c(double load, int servers) {
  if (load >= servers) return 1;
  double blocked = 1;  // Erlang's B, one server more each time.
  for (int k = 1; k <= servers; ++k) blocked = load * blocked / (k + load * blocked);
  const double busy = load / servers;
  return blocked / (1 - busy * (1 - blocked));
}

double mean_wait_s(double rate, int servers, double service_s, double variation) {
  const double load = rate * service_s;
  if (load >= servers) return std::numeric_limits<double>::infinity();
  return erlang_c(load, servers) / (servers - load) * service_s * (1 + variation) / 2;
}

}  // namespace braid
