#include "braid/machine/measure_links.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <functional>
#include <sstream>
#include <string>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "braid/backend/measure/child_process.h"
#include "braid/backend/measure/measurement.h"
#include "braid/base/error.h"

namespace braid {
namespace {

constexpr std::int64_t kSmallest_bytes = 4;
constexpr std::int64_t kWarmUpRounds = 3;

[[noreturn]] void fail(const char* what) {
  throw Error(fmt::format("the loopback interface cannot be measured: no {}", what));
}

/// A file descriptor that is closed at the end.
class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// A TCP connection to this machine itself.
struct Connection {
  Socket sender, receiver;
};

void make_ready(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(socket.descriptor(), F_SETFL, O_NONBLOCK);
}

Connection connection() {
  const Socket listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (::bind(listener.descriptor(), any, size) != 0 || ::listen(listener.descriptor(), 1) != 0 ||
      ::getsockname(listener.descriptor(), any, &size) != 0) {
    fail("socket");
  }
  Socket sender(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(sender.descriptor(), any, size) != 0) fail("connection");
  Socket receiver(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  if (receiver.descriptor() < 0) fail("connection");
  make_ready(sender);
  make_ready(receiver);
  return {std::move(sender), std::move(receiver)};
}

/// Moves on by what the socket took or had; ends the process's work where the other end is gone.
void advance(ssize_t moved, std::size_t& done) {
  if (moved > 0) {
    done += static_cast<std::size_t>(moved);
  } else if (moved == 0 || (errno != EAGAIN && errno != EINTR)) {
    throw Error("a process of the ring has ended");
  }
}

/// Sends `sent` to the next process while `received` comes from the one before.
void exchange(int next, int before, const std::vector<char>& sent, std::vector<char>& received) {
  std::size_t out = 0;
  std::size_t in = 0;
  while (out < sent.size() || in < received.size()) {
    pollfd ends[] = {{out < sent.size() ? next : -1, POLLOUT, 0},
                     {in < received.size() ? before : -1, POLLIN, 0}};
    ::poll(ends, 2, -1);
    if (ends[0].revents != 0) {
      advance(::send(next, sent.data() + out, sent.size() - out, MSG_NOSIGNAL), out);
    }
    if (ends[1].revents != 0) {
      advance(::recv(before, received.data() + in, received.size() - in, 0), in);
    }
  }
}

/// What one process of the ring measures, a line for each size.
std::string times_of(int next, int before, const LinkOptions& options) {
  using Clock = std::chrono::steady_clock;
  std::string text;
  for (std::int64_t bytes = kSmallest_bytes; bytes <= options.largest_bytes; bytes *= 4) {
    const std::vector<char> sent(static_cast<std::size_t>(bytes), 'b');
    std::vector<char> received(sent.size());
    std::vector<double> samples_s;
    for (std::int64_t round = 0; round < kWarmUpRounds + options.rounds; ++round) {
      const auto start = Clock::now();
      exchange(next, before, sent, received);
      if (round < kWarmUpRounds) continue;
      samples_s.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    text += fmt::format("{:.17g}\n", summary_of(std::move(samples_s), 1).median_s);
  }
  return text;
}

/// Adds one process's times to the sums.
void add_times(const ChildAnswer& answer, std::vector<MessageTime>& sums) {
  if (!answer.problem.empty()) {
    throw Error("the loopback interface cannot be measured: a process " + answer.problem);
  }
  std::istringstream lines(answer.text);
  for (MessageTime& each : sums) {
    double time_s = 0;
    if (!(lines >> time_s)) fail("times came back");
    each.time_s += time_s;
  }
}

}  // namespace

std::vector<MessageTime> measure_links(const LinkOptions& options) {
  std::vector<Connection> ring;
  const auto count = static_cast<std::size_t>(options.processes);
  for (std::size_t i = 0; i < count; ++i) ring.push_back(connection());
  std::vector<std::function<std::string()>> works;
  for (std::size_t i = 0; i < count; ++i) {
    const int next = ring[i].sender.descriptor();
    const int before = ring[(i + count - 1) % count].receiver.descriptor();
    works.emplace_back([=, &options] { return times_of(next, before, options); });
  }
  std::vector<MessageTime> times;
  for (std::int64_t bytes = kSmallest_bytes; bytes <= options.largest_bytes; bytes *= 4) {
    times.push_back({bytes, 0});
  }
  for (const ChildAnswer& answer : run_in_children(works, options.limit_s)) {
    add_times(answer, times);
  }
  for (MessageTime& each : times) each.time_s /= static_cast<double>(count);
  return times;
}

}  // namespace braid
