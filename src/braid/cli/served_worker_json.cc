#include "braid/cli/served_worker_json.h"

namespace braid {

Json to_json(const WorkerPlan& of) {
  return {{"engine", of.engine->name},
          {"precision", of.format.name},
          {"workers", of.workers},
          {"devices", of.layout.devices()},
          {"tp", of.layout.tp},
          {"pp", of.layout.pp},
          {"attention_dp", of.layout.dp},
          {"moe_tp", of.layout.moe_tp},
          {"moe_ep", of.layout.moe_ep},
          {"decode_cp", of.layout.cp},
          {"draft_tokens", of.draft_tokens},
          {"sequences", of.limits.sequences},
          {"chunk_tokens", of.limits.chunk_tokens}};
}

}  // namespace braid
