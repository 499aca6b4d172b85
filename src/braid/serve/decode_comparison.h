#pragma once

#include <cstdint>
#include <vector>

#include "braid/serve/cache/decode_traffic.h"
#include "braid/serve/step_model.h"

namespace braid {

/// Sequences that decode together on all devices of a system, and how they may be sharded.
struct DecodeJob {
  const ServedModel* model =
      nullptr;  ///< Attention without windows, states or latents, no experts.
  const Engine* engine = nullptr;
  const System* system = nullptr;        ///< Homogeneous.
  const ChipKernels* kernels = nullptr;  ///< Of its chip.
  ServingFormat format;
  std::vector<double> lengths;  ///< Cached tokens of each sequence, in the order of arrival.
  double output_tokens = 512;   ///< That a sequence decodes in its life.
  double host_bytes_per_s = 0;  ///< Between one device and the host's memory.
  DeviceJoint joint = DeviceJoint::switched;
};

/// One way of dividing, whole steps of all layers.
struct DecodeEstimate {
  DecodeScheme scheme = DecodeScheme::data;
  DecodeTraffic layer;    ///< Bytes that a device sends for one layer.
  double compute_s = 0;   ///< Kernels, on the slowest device.
  double exchange_s = 0;  ///< Collectives.
  double host_s = 0;      ///< Engine's own time, block tables, evicted caches there and back.
  double imbalance = 1;   ///< Cached tokens of the fullest device over their mean.
  double waiting = 0;     ///< Sequences whose caches fit on no device, in the mean.
  double step_s() const { return compute_s + exchange_s + host_s; }
  double tokens_per_s = 0;
};

/// The estimate of each scheme that the model's heads allow, in the order of kDecodeSchemes.
///
/// - data: sequences go to devices in turn, and a step lasts as long as that of the device with the
///   longest ones. tensor: every device has all of them. cache: attention as for all sequences with
///   the N-th part of their tokens, all else as for data with equal parts.
/// - A device that cannot hold its caches lets sequences wait in the host's memory; each of these
///   crosses the host's link twice while it decodes output_tokens.
/// - Block tables, four bytes for each block of each of a device's sequences, go to it every step.
///   Those of `tensor` are as long as those of all sequences, those of `cache` the N-th part.
///
/// Empty where weights do not fit on one device, which all schemes but tensor keep whole. Throws
/// Error as StepModel does, and for other models.
std::vector<DecodeEstimate> compare_decoding(const DecodeJob& job);

/// `count` lengths from prefix · (1 - spread) to prefix · (1 + spread), evenly drawn with a fixed
/// seed.
std::vector<double> spread_lengths(double prefix, double spread, std::int64_t count);

/// The attention of the model's first layer, as decode_traffic() takes it.
DecodeLayer decode_layer(const ServedModel& model);

}  // namespace braid
