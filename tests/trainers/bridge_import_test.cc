#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/trainers/megatron-bridge/import.h"

#include "base/error_text.h"

namespace braid {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kRecipe =
    "import megatron.bridge\n"
    "cfg.model.pipeline_model_parallel_size = 4\n";

Import import_of(const std::string& lines, std::int64_t blocks) {
  ImportChoice choice;
  choice.blocks = blocks;
  return import_megatron_bridge(kRecipe + lines, "b.py", choice);
}

TEST(BridgeImport, DealsBlocksOutBetweenTheEnds) {
  EXPECT_THAT(import_of("", 80).chunk_blocks, IsEmpty());
  EXPECT_THAT(import_of("cfg.model.num_layers_in_first_pipeline_stage = 18\n"
                        "cfg.model.num_layers_in_last_pipeline_stage = 18\n",
                        80)
                  .chunk_blocks,
              ElementsAre(18, 22, 22, 18));
  EXPECT_THAT(import_of("cfg.model.num_layers_in_first_pipeline_stage = None\n"
                        "cfg.model.num_layers_in_last_pipeline_stage = 14\n"
                        "cfg.model.virtual_pipeline_model_parallel_size = 2\n",
                        80)
                  .chunk_blocks,
              ElementsAre(11, 11, 11, 7, 11, 11, 11, 7));
  EXPECT_THAT(import_of("cfg.model.account_for_embedding_in_pipeline_split = True\n"
                        "cfg.model.account_for_loss_in_pipeline_split = True\n",
                        78)
                  .chunk_blocks,
              ElementsAre(19, 20, 20, 19));
  // A layout says what all stages have.
  EXPECT_THAT(import_of("cfg.model.num_layers_in_first_pipeline_stage = 18\n"
                        "cfg.model.pipeline_model_parallel_layout = \"Ett|tt|tt|ttL\"\n",
                        8)
                  .chunk_blocks,
              ElementsAre(2, 2, 2, 2));
}

TEST(BridgeImport, NamesTheFieldThatDoesNotHold) {
  const std::string first = "cfg.model.num_layers_in_first_pipeline_stage = 18\n";
  EXPECT_THAT(
      error_text([&] { import_of(first, 79); }),
      HasSubstr("num_layers_in_first_pipeline_stage: 61 layers that are left do not go over "
                "3 stages"));
  EXPECT_THAT(error_text([&] { import_of(first, 0); }),
              HasSubstr("how many layers the model has is not said"));
  ImportChoice choice;
  choice.blocks_by_name = [](const std::string& name) { return name == "some/model" ? 78 : 0; };
  const std::string model = "cfg.model = AutoBridge.from_hf_pretrained(\"some/model\")\n";
  EXPECT_THAT(import_megatron_bridge(kRecipe + model + first, "b.py", choice).chunk_blocks,
              ElementsAre(18, 20, 20, 20));
}

}  // namespace
}  // namespace braid
