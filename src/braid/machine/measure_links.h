#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

/// Messages between processes of this machine, one after the other, and how long they take.
struct MessageTime {
  std::int64_t bytes = 0;  ///< Of all together.
  double time_s = 0;
  std::int64_t messages = 1;
};

struct LinkOptions {
  std::int64_t processes = 2;  ///< At least 2.
  std::int64_t largest_bytes = std::int64_t{16} << 20;
  std::int64_t rounds = 30;
  double limit_s = 60;
};

/// Processes in a ring over TCP on the loopback interface, as Gloo connects the processes of one
/// machine: each sends a message to the next while it receives one from the one before. Times of
/// rounds, the median over rounds and the mean over processes, for messages of 4 bytes up to the
/// largest by powers of four. Throws Error where the system gives no sockets or processes.
std::vector<MessageTime> measure_links(const LinkOptions& options = {});

/// What a message of any size takes: `latency_s + bytes / bytes_per_s`.
struct LinkFigures {
  double latency_s = 0, bytes_per_s = 0;
  double mean_error = 0;  ///< exp of the mean of |log(fitted / measured)|, less 1.
};

/// Least squares of the logarithms of fitted over measured times. At least two sizes.
LinkFigures fit_links(std::span<const MessageTime> times);

}  // namespace braid
