#pragma once

#include <string>

namespace braid {

/// Three products in a row, each followed by an elementwise kernel, on four chips in a ring.
inline std::string small_setup_text() {
  return R"(# a comment
dataflow_graph {
  kernels { name: "up" id: 1 config: -1 fwd_bwd: FWD type: SYSTOLIC
    gemm_input1_weight { outer: 1 M: 4096 K: 1024 N: 512 tiling: N_TILING } }
  kernels { name: "act" id: 2 config: -1 type: SIMD
    elementwise_input1 { outer: 1 M: 4096 N: 512 tiling: N_TILING } }
  kernels { name: "down" id: 3 config: -1 type: SYSTOLIC
    gemm_input1_weight { outer: 1 M: 1024 K: 4096 N: 512 tiling: N_TILING } }
  kernels { name: "norm" id: 4 config: -1 type: SIMD
    elementwise_input1 { outer: 1 M: 1024 N: 512 tiling: N_TILING } }
  connections { startIdx: 1 endIdx: 2 id: 1 }
  connections { startIdx: 2 endIdx: 3 id: 2 }
  connections { startIdx: 3 endIdx: 4 id: 3 }
}
system {
  num_chip: 4
  accelerator { core: 64 systolic_width: 32 systolic_height: 8 sram_cap: 8388608.0 freq: 1.0 }
  r { x: 4 link_bw_x: 50.0 par_x: "TP" }
  memory { dram_bw: 200.0 dram_cap: 1e11 }
}
cost { accelerator_price: 1000.0 accelerator_power: 100 link_unit_price: 2 switch_unit_price: 24
  dram_unit_price: 1 link_unit_power_x: 0.05 switch_unit_power: 0.05 dram_unit_power: 0.16 }
execution {
  llm { hidden_dim: 1024 head_dim: 128 num_head: 8 seq_len: 512 num_layer: 12
    global_batch_size: 32 micro_batch_size: 1 tile_size: 1 }
  execution_style: DATAFLOW
  num_config: 4
  perfect_overlap: true
  compute_util: 0.9
  word: 2
}
gurobi { thread: 8 gap: 0.001 time: 60 }
)";
}

/// `text` with the first `from` replaced by `to`.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

}  // namespace braid
