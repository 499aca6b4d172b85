#pragma once

#include <cstdint>
#include <string>

#include "braid/plan/plan.h"

namespace braid {

/// What decides whether a trainer has a job at all, however it is sharded. Nothing is owned.
struct TrainedJob {
  const std::string* model = nullptr;   ///< Its name.
  const std::string* source = nullptr;  ///< Its name in the zoo, or its file.
  const ModelShape* shape = nullptr;    ///< Null: not known.
  std::int64_t seq_len = 0;
  Precision precision;
  const System* system = nullptr;
};
TrainedJob trained_job(const Plan& plan);

/// Why a trainer has it not, as "has no precision fp16", and what to do; empty where it has.
struct JobRefusal {
  std::string reason, remedy;
};

/// Throws the Error "WHO REASON; REMEDY", unless there is none.
void throw_refusal(const std::string& who, const JobRefusal& refusal);

}  // namespace braid
