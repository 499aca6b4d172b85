#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "braid/serve/launch/launch_lines.h"

namespace braid {

/// A kind of worker with the pods that one of it takes.
struct WorkerPods {
  WorkerPods(const WorkerPlan& plan, WorkerRole what, std::int64_t devices_per_node);

  const WorkerPlan& of;
  WorkerRole role;
  std::int64_t nodes, devices;  ///< Pods of a worker; GPUs of each.

  const char* name() const { return role == WorkerRole::prompts ? "prefill" : "decode"; }
  /// Whether every attention group lies on one pod, or the worker has one alone.
  bool groups_fit_pods() const;
};

/// The arguments of a worker's launch line: what stands behind `program`, the words that start the
/// engine.
std::vector<std::string> launch_arguments(const WorkerPods& pods, const LaunchNames& names,
                                          std::span<const std::string_view> program);

/// What manifests of services tell an engine beside its launch line: one file for each engine.
struct EngineManifest {
  /// Dynamo: `python3 -m MODULE` in the container nvcr.io/nvidia/ai-dynamo/IMAGE-runtime.
  std::string_view dynamo_module, dynamo_image;
  std::vector<std::string> (*dynamo_arguments)(const WorkerPods& pods, const LaunchNames& names);

  /// llm-d: the words that start the engine. Empty: its guides do not disaggregate this engine.
  std::span<const std::string_view> program = {};
  std::span<const std::string_view> more_arguments = {};  ///< Behind the port.
  std::string_view address_variable =
      {};  ///< Environment variable of the pod's address; may be empty.
  std::span<const std::string_view> sidecar_arguments = {};
  /// What each pod of a worker of several is told, as lines of the shell.
  std::string (*lines_of_nodes)(const WorkerPods& pods) = nullptr;
  bool groups_across_pods = false;  ///< An attention group may lie on several pods.
};

extern const EngineManifest kVllmManifest, kSglangManifest, kTrtllmManifest;

}  // namespace braid
