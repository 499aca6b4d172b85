#pragma once

#include <optional>
#include <string>

#include "braid/serve/serving_plan.h"

namespace braid::test {

/// What a worker refers to, kept together. Must stay where it is.
struct ServingFixture {
  ServingFixture(const std::string& model_name, const std::string& cluster,
                 const std::string& engine_name)
      : model(load_served_model(model_name)),
        system(load_system(cluster)),
        engine(load_engine(engine_name)),
        kernels(*load_kernels(system.groups.front().chip)) {}
  ServingFixture(const ServingFixture&) = delete;
  ServingFixture& operator=(const ServingFixture&) = delete;

  Worker worker(const std::string& precision, const ServingLayout& layout) const {
    return {&model, &engine, &system, &kernels, serving_format(model, precision), layout};
  }
  ServingJob job(double input_tokens, double output_tokens) const {
    ServingJob result;
    result.model = &model;
    result.system = &system;
    result.kernels = &kernels;
    result.engines = {&engine};
    result.formats = {serving_format(model, "fp8")};
    result.input_tokens = input_tokens;
    result.output_tokens = output_tokens;
    result.ttft_s = 2;
    result.tpot_s = 0.05;
    return result;
  }

  ServedModel model;
  System system;
  Engine engine;
  ChipKernels kernels;
};

}  // namespace braid::test
