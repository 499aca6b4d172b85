#pragma once

#include <string>

#include "braid/serve/launch/launch_lines.h"

namespace braid {

// Disaggregated services on Kubernetes. Workers that are larger than a node of the system have a
// pod on each of the nodes that they take. Names of the model are as in the launch lines.

/// A DynamoGraphDeployment (nvidia.com/v1beta1) of NVIDIA Dynamo: a frontend, prefill
/// and decode workers. Fields and arguments are those of examples/backends/*/deploy/v1beta1 of
/// ai-dynamo/dynamo; images are those of its release 1.3.1. TensorRT-LLM's options stand in
/// --override-engine-args.
std::string dynamo_manifest(const ServingPlan& plan, const LaunchNames& names,
                            std::int64_t devices_per_node);

/// LeaderWorkerSets (leaderworkerset.x-k8s.io/v1) for llm-d, one for prefill workers and one
/// for decode workers, with labels, ports and routing sidecar as in guides/pd-disaggregation and
/// guides/wide-ep-lws of llm-d/llm-d; images are to be filled in, as there. Empty for TensorRT-LLM,
/// which these guides do not disaggregate, and for workers whose attention groups lie across nodes.
std::string llm_d_manifest(const ServingPlan& plan, const LaunchNames& names,
                           std::int64_t devices_per_node);

}  // namespace braid
