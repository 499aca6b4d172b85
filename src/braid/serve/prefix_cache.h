#pragma once

#include <optional>
#include <vector>

#include "braid/serve/request_trace.h"
#include "braid/serve/serving_plan.h"

namespace braid {

/// Whether any request has hashes of its blocks.
bool has_hashes(const std::vector<TracedRequest>& requests);

/// Tokens of a block of a trace's hashes: the power of two by which every request that has hashes
/// has one for each block of its input, the last one in part, or for each whole block. nullopt: no
/// request has any. Throws Error naming `file` where no such size explains their numbers.
std::optional<double> prefix_block_tokens(const std::vector<TracedRequest>& requests,
                                          const std::string& file);

/// Of each request's input, the tokens that a prefix cache has when it comes: its first blocks, as
/// far as all are there, but for one token at least. Requests leave the blocks of their inputs, and
/// blocks of their outputs that no other has. A cache of `capacity_tokens`, which may be infinite,
/// drops the blocks that were not asked for for longest (LRU), of a request the last first. One
/// cache stands for those of all workers, as where requests go to the worker that has their prefix.
/// Cost: constant for each block.
std::vector<double> prefix_hits(const std::vector<TracedRequest>& requests, double block_tokens,
                                double capacity_tokens);

/// Tokens that the caches of a plan's workers that run prompts have room for, those of sequences
/// that run included.
double cache_tokens(const ServingPlan& plan, const ServingJob& job);

/// What the prefix cache has of a trace's input, in tokens' share.
struct PrefixCaching {
  double block_tokens = 0;
  double endless_share = 0;  ///< In a cache without limit.
  double share = 0;          ///< In the caches of the plan's workers: what it is planned for.
};

/// The plan for a trace with hashes. It is planned for a cache without limit first, then for what
/// the caches of the workers that were found have, until these have no less than was planned for,
/// at most eight times. Sets the job's share and every request's cached tokens. Throws Error as
/// plan_serving() does.
struct PrefixPlan {
  ServingOutcome outcome;
  PrefixCaching caching;
};
PrefixPlan plan_with_prefixes(double block_tokens, ServingJob& job,
                              std::vector<TracedRequest>& requests);

}  // namespace braid
