#include "braid/serve/prefix_cache.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <unordered_map>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/rounding.h"
#include "braid/serve/stated_times.h"

namespace braid {
namespace {

/// Blocks by when they were last asked for.
class BlockCache {
 public:
  explicit BlockCache(double most_blocks) : most_blocks_(most_blocks) {}

  bool has(std::int64_t hash) const { return places_.contains(hash); }

  /// The block of `hash` is asked for; kUnshared: one that nobody asks for again.
  void ask(std::int64_t hash) {
    if (hash != kUnshared) {
      const auto found = places_.find(hash);
      if (found != places_.end()) {
        blocks_.splice(blocks_.begin(), blocks_, found->second);
        return;
      }
    }
    blocks_.push_front(hash);
    if (hash != kUnshared) places_[hash] = blocks_.begin();
  }

  void drop_what_is_over() {
    while (static_cast<double>(blocks_.size()) > most_blocks_) {
      if (blocks_.back() != kUnshared) places_.erase(blocks_.back());
      blocks_.pop_back();
    }
  }

  static constexpr std::int64_t kUnshared = -1;

 private:
  double most_blocks_;
  std::list<std::int64_t> blocks_;  ///< Last asked for first.
  std::unordered_map<std::int64_t, std::list<std::int64_t>::iterator> places_;
};

double share_of(const std::vector<TracedRequest>& requests, const std::vector<double>& cached) {
  double all = 0, hits = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    all += requests[i].input_tokens;
    hits += cached[i];
  }
  return hits / all;
}

void set_cached(const std::vector<double>& cached, ServingJob& job,
                std::vector<TracedRequest>& requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].cached_tokens = cached[i];
  job.cached_share = share_of(requests, cached);
}

}  // namespace

bool has_hashes(const std::vector<TracedRequest>& requests) {
  return std::any_of(requests.begin(), requests.end(),
                     [](const TracedRequest& each) { return !each.blocks.empty(); });
}

std::optional<double> prefix_block_tokens(const std::vector<TracedRequest>& requests,
                                          const std::string& file) {
  if (!has_hashes(requests)) return std::nullopt;
  constexpr int kMostPower = 20;
  for (const bool in_part : {true, false}) {
    for (int power = 0; power <= kMostPower; ++power) {
      const double tokens = std::ldexp(1.0, power);
      const bool explains =
          std::all_of(requests.begin(), requests.end(), [&](const TracedRequest& each) {
            const double blocks = each.input_tokens / tokens;
            return each.blocks.empty() || static_cast<double>(each.blocks.size()) ==
                                              (in_part ? std::ceil(blocks) : std::floor(blocks));
          });
      if (explains) return tokens;
    }
  }
  throw Error(Where{file, 0, "hash_ids"},
              "no size of blocks gives every input as many hashes as it has",
              "leave them out, and say what a prefix cache has with --cached");
}

std::vector<double> prefix_hits(const std::vector<TracedRequest>& requests, double block_tokens,
                                double capacity_tokens) {
  const bool endless = std::isinf(capacity_tokens);
  BlockCache cache(capacity_tokens / block_tokens);
  std::vector<double> cached;
  cached.reserve(requests.size());
  for (const TracedRequest& request : requests) {
    std::size_t hits = 0;
    while (hits < request.blocks.size() && cache.has(request.blocks[hits])) ++hits;
    cached.push_back(std::min(static_cast<double>(hits) * block_tokens, request.input_tokens - 1));
    // Without hashes the input takes room all the same.
    const double own = request.output_tokens + (request.blocks.empty() ? request.input_tokens : 0);
    const double kept = endless ? 0 : std::min(own, capacity_tokens + block_tokens);
    const auto blocks = static_cast<std::int64_t>(std::ceil(kept / block_tokens));
    for (std::int64_t b = 0; b < blocks; ++b) cache.ask(BlockCache::kUnshared);
    for (auto block = request.blocks.rbegin(); block != request.blocks.rend(); ++block) {
      cache.ask(*block);
    }
    cache.drop_what_is_over();
  }
  return cached;
}

double cache_tokens(const ServingPlan& plan, const ServingJob& job) {
  const WorkerPlan& of = plan.disaggregated ? plan.prefill : plan.decode;
  const WorkerRoom room = worker_room(of, job);
  const double kept = kept_tokens(*of.engine, job.input_tokens, job.output_tokens);
  return static_cast<double>(of.workers * of.layout.dp) * room.memory.room_bytes /
         room.request_bytes * kept;
}

PrefixPlan plan_with_prefixes(double block_tokens, ServingJob& job,
                              std::vector<TracedRequest>& requests) {
  PrefixPlan found;
  found.caching.block_tokens = block_tokens;
  std::vector<double> cached =
      prefix_hits(requests, block_tokens, std::numeric_limits<double>::infinity());
  found.caching.endless_share = share_of(requests, cached);
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    set_cached(cached, job, requests);
    found.caching.share = job.cached_share;
    found.outcome = plan_serving(job);
    if (!found.outcome.plan) break;
    std::vector<double> held =
        prefix_hits(requests, block_tokens, cache_tokens(*found.outcome.plan, job));
    if (share_of(requests, held) >= job.cached_share * kBelowTolerance) break;
    cached = std::move(held);
  }
  return found;
}

}  // namespace braid
