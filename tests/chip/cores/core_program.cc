#include "chip/cores/core_program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace braid {
namespace {

/// Writes the program of the operators that take a core.
class ProgramWriter {
 public:
  explicit ProgramWriter(const CoreProblem& problem) : cores_(problem.cores) {
    const std::size_t all = problem.operators.size();
    std::vector<std::vector<bool>> reaches(all, std::vector<bool>(all, false));
    for (const auto& [from, to] : problem.edges) {
      reaches[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] = true;
    }
    for (std::size_t k = 0; k < all; ++k) {
      for (std::size_t i = 0; i < all; ++i) {
        for (std::size_t j = 0; j < all; ++j) {
          if (reaches[i][k] && reaches[k][j]) reaches[i][j] = true;
        }
      }
    }
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < all; ++i) {
      if (problem.operators[i].kind != CoreKind::none) kept.push_back(i);
    }
    double one = 0, spread = 0;
    for (const std::size_t i : kept) {
      operators_.push_back(problem.operators[i]);
      one += operators_.back().one_core_s;
      spread += operators_.back().all_cores_s;
      before_.emplace_back();
      for (const std::size_t j : kept) before_.back().push_back(reaches[i][j]);
    }
    horizon_ = std::min(one, spread);
  }

  std::string text() {
    out_.precision(15);
    out_ << "Minimize\n obj: T\nSubject To\n";
    times();
    order();
    cores();
    out_ << "Binaries\n";
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      out_ << var("y", i) << "\n";
      for (std::size_t j = 0; j < operators_.size(); ++j) {
        if (i != j) out_ << var("x", i, j) << "\n";
      }
      for (std::size_t c = 0; c < tensors(); ++c) out_ << var("zt", i, c) << "\n";
      for (std::size_t c = 0; c < vectors(); ++c) out_ << var("zv", i, c) << "\n";
    }
    out_ << "End\n";
    return out_.str();
  }

 private:
  static std::string var(const char* name, std::size_t i) { return name + std::to_string(i); }
  static std::string var(const char* name, std::size_t i, std::size_t j) {
    return name + std::to_string(i) + "_" + std::to_string(j);
  }
  std::size_t tensors() const { return static_cast<std::size_t>(cores_.tensor); }
  std::size_t vectors() const { return static_cast<std::size_t>(cores_.vector); }
  bool comparable(std::size_t i, std::size_t j) const { return before_[i][j] || before_[j][i]; }

  void times() {  // (1), (2), (7), (8)
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      const CoreOperator& op = operators_[i];
      out_ << "T - " << var("t", i) << " - " << var("p", i) << " >= 0\n";
      out_ << var("p", i) << " + " << op.one_core_s - op.all_cores_s << " " << var("y", i) << " = "
           << op.one_core_s << "\n";
      for (std::size_t j = 0; j < operators_.size(); ++j) {
        if (before_[i][j]) {
          out_ << var("t", j) << " - " << var("t", i) << " - " << var("p", i) << " >= 0\n";
        } else if (i != j && !comparable(i, j)) {
          out_ << var("t", j) << " - " << var("t", i) << " - " << var("p", i) << " - " << horizon_
               << " " << var("x", i, j) << " >= " << -horizon_ << "\n";
        }
      }
    }
  }

  void order() {  // (3) to (6), (9)
    const std::size_t count = operators_.size();
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) {
        if (i == j) continue;
        if (i < j) out_ << var("x", i, j) << " + " << var("x", j, i) << " <= 1\n";
        if (before_[i][j]) {
          out_ << var("x", i, j) << " = 1\n" << var("x", j, i) << " = 0\n";
        } else if (!comparable(i, j)) {
          out_ << var("x", i, j) << " + " << var("x", j, i) << " - " << var("y", i) << " >= 0\n";
        }
        for (std::size_t k = 0; k < count; ++k) {
          if (k == i || k == j) continue;
          out_ << var("x", i, k) << " - " << var("x", i, j) << " - " << var("x", j, k)
               << " >= -1\n";
        }
      }
    }
  }

  void cores() {  // (10) to (16)
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      const CoreKind kind = operators_[i].kind;
      assigned("zt", i, tensors(), needs_tensor_core(kind));
      assigned("zv", i, vectors(), needs_vector_core(kind));
      if (kind == CoreKind::fused) {
        for (std::size_t c = 0; c < std::min(tensors(), vectors()); ++c) {
          out_ << var("zt", i, c) << " - " << var("zv", i, c) << " = 0\n";
        }
      }
      for (std::size_t j = i + 1; j < operators_.size(); ++j) {
        if (comparable(i, j)) continue;
        apart("zt", i, j, tensors());
        apart("zv", i, j, vectors());
      }
    }
  }
  void assigned(const char* name, std::size_t i, std::size_t cores, bool needed) {
    if (!needed) {
      for (std::size_t c = 0; c < cores; ++c) out_ << var(name, i, c) << " = 0\n";
      return;
    }
    out_ << var("y", i);
    for (std::size_t c = 0; c < cores; ++c) out_ << " + " << var(name, i, c);
    out_ << " = 1\n";
  }
  void apart(const char* name, std::size_t i, std::size_t j, std::size_t cores) {
    for (std::size_t c = 0; c < cores; ++c) {
      out_ << var("x", i, j) << " + " << var("x", j, i) << " - " << var(name, i, c) << " - "
           << var(name, j, c) << " >= -1\n";
    }
  }

  CoreCounts cores_;
  std::vector<CoreOperator> operators_;
  std::vector<std::vector<bool>> before_;
  double horizon_ = 0;
  std::ostringstream out_;
};

}  // namespace

std::string core_program(const CoreProblem& problem) { return ProgramWriter(problem).text(); }

bool has_cbc() { return std::system("command -v cbc > /dev/null 2>&1") == 0; }

ProgramAnswer answer_of_core_program(const CoreProblem& problem, const std::string& name,
                                     int seconds) {
  const bool any = std::any_of(problem.operators.begin(), problem.operators.end(),
                               [](const auto& op) { return op.kind != CoreKind::none; });
  if (!any) return {0.0, true};
  const std::string path = (std::filesystem::temp_directory_path() / ("braid_" + name)).string();
  std::ofstream(path + ".lp") << core_program(problem);
  const std::string limit = seconds > 0 ? " sec " + std::to_string(seconds) : "";
  const std::string command = "cbc '" + path + ".lp' ratio 0 allow 1e-9" + limit +
                              " solve solution '" + path + ".txt' > /dev/null 2>&1";
  ProgramAnswer answer;
  if (std::system(command.c_str()) == 0) {
    std::ifstream file(path + ".txt");
    std::string line;
    std::getline(file, line);
    answer.proven = line.rfind("Optimal", 0) == 0;
    const bool stopped =
        line.rfind("Stopped", 0) == 0 && line.find("no integer") == std::string::npos;
    if (answer.proven || stopped) {
      answer.makespan = std::strtod(line.c_str() + line.rfind(' '), nullptr);
    }
  }
  std::remove((path + ".lp").c_str());
  std::remove((path + ".txt").c_str());
  return answer;
}

std::optional<double> solve_core_program(const CoreProblem& problem, const std::string& name,
                                         int seconds) {
  const ProgramAnswer answer = answer_of_core_program(problem, name, seconds);
  return answer.proven ? answer.makespan : std::nullopt;
}

}  // namespace braid
