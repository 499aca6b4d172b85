#include "braid/planners/job/contradiction.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/planners/job/outcomes.h"

#include "base/pick.h"

namespace braid {
namespace {

using test::pick;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

SpaceLimits random_limits(std::mt19937_64& random) {
  SpaceLimits limits;
  limits.devices = pick(random, 1, 24);
  limits.devices_per_node = 8;
  limits.global_batch = pick(random, 1, 32);
  limits.layers = pick(random, 1, 9);
  limits.split.heads = pick(random, 0, 3) == 0 ? 0 : 1 << pick(random, 0, 4);
  limits.split.kv_heads = limits.split.heads;
  limits.split.experts = pick(random, 0, 1) == 0 ? 0 : 1 << pick(random, 1, 4);
  limits.split.seq_len = pick(random, 0, 4) == 0 ? 0 : 8 << pick(random, 0, 3);
  return limits;
}

Degrees random_degrees(std::mt19937_64& random) {
  if (pick(random, 0, 2) > 0) return {};
  std::vector<int> list;
  for (int i = pick(random, 0, 3); i > 0; --i) list.push_back(pick(random, 1, 12));
  Degrees degrees(list, pick(random, 0, 3) == 0 ? pick(random, 1, 8) : Degrees::kNoLimit);
  return degrees.at_least(1) ? degrees : Degrees();
}

SpaceOptions random_options(std::mt19937_64& random) {
  SpaceOptions options;
  for (Degrees SpaceOptions::*degree :
       {&SpaceOptions::tp, &SpaceOptions::pp, &SpaceOptions::dp, &SpaceOptions::cp,
        &SpaceOptions::ep, &SpaceOptions::vp, &SpaceOptions::micro_batch}) {
    options.*degree = random_degrees(random);
  }
  if (pick(random, 0, 3) == 0) options.sequence_parallel = pick(random, 0, 1) == 0;
  if (pick(random, 0, 3) == 0) options.schedule = static_cast<ScheduleKind>(pick(random, 0, 2));
  if (pick(random, 0, 4) == 0) options.zero = static_cast<Zero>(pick(random, 0, 3));
  options.all_devices = pick(random, 0, 2) == 0;
  if (pick(random, 0, 3) == 0) {
    TrainerLimits& can = options.can;
    can.most_stages = pick(random, 1, 4);
    can.expert_parallel = pick(random, 0, 1) == 0;
    can.ring_context_parallel = pick(random, 0, 1) == 0;
    can.zero = {Zero::none, Zero::optimizer, Zero::parameters};
    can.pipelined_zero = {Zero::none, Zero::optimizer};
    can.schedules = {ScheduleKind::one_f_one_b};
    can.sequence_parallel = {true};
  }
  return options;
}

// The walk with all rules finds a configuration where the space, listed in its own way, has one.
TEST(Contradiction, KnowsWhichSpacesAreEmpty) {
  std::mt19937_64 random(3);
  int empty = 0, full = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const SpaceLimits limits = random_limits(random);
    const SpaceOptions options = random_options(random);
    const bool any = !base_configurations(limits, options).empty();
    EXPECT_EQ(has_configuration(limits, options, kAllSpaceRules), any) << trial;
    ++(any ? full : empty);
  }
  EXPECT_GT(empty, 300);
  EXPECT_GT(full, 300);
}

// What is named leaves nothing of the space, and something without any one of it.
TEST(Contradiction, NamesLeastSets) {
  std::mt19937_64 random(8);
  int looked_at = 0, of_several = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const SpaceLimits limits = random_limits(random);
    SpaceOptions options = random_options(random);
    const auto why = contradiction(limits, options);
    ASSERT_EQ(why.has_value(), base_configurations(limits, options).empty()) << trial;
    if (!why) continue;
    ++looked_at;
    of_several += why->given.size() > 1 ? 1 : 0;
    SpaceOptions named = options;
    for (const GivenRestriction& one : given_restrictions(options)) {
      const bool is_named =
          std::any_of(why->given.begin(), why->given.end(),
                      [&](const GivenRestriction& other) { return other.text == one.text; });
      if (!is_named) one.take_back(named);
    }
    EXPECT_TRUE(base_configurations(limits, named).empty()) << trial;
    for (const GivenRestriction& one : why->given) {
      SpaceOptions without_one = named;
      one.take_back(without_one);
      EXPECT_FALSE(base_configurations(limits, without_one).empty()) << trial << " " << one.text;
    }
  }
  EXPECT_GT(looked_at, 300);
  EXPECT_GT(of_several, 30);
}

// What is named leaves no configuration on more devices, and where it is the job, none has any.
TEST(Contradiction, NamesWhatKeepsFromMoreDevices) {
  std::mt19937_64 random(23);
  int limited = 0, open = 0, of_job = 0;
  for (int trial = 0; trial < 800; ++trial) {
    const SpaceLimits limits = random_limits(random);
    SpaceOptions options = random_options(random);
    options.all_devices = false;
    const std::int64_t used = pick(random, 1, static_cast<int>(limits.devices));
    const auto has_more = [&](const SpaceOptions& space) {
      const std::vector<Configuration> all = base_configurations(limits, space);
      return std::any_of(all.begin(), all.end(), [&](const Configuration& c) {
        return std::int64_t{c.tp} * c.cp * c.pp * c.dp > used;
      });
    };
    SpaceOptions free = options;
    for (const GivenRestriction& one : given_restrictions(options)) one.take_back(free);
    const std::string text = device_limit(limits, options, used);
    if (text.empty()) {
      EXPECT_TRUE(used == limits.devices || has_more(options)) << trial;
      ++open;
      continue;
    }
    EXPECT_EQ(text == "of this job", !has_more(free)) << trial << ' ' << text;
    of_job += text == "of this job" ? 1 : 0;
    ++limited;
    EXPECT_FALSE(has_more(options)) << trial << ' ' << text;
    SpaceOptions named = options;
    for (const GivenRestriction& one : given_restrictions(options)) {
      if (text.find(one.text) == std::string::npos) one.take_back(named);
    }
    EXPECT_FALSE(has_more(named)) << trial << ' ' << text;
  }
  EXPECT_GT(limited, 100);
  EXPECT_GT(open, 100);
  EXPECT_GT(of_job, 20);
}

struct Combination {
  const char* what;
  std::function<void(SpaceLimits&, SpaceOptions&)> set;
  std::vector<std::string> named;
  std::vector<std::string> reasons;
};

const std::vector<Combination> kCombinations = {
    {"experts are not split over tp",
     [](SpaceLimits&, SpaceOptions& o) {
       o.tp = 8, o.ep = 64, o.micro_batch = 1, o.whole_experts = false;
     },
     {"--whole-experts off", "--tp 8", "--ep 64"},
     {"experts are split over data and context parallel ranks", "at most the 64 devices"}},
    {"whole experts need sequence parallelism",
     [](SpaceLimits&, SpaceOptions& o) { o.tp = 8, o.ep = 64, o.sequence_parallel = false; },
     {"--sequence-parallel off", "--tp 8", "--ep 64"},
     {"over tp where it leaves them whole"}},
    {"nor over pp",
     [](SpaceLimits&, SpaceOptions& o) { o.pp = 4, o.ep = 64, o.zero = Zero::optimizer; },
     {"--pp 4", "--ep 64"},
     {"not over pp"}},
    {"heads",
     [](SpaceLimits&, SpaceOptions& o) {
       o.tp = Degrees({3, 5}), o.pp = 2;
     },
     {"--tp 3,5"},
     {"tp divides the 32"}},
    {"sequence",
     [](SpaceLimits&, SpaceOptions& o) {
       o.cp = Degrees({3, 6});
     },
     {"--cp 3,6"},
     {"divide the sequence of 4096 tokens"}},
    {"experts",
     [](SpaceLimits&, SpaceOptions& o) { o.ep = Degrees({3}); },
     {"--ep 3"},
     {"ep divides the 128 experts"}},
    {"what goes together",
     [](SpaceLimits&, SpaceOptions& o) { o.ep = 2, o.cp = 4, o.dp = 1; },
     {},
     {}},
    {"devices",
     [](SpaceLimits&, SpaceOptions& o) {
       o.tp = Degrees({16, 32}), o.cp = 8;
     },
     {"--tp 16,32", "--cp 8"},
     {"tp·cp·pp·dp is at most the 64 devices"}},
    {"all devices",
     [](SpaceLimits&, SpaceOptions& o) {
       o.all_devices = true;
       o.pp = Degrees({3, 6});
     },
     {"--all-devices", "--pp 3,6"},
     {"tp·cp·pp·dp is all 64 devices"}},
    {"batch",
     [](SpaceLimits&, SpaceOptions& o) {
       o.dp = Degrees({32, 64});
       o.micro_batch = Degrees({8, 16});
     },
     {"--dp 32,64", "--micro-batch 8,16"},
     {"divides the global batch of 128"}},
    {"layers",
     [](SpaceLimits&, SpaceOptions& o) {
       o.pp = Degrees({8, 16}), o.vp = 7;
     },
     {"--pp 8,16", "--vp 7"},
     {"pp·vp is at most the 50 layers"}},
    {"interleaving",
     [](SpaceLimits&, SpaceOptions& o) {
       o.vp = 2;
       o.micro_batch = 128;
     },
     {"--vp 2", "--micro-batch 128"},
     {"several stages, with micro-batches in multiples"}},
    {"schedule",
     [](SpaceLimits&, SpaceOptions& o) {
       o.schedule = ScheduleKind::interleaved;
       o.pp = Degrees({3, 5});
     },
     {"--schedule interleaved", "--pp 3,5"},
     {"interleaving"}},
    {"limits",
     [](SpaceLimits&, SpaceOptions& o) {
       o.all_devices = true;
       o.tp = Degrees({}, 4);
       o.pp = Degrees({}, 2);
       o.dp = Degrees({}, 2);
       o.cp = Degrees({}, 2);
     },
     {"--all-devices", "--max-tp 4", "--max-pp 2", "--max-dp 2", "--max-cp 2"},
     {"is all 64 devices"}},
    {"trainer",
     [](SpaceLimits&, SpaceOptions& o) {
       o.can.pipelined_zero = {Zero::optimizer};
       o.zero = Zero::parameters;
       o.pp = 4;
     },
     {"--zero 3", "--pp 4"},
     {"the trainer has no ZeRO-3 with several stages"}},
    {"what a trainer does not combine",
     [](SpaceLimits&, SpaceOptions& o) {
       o.can.never = {{bit_of(FormTrait::tensor_parallel), bit_of(FormTrait::whole_experts), ""}};
       o.tp = 4, o.ep = 1;
     },
     {"--tp 4", "--ep 1"},
     {"the trainer has no tensor parallelism without whole experts"}},
};

TEST(Contradiction, SaysWhatIsAtFaultAndWhy) {
  for (const Combination& combination : kCombinations) {
    SpaceLimits limits;
    limits.devices = 64;
    limits.devices_per_node = 8;
    limits.global_batch = 128;
    limits.layers = 50;
    limits.split.heads = 32;
    limits.split.kv_heads = 4;
    limits.split.experts = 128;
    limits.split.seq_len = 4096;
    SpaceOptions options;
    combination.set(limits, options);
    const auto why = contradiction(limits, options);
    EXPECT_EQ(why.has_value(), !combination.named.empty()) << combination.what;
    if (!why) continue;
    std::vector<std::string> named;
    for (const GivenRestriction& one : why->given) named.push_back(one.text);
    EXPECT_THAT(named, ::testing::UnorderedElementsAreArray(combination.named)) << combination.what;
    const std::string text = text_of(*why, limits, options);
    for (const std::string& reason : combination.reasons) EXPECT_THAT(text, HasSubstr(reason));
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(Contradiction, OfAJobThatCannotBeAtAllNamesNoOption) {
  SpaceLimits limits;
  limits.global_batch = 3 * kMostPlannedPasses + 1;  // With large prime factors alone.
  limits.devices = 1;
  limits.global_batch = 1048583;  // A prime above the most passes; one micro-batch takes it.
  EXPECT_FALSE(contradiction(limits, {}).has_value());
  SpaceOptions one;
  one.micro_batch = 1;
  const auto why = contradiction(limits, one);
  ASSERT_TRUE(why.has_value());
  ASSERT_EQ(why->given.size(), 1U);
  EXPECT_THAT(text_of(*why, limits, one), HasSubstr("at most 1048576 forward passes"));
}

}  // namespace
}  // namespace braid
