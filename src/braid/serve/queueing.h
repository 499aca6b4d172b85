#pragma once

namespace braid {

/// Of k servers and requests that come at random, the chance that all are busy when one comes
/// (Erlang's C), at `load` busy servers in the mean; 1 from k on.
double erlang_c(double load, int servers);

/// The mean wait for one of k servers, requests coming at random (M/G/k), by Allen and Cunneen:
///
///     C(load, k) / (k - load) · service · (1 + c²) / 2
///
/// with c² the variance of the time of service over its square: exact for M/M/k and, with one
/// server, for any. Infinite where k servers cannot keep up.
double mean_wait_s(double rate, int servers, double service_s, double variation);

}  // namespace braid
