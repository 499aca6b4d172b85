#include "braid/run/torch/torch_decode.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <torch/types.h>
#include <unistd.h>

#include "braid/base/index.h"
#include "braid/base/temporary_folder.h"
#include "braid/run/torch/gloo_link.h"
#include "braid/run/torch/torch_tensor.h"
#include "braid/run/torch/torch_training.h"

namespace braid {
namespace {

constexpr double kTimeout_s = 120;

/// The numbers of a message as a tensor that shares them.
TensorHandle tensor_over(const std::vector<double>& numbers) {
  return handle_of(torch::from_blob(const_cast<double*>(numbers.data()), {std::ssize(numbers)},
                                    torch::kFloat64));
}

class RankDecodeLink : public DecodeLink {
 public:
  RankDecodeLink(RankLink& over, std::int32_t rank, std::int32_t ranks)
      : DecodeLink(rank, ranks), over_(over) {}

 protected:
  void transfer(std::span<const std::vector<double>> out,
                std::span<std::vector<double>> in) override {
    ++tag_;
    for (std::int32_t r = 0; r < ranks(); ++r) {
      if (r != rank() && !out[at(r)].empty()) over_.send(tensor_over(out[at(r)]), r, tag_);
    }
    for (std::int32_t r = 0; r < ranks(); ++r) {
      if (r != rank() && !in[at(r)].empty()) over_.receive(tensor_over(in[at(r)]), r, tag_);
    }
    over_.finish_sends();
  }

 private:
  RankLink& over_;
  std::int32_t tag_ = 0;
};

/// One rank by itself.
class OwnLink : public DecodeLink {
 public:
  OwnLink() : DecodeLink(0, 1) {}

 protected:
  void transfer(std::span<const std::vector<double>> /*out*/,
                std::span<std::vector<double>> /*in*/) override {}
};

/// All steps of all sequences by one process: outputs by step and sequence.
std::vector<std::vector<double>> decode_alone(DecodeTrial trial, int steps) {
  trial.ranks = 1;
  std::fill(trial.home.begin(), trial.home.end(), 0);
  RankTrial rank(trial, DecodeScheme::data, 0);
  OwnLink link;
  std::vector<std::vector<double>> outputs;
  outputs.reserve(at(steps));
  for (int s = 0; s < steps; ++s) outputs.push_back(rank.step(link));
  return outputs;
}

double most_apart(const std::vector<double>& all, const std::vector<double>& own,
                  const std::vector<std::size_t>& sequences) {
  const std::size_t size = sequences.empty() ? 0 : own.size() / sequences.size();
  double most = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    for (std::size_t n = 0; n < size; ++n) {
      const double apart = std::abs(own[i * size + n] - all[sequences[i] * size + n]);
      if (!(apart <= most)) most = apart;
    }
  }
  return most;
}

/// CPU time of this thread.
double thread_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

DecodeRun decode_as_rank(const DecodeTrial& trial, DecodeScheme scheme, int steps, bool check,
                         std::int32_t rank, const std::string& store) {
  set_torch_threads(1);
  const auto over = gloo_link({store, "", 0}, rank, trial.ranks, {}, kTimeout_s);
  const auto link = decode_link(*over, rank, trial.ranks);
  RankTrial mine(trial, scheme, rank);
  const auto alone =
      check ? decode_alone(trial, steps) : std::vector<std::vector<double>>(at(steps));
  DecodeRun run;
  run.step_s = run.computing_s = std::numeric_limits<double>::infinity();
  for (int s = 0; s < steps; ++s) {
    over->sum_of_all(0);
    const auto start = std::chrono::steady_clock::now();
    const double used_s = thread_s();
    const std::vector<double> output = mine.step(*link);
    run.computing_s = std::min(run.computing_s, thread_s() - used_s);
    run.step_s =
        std::min(run.step_s,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (check) run.apart = std::max(run.apart, most_apart(alone[at(s)], output, mine.returned()));
  }
  run.sent_bytes = link->sent_bytes();
  // Nobody leaves while others may still write to it.
  over->sum_of_all(0);
  return run;
}

/// A process, and the end of a pipe through which its result comes.
struct Started {
  pid_t pid = 0;
  int from = -1;
};

template <typename Work>
Started started(const Work& work) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe can be opened");
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("no process can be started");
  if (pid > 0) {
    close(ends[1]);
    return {pid, ends[0]};
  }
  int status = 1;
  try {
    const DecodeRun run = work();
    status = write(ends[1], &run, sizeof run) == ssize_t{sizeof run} ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::_Exit(status);
}

}  // namespace

std::unique_ptr<DecodeLink> decode_link(RankLink& over, std::int32_t rank, std::int32_t ranks) {
  return std::make_unique<RankDecodeLink>(over, rank, ranks);
}

DecodeRun decode_by_processes(const DecodeTrial& trial, DecodeScheme scheme, int steps,
                              bool check) {
  const TemporaryFolder folder;
  std::vector<Started> processes;
  processes.reserve(at(trial.ranks));
  for (std::int32_t r = 0; r < trial.ranks; ++r) {
    processes.push_back(
        started([&] { return decode_as_rank(trial, scheme, steps, check, r, folder / "store"); }));
  }
  DecodeRun all;
  bool failed = false;
  for (const Started& each : processes) {
    DecodeRun own;
    failed = read(each.from, &own, sizeof own) != ssize_t{sizeof own} || failed;
    close(each.from);
    waitpid(each.pid, nullptr, 0);
    all.step_s = std::max(all.step_s, own.step_s);
    all.computing_s = std::max(all.computing_s, own.computing_s);
    all.sent_bytes += own.sent_bytes;
    all.apart = std::max(all.apart, own.apart);
  }
  if (failed) throw std::runtime_error("a process that decodes has failed");
  return all;
}

}  // namespace braid
