#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "braid/serve/planned_worker.h"
#include "braid/serve/request_trace.h"
#include "braid/serve/worker_memory.h"
#include "braid/serve/worker_steps.h"

namespace braid {

/// What workers do: all, prompts alone, or decoding alone.
enum class SimulatedWork { all, prompts, decoding };

/// What steps of a worker take for requests of any lengths: StepModel at batches and contexts of
/// powers of two and between, asked once each and interpolated, with the corrections.
class SimulatedSteps {
 public:
  SimulatedSteps(const WorkerPlan& of, const ServingJob& job, bool disaggregated);

  const Worker& worker() const { return planned_.worker; }
  const WorkerMemory& memory() const { return memory_; }
  double most_sequences() const { return most_sequences_; }
  /// Prompts of `tokens` new ones that a step takes at most, all groups together.
  double prompts_at_once(double tokens) const;
  /// Of a step of `sequences` with `context` tokens each in the mean.
  double decode_s(double sequences, double context);
  /// Of the steps of `side` prompts of `tokens` each on every group, not corrected.
  double prompts_s(const PromptTokens& tokens, double side);
  /// What of a request a prefix cache has: its own cached tokens, else the job's share.
  PromptTokens prompt_of(const TracedRequest& request) const;
  /// Bytes of a request on a device of its group, as held_sequences() counts them.
  double bytes_of(const TracedRequest& request) const;
  /// Of a prompt's steps until its first token.
  double first_factor() const { return factors_.ttft; }
  /// By how much a first token comes later beside sequences whose steps take `decode_s`, the rest
  /// of the step under way aside.
  double late_s(double decode_s) const;
  /// Of a prompt's steps until the next ones: workers that decode beside are corrected as a whole.
  double step_factor() const { return disaggregated_ ? 1 : factors_.tpot; }
  /// Of requests alike, more than a worker can do a second: with as many sequences all the time as
  /// are best, and prompts together as is best. What comes faster waits longer and longer.
  double most_requests_per_s(SimulatedWork work, const TracedRequest& each);
  /// From the request to its prompt's step, and with two kinds of workers from there to the
  /// first token, the transfer of `tokens` included.
  double fixed_s(double tokens) const;

 private:
  double node_s(int batch, int context);

  PlannedWorker planned_;
  StepModel step_;
  WorkerMemory memory_;
  TimeFactors factors_;
  double most_sequences_, chunk_tokens_, cached_share_;
  bool disaggregated_;
  std::vector<double> batches_;
  std::unordered_map<std::uint64_t, double> decodes_;
  std::map<std::array<std::int64_t, 3>, double> prompts_;  ///< By tokens, cached ones, side.
};

/// When a request's prompt began, its first token came, it began to decode, and was done. The first
/// token has a correction of its own, so that it may come later than decoding begins.
struct SimulatedRequest {
  double begun_s = 0, first_s = 0, decoded_from_s = 0, done_s = 0;
};

/// One worker of a simulation. Requests are numbers into `requests` and `times`, which must stay.
class SimulatedWorker {
 public:
  SimulatedWorker(SimulatedSteps* steps, SimulatedWork work,
                  const std::vector<TracedRequest>* requests, std::vector<SimulatedRequest>* times)
      : steps_(steps), work_(work), requests_(requests), times_(times) {}

  /// A request that comes at `arrival_s`, which do not descend.
  void add(std::size_t request, double arrival_s) { waiting_.push_back({request, arrival_s}); }
  /// Takes the steps that begin before `until_s`.
  void advance(double until_s);
  /// Requests that it has at `now_s`, up to which it has advanced.
  std::size_t load(double now_s) const {
    return waiting_.size() + running_.size() + (running_.empty() && now_s_ > now_s ? 1 : 0);
  }

 private:
  struct Waiting {
    std::size_t request;
    double arrival_s;
  };
  struct Running {
    std::size_t request;
    double left, bytes;
  };
  bool has_room(const TracedRequest& request) const;
  void admit(std::size_t request);
  void take_prompts();
  void decode(double until_s);
  void progress(double tokens);

  SimulatedSteps* steps_;
  SimulatedWork work_;
  const std::vector<TracedRequest>* requests_;
  std::vector<SimulatedRequest>* times_;
  double now_s_ = 0, used_bytes_ = 0;
  double context_ = 0;  ///< Tokens in the caches of all that run.
  std::deque<Waiting> waiting_;
  std::vector<Running> running_;
};

}  // namespace braid
