#include "braid/serve/simulated_worker.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/serve/disaggregated.h"
#include "braid/serve/steady_state.h"

namespace braid {

SimulatedSteps::SimulatedSteps(const WorkerPlan& of, const ServingJob& job, bool disaggregated)
    : planned_(of, job),
      step_(planned_.worker),
      memory_(worker_memory(planned_.worker, of.limits.chunk_tokens)),
      factors_(
          factors_of(of.engine->corrections, corrected_runs_of(planned_.worker, disaggregated))),
      most_sequences_(of.limits.sequences),
      chunk_tokens_(of.limits.chunk_tokens),
      cached_share_(job.cached_share),
      disaggregated_(disaggregated) {
  const auto groups = static_cast<double>(of.layout.dp * of.layout.pp);
  // One more, so that the largest batch lies between two.
  batches_ = batch_sizes(2 * std::max(1.0, most_sequences_ / groups));
}

PromptTokens SimulatedSteps::prompt_of(const TracedRequest& request) const {
  if (!request.cached_tokens) {
    return RequestShape{request.input_tokens, request.output_tokens, cached_share_}.prompt();
  }
  const double added = std::max(1.0, request.input_tokens - *request.cached_tokens);
  return {added, std::max(0.0, request.input_tokens - added)};
}

double SimulatedSteps::bytes_of(const TracedRequest& request) const {
  const Engine& engine = *worker().engine;
  return memory_.of_sequence(kept_tokens(engine, request.input_tokens, request.output_tokens),
                             engine.block_tokens);
}

double SimulatedSteps::fixed_s(double tokens) const {
  const EngineFigures& figures = step_.figures();
  const double over_s =
      disaggregated_ ? figures.handover_s + cache_transfer_s(worker(), tokens) : 0;
  return factors_.ttft * (figures.request_s + over_s);
}

double SimulatedSteps::late_s(double decode_s) const {
  constexpr double kUnderWay = 0.5;
  const double steps = std::max(step_.figures().wait_steps - kUnderWay, 0.0);
  return factors_.ttft / factors_.tpot * steps * decode_s;
}

double SimulatedSteps::prompts_at_once(double tokens) const {
  const double side = std::max(1.0, std::floor(chunk_tokens_ / tokens));
  return side * static_cast<double>(worker().layout.dp);
}

double SimulatedSteps::node_s(int batch, int context) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(batch) * 64 + static_cast<std::uint64_t>(context);
  const auto found = decodes_.find(key);
  if (found != decodes_.end()) return found->second;
  const double batch_size = batches_[static_cast<std::size_t>(batch)];
  const double time_s = factors_.tpot * step_.time({batch_size, std::ldexp(1.0, context), 0, 0, 0});
  return decodes_[key] = time_s;
}

double SimulatedSteps::decode_s(double sequences, double context) {
  const ServingLayout& layout = worker().layout;
  const double own =
      std::clamp(sequences / static_cast<double>(layout.dp * layout.pp), 1.0, batches_.back());
  const auto above = std::lower_bound(batches_.begin(), batches_.end(), own);
  const int high = static_cast<int>(above - batches_.begin());
  const int low = std::max(high - 1, 0);
  const double low_size = batches_[static_cast<std::size_t>(low)];
  const double high_size = batches_[static_cast<std::size_t>(high)];
  const double share = high > low ? (own - low_size) / (high_size - low_size) : 0;
  // Attention is linear in the context, so that it may be interpolated between powers of two.
  const int power = std::max(0, static_cast<int>(std::floor(std::log2(std::max(context, 1.0)))));
  const double more = std::max(context, 1.0) / std::ldexp(1.0, power) - 1;
  const auto at = [&](int batch) {
    const double from_s = node_s(batch, power);
    return from_s + more * (node_s(batch, power + 1) - from_s);
  };
  const double low_s = at(low);
  return share > 0 ? low_s + share * (at(high) - low_s) : low_s;
}

double SimulatedSteps::prompts_s(const PromptTokens& tokens, double side) {
  // Rounded up to what kernels take at once anyway.
  constexpr double kTile = 64;
  const auto tiled = [](double count) { return std::ceil(count / kTile) * kTile; };
  const PromptTokens whole = {tokens.added < kTile ? tokens.added : tiled(tokens.added),
                              tiled(tokens.cached)};
  const std::array key = {static_cast<std::int64_t>(whole.added),
                          static_cast<std::int64_t>(whole.cached), static_cast<std::int64_t>(side)};
  const auto found = prompts_.find(key);
  if (found != prompts_.end()) return found->second;
  double time_s = 0;
  for (const CountedStep& one : prompt_steps(step_, whole, side, chunk_tokens_)) {
    time_s += one.count * step_.time(one.parts, one.shape, step_.figures());
  }
  return prompts_[key] = time_s;
}

double SimulatedSteps::most_requests_per_s(SimulatedWork work, const TracedRequest& each) {
  const ServingLayout& layout = worker().layout;
  double prompt_s = 0, decode_s = 0;  // Of a request.
  if (work != SimulatedWork::decoding) {
    const PromptTokens tokens = prompt_of(each);
    const double most = prompts_at_once(tokens.added) / static_cast<double>(layout.dp);
    const double together_s = std::min(prompts_s(tokens, 1), prompts_s(tokens, most) / most) /
                              static_cast<double>(layout.dp * layout.pp);
    prompt_s = step_factor() * together_s;
  }
  if (work != SimulatedWork::prompts && each.output_tokens > 1) {
    const double room = std::floor(static_cast<double>(layout.dp) * memory_.room_bytes /
                                   std::max(bytes_of(each), 1.0));
    const double most = std::max(1.0, std::min(most_sequences_, room));
    const double context = each.input_tokens + each.output_tokens / 2;
    std::vector<double> batches = batch_sizes(most);
    batches.push_back(most);
    decode_s = std::numeric_limits<double>::infinity();
    for (const double batch : batches) {
      decode_s = std::min(decode_s, this->decode_s(batch, context) / batch);
    }
    decode_s *= each.output_tokens - 1;
    // While prompts run, the others' tokens wait for a part of the time.
    prompt_s *= work == SimulatedWork::all ? step_.figures().stall : 1;
  }
  return 1 / (prompt_s + decode_s);
}

bool SimulatedWorker::has_room(const TracedRequest& request) const {
  const auto groups = static_cast<double>(steps_->worker().layout.dp);
  return static_cast<double>(running_.size()) < steps_->most_sequences() &&
         used_bytes_ + steps_->bytes_of(request) <= groups * steps_->memory().room_bytes;
}

void SimulatedWorker::admit(std::size_t request) {
  const TracedRequest& of = (*requests_)[request];
  const double bytes = steps_->bytes_of(of);
  used_bytes_ += bytes;
  context_ += of.input_tokens;
  running_.push_back({request, of.output_tokens - 1, bytes});
}

void SimulatedWorker::take_prompts() {
  const double first_tokens = steps_->prompt_of((*requests_)[waiting_.front().request]).added;
  const auto groups = static_cast<double>(steps_->worker().layout.dp);
  const double most = steps_->prompts_at_once(first_tokens);
  PromptTokens tokens;  // Of the longest.
  double count = 0;
  std::vector<std::size_t> taken;
  while (!waiting_.empty() && waiting_.front().arrival_s <= now_s_ && count < most) {
    const std::size_t request = waiting_.front().request;
    const TracedRequest& of = (*requests_)[request];
    if (work_ == SimulatedWork::all && !has_room(of)) break;
    const PromptTokens prompt = steps_->prompt_of(of);
    const double longest = std::max(tokens.added, prompt.added);
    if (count > 0 && count + 1 > steps_->prompts_at_once(longest)) break;
    tokens = {longest, std::max(tokens.cached, prompt.cached)};
    ++count;
    taken.push_back(request);
    waiting_.pop_front();
    if (work_ == SimulatedWork::all) admit(request);
  }
  const double side = std::ceil(count / groups);
  const double step_s = steps_->prompts_s(tokens, side);
  // Attention groups step together and begin their prompts together, as far as there are others
  // under way: prompts that come one by one share steps with those of other groups.
  const double together =
      std::max(count, std::min(groups * side, static_cast<double>(running_.size())));
  const double busy_s = steps_->step_factor() * step_s * count / together /
                        static_cast<double>(steps_->worker().layout.pp);
  const double held_up = steps_->worker().engine->figures.stall;
  const std::size_t before = running_.size() - (work_ == SimulatedWork::all ? taken.size() : 0);
  const double decode_s = before == 0
                              ? 0
                              : steps_->decode_s(static_cast<double>(before),
                                                 context_ / static_cast<double>(running_.size()));
  if (held_up < 1 && before > 0) {
    for (std::size_t i = 0; i < before; ++i) {
      const double gained = std::min(running_[i].left, (1 - held_up) * busy_s / decode_s);
      running_[i].left -= gained;
      context_ += gained;
    }
  }
  for (const std::size_t request : taken) {
    SimulatedRequest& times = (*times_)[request];
    times.begun_s = now_s_;
    times.first_s = now_s_ + steps_->first_factor() * step_s + steps_->late_s(decode_s);
    times.decoded_from_s = times.done_s = now_s_ + busy_s;
  }
  now_s_ += busy_s * std::max(1.0, before > 0 ? held_up : 1.0);
  progress(0);
}

void SimulatedWorker::progress(double tokens) {
  context_ += tokens * static_cast<double>(running_.size());
  for (Running& one : running_) {
    one.left -= tokens;
    if (one.left > 0) continue;
    const TracedRequest& of = (*requests_)[one.request];
    used_bytes_ -= one.bytes;
    context_ -= of.input_tokens + of.output_tokens - 1 - one.left;
    SimulatedRequest& times = (*times_)[one.request];
    times.done_s = std::max(times.decoded_from_s, now_s_);
  }
  std::erase_if(running_, [](const Running& one) { return one.left <= 0; });
  if (running_.empty()) context_ = used_bytes_ = 0;
}

void SimulatedWorker::decode(double until_s) {
  const auto count = static_cast<double>(running_.size());
  const double step_s = steps_->decode_s(count, std::max(1.0, context_ / count));
  double least = running_.front().left;
  for (const Running& one : running_) least = std::min(least, one.left);
  // Several steps at once where nothing changes between them.
  constexpr double kMostSteps = 16;
  const double to_arrival = std::max(1.0, std::floor((until_s - now_s_) / step_s));
  const double steps = std::min({std::max(1.0, std::ceil(least)), kMostSteps, to_arrival});
  now_s_ += steps * step_s;
  progress(steps);
}

void SimulatedWorker::advance(double until_s) {
  while (true) {
    if (running_.empty()) {
      if (waiting_.empty()) return;
      now_s_ = std::max(now_s_, waiting_.front().arrival_s);
    }
    if (now_s_ >= until_s) return;
    const bool waits = !waiting_.empty() && waiting_.front().arrival_s <= now_s_;
    if (work_ == SimulatedWork::decoding) {
      while (!waiting_.empty() && waiting_.front().arrival_s <= now_s_ &&
             has_room((*requests_)[waiting_.front().request])) {
        admit(waiting_.front().request);
        waiting_.pop_front();
      }
      progress(0);
      if (!running_.empty()) decode(waiting_.empty() ? until_s : waiting_.front().arrival_s);
    } else if (waits && (work_ == SimulatedWork::prompts ||
                         has_room((*requests_)[waiting_.front().request]))) {
      take_prompts();
    } else {
      decode(waiting_.empty() || waits ? until_s : std::min(until_s, waiting_.front().arrival_s));
    }
  }
}

}  // namespace braid
