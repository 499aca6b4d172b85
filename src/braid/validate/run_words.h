#pragma once

#include <string>

#include "braid/plan/plan.h"

namespace braid {

/// What trainers and papers write in columns of words, read without regard to case. Each leaves its
/// result as it was where the text says nothing, and returns false for what it does not know, which
/// is never taken for something else.

/// Sharding in the words of ZeRO, PyTorch and Megatron; "offload" adds the optimizer in host
/// memory.
bool read_sharding(const std::string& text, Zero& zero, bool& offload_optimizer);

/// "none", "selective", "full", or whether there is any ("on", "checkpointing", "off").
bool read_recompute(const std::string& text, Recompute& recompute);

/// Whether only every second GEMM's output is kept and what lies between is done again, as
/// torchtitan's selective recomputation per operator has it ("selective per-op"): about half of the
/// forward pass (_get_custom_policy in its torchtitan/distributed/activation_checkpoint.py).
bool recomputes_every_second(const std::string& text);

/// Types as trainers spell them, scaling behind them or not ("float8 rowwise"). Of two that are
/// named at once the narrower one is that of GEMMs.
bool read_precision(const std::string& text, Precision& precision);

/// Order of a pipeline's passes: GPipe, 1F1B, interleaved. Schedules with passes of other kinds
/// (zero bubble, bidirectional) are not known.
bool read_schedule(const std::string& text, ScheduleKind& schedule);

}  // namespace braid
