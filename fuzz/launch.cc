#include "braid/serve/launch/launch_reader.h"
#include "braid/serve/launch/stated_service.h"

#include "fuzz/read_input.h"

// Command lines of serving engines. Files that they name are empty.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace braid;
  return fuzz::read_text(bytes, size, [](std::string_view text) {
    static const ServedModel model = load_served_model("deepseek-v3");
    const LaunchedService launched =
        read_launch_lines(text, "input", [](const std::string&) { return std::string(); });
    const StatedService stated = stated_service(launched, {model, 1024, ""}, "input");
    const ServingPlan& plan = stated.plan;
    fuzz::expect(plan.decode.workers >= 1 && plan.devices >= 1 && plan.devices <= 1024);
    fuzz::expect(plan.decode.limits.sequences >= 1 && plan.decode.limits.chunk_tokens > 0);
    const ServingLayout& layout = plan.decode.layout;
    fuzz::expect(layout.moe_tp * layout.moe_ep == layout.stage_devices());
  });
}
