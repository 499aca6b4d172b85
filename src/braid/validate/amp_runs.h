#pragma once

#include "braid/base/csv.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// Whether a table is one of AMP's measured strategies (Li et al. 2022, NeurIPS, section 6): it has
/// the columns experiment, partition, measured_s and status.
bool is_amp_table(const CsvTable& table);

/// Its runs. What its rows leave to the paper is filled in by the name of the experiment: four
/// nodes of g4dn.12xlarge ("homogeneous"), three of p3.8xlarge and one of g4dn.12xlarge
/// ("het_cluster") with GPT-2 of 24 layers, four of p3.8xlarge with TransGAN ("het_model");
/// DeepSpeed's pipeline engine in fp16. Cuts are in the items of the authors' scripts and become
/// layers of each stage. Throws Error naming file, line and column: another experiment, a missing
/// column, a number of the wrong form.
MeasuredRuns amp_runs(const CsvTable& table);

}  // namespace braid
