#include "braid/system/collective.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "braid/system/group_steps.h"
#include "braid/system/level_exchange.h"
#include "braid/system/links.h"
#include "braid/system/topology.h"

namespace braid {
namespace {

CollectiveTime hierarchical(const GroupSteps& steps, double bytes, double rounds) {
  CollectiveTime sum;
  for (std::size_t i = 0; i < steps.count; ++i) {
    const CollectiveTime part = level_exchange(steps.step[i], bytes, rounds);
    sum.time_s += part.time_s;
    sum.latency_s += part.latency_s;
    sum.algorithm = part.algorithm;
  }
  if (steps.count > 1) sum.algorithm = CollectiveAlgorithm::hierarchical;
  return sum;
}

/// One ring through all members, neighbours in a unit next to each other: the slowest link decides.
CollectiveTime flat_ring(const GroupSteps& steps, double bytes, double rounds) {
  double slowest = 0;
  double latency_s = 0;
  for (std::size_t i = 0; i < steps.count; ++i) {
    const LevelStep& step = steps.step[i];
    const double bandwidth =
        achieved_bytes_per_s(*step.level, step.flow_bandwidth, bytes / steps.size);
    slowest = i == 0 ? bandwidth : std::min(slowest, bandwidth);
    latency_s = std::max(latency_s, step.level->latency_s);
  }
  const double n = steps.size;
  return timed(rounds * (n - 1) * latency_s, rounds * (n - 1) / n * bytes / slowest,
               CollectiveAlgorithm::ring);
}

CollectiveTime all_to_all(const GroupSteps& steps, double bytes) {
  CollectiveTime result;
  result.algorithm = CollectiveAlgorithm::direct;
  double covered = 1;
  for (std::size_t i = 0; i < steps.count; ++i) {
    const LevelStep& step = steps.step[i];
    const double reach = covered * step.members;
    // What leaves a lower unit but not this level, for all its members together.
    const double leaving = bytes * (reach - covered) / steps.size * step.inner;
    double transfer_s = leaving / achieved_bytes_per_s(*step.level, step.group_bandwidth,
                                                       leaving / (reach - covered));
    const double across = bisection_load(*step.level, step.members);
    if (across > 0) {
      const double link = step.group_bandwidth * link_fraction(*step.level) /
                          group_fraction(*step.level, step.members);
      const double staying = step.inner * bytes * reach / steps.size;
      transfer_s =
          std::max(transfer_s,
                   across * staying / achieved_bytes_per_s(*step.level, link, bytes / steps.size));
    }
    result.time_s = std::max(result.time_s, transfer_s);
    result.latency_s = std::max(result.latency_s, step.level->latency_s);
    covered = reach;
  }
  result.time_s += result.latency_s;
  return result;
}

CollectiveTime broadcast(const GroupSteps& steps, double bytes) {
  // Pipelined through the levels: the slowest carries the whole tensor once.
  CollectiveTime result;
  result.algorithm = CollectiveAlgorithm::tree;
  for (std::size_t i = 0; i < steps.count; ++i) {
    const LevelStep& step = steps.step[i];
    result.time_s = std::max(
        result.time_s, bytes / achieved_bytes_per_s(*step.level, step.group_bandwidth, bytes));
    result.latency_s += log2_ceil(step.members) * step.level->latency_s;
  }
  result.time_s += result.latency_s;
  return result;
}

}  // namespace

std::string_view name_of(CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case CollectiveAlgorithm::none:
      return "none";
    case CollectiveAlgorithm::ring:
      return "ring";
    case CollectiveAlgorithm::tree:
      return "tree";
    case CollectiveAlgorithm::hierarchical:
      return "hierarchical";
    case CollectiveAlgorithm::direct:
      return "direct";
  }
  return "";
}

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all-reduce";
    case Collective::reduce_scatter:
      return "reduce-scatter";
    case Collective::all_gather:
      return "all-gather";
    case Collective::all_to_all:
      return "all-to-all";
    case Collective::broadcast:
      return "broadcast";
    case Collective::point_to_point:
      return "point-to-point";
  }
  return "";
}

CollectiveTime collective_time(Collective collective, double bytes, const GroupSpan& span,
                               const System& system) {
  const GroupSteps steps = steps_of(span, system);
  if (steps.count == 0 || bytes <= 0) return {};
  switch (collective) {
    case Collective::all_reduce:
      return better(hierarchical(steps, bytes, 2), flat_ring(steps, bytes, 2));
    case Collective::reduce_scatter:
    case Collective::all_gather:
      return better(hierarchical(steps, bytes, 1), flat_ring(steps, bytes, 1));
    case Collective::all_to_all:
      return all_to_all(steps, bytes);
    case Collective::broadcast:
      return broadcast(steps, bytes);
    case Collective::point_to_point: {
      const LevelStep& step = steps.step[steps.count - 1];
      const double link = link_fraction(*step.level) / group_fraction(*step.level, step.members);
      const double rate = achieved_bytes_per_s(*step.level, step.flow_bandwidth * link, bytes);
      return timed(step.level->latency_s, bytes / rate, CollectiveAlgorithm::direct);
    }
  }
  return {};
}

double sent_bytes(Collective collective, double bytes, double devices) {
  if (devices <= 1) return 0;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (devices - 1) / devices * bytes;
    case Collective::point_to_point:
      return bytes;
    default:
      return (devices - 1) / devices * bytes;
  }
}

double point_to_point_s(const System& system, std::int64_t from, std::int64_t to, double bytes,
                        std::int64_t concurrent) {
  return message_s(system, from, to, bytes, concurrent);
}

}  // namespace braid
