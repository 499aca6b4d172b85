#pragma once

#include <string>

#include "braid/base/error.h"
#include "braid/trainers/megatron/export.h"

#include "report/plan_maker.h"

namespace braid::test {

/// A made-up plan of a small Llama: 8 heads, 4 of them for keys and values.
inline Plan gpt_plan(const Parallelism& parallel, int blocks = 4) {
  Plan plan = made_plan(parallel, blocks);
  ModelShape shape;
  shape.model_type = "llama";
  shape.first_block = 1;
  shape.blocks = blocks;
  shape.hidden = 1024;
  shape.heads = 8;
  shape.kv_heads = 4;
  shape.head_dim = 128;
  shape.inner = 4096;
  shape.vocab = 32000;
  shape.rotary_dim = 128;
  shape.rotary_base = 10000;
  shape.rotary = shape.gated = shape.rms = true;
  plan.shape = shape;
  return plan;
}

/// Why Megatron-LM's exporter refuses the plan; empty: it does not.
inline std::string megatron_refuses(const Plan& plan) {
  try {
    export_megatron(plan);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace braid::test
