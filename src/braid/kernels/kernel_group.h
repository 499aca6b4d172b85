#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "braid/base/least_squares.h"
#include "braid/kernels/form.h"

namespace braid {

/// Measured times of one operation on one chip by one backend in one format, and the form that is
/// fitted to them. Figures are in the order of the form's fields.
class KernelGroup {
 public:
  KernelGroup() = default;
  KernelGroup(const KernelGroup&) = delete;
  KernelGroup& operator=(const KernelGroup&) = delete;
  virtual ~KernelGroup() = default;

  std::string backend, format;
  std::vector<double> measured_s;
  std::vector<bool> held_out;  ///< Of each, whether fits must not see it.

  /// Bounds and starts; a start of 0 where a figure has no meaning.
  virtual std::vector<FreeFigure> figures() const = 0;
  /// Which figures are one for all groups of a chip.
  virtual std::vector<bool> of_chip() const = 0;
  /// The ways of each option. A choice is a number with these as the radices of its digits, the
  /// least significant first.
  virtual std::vector<int> options() const = 0;
  virtual KernelTime time(const std::vector<double>& figures, int choice,
                          std::size_t row) const = 0;
  virtual double time_of(const std::vector<double>& figures, int choice, std::size_t row,
                         int variant) const = 0;
};

/// A group of form `Form` (form.h).
template <class Form>
class FormGroup : public KernelGroup {
 public:
  using Figures = typename Form::Figures;
  typename Form::Setting setting;
  std::vector<typename Form::Shape> shapes;

  std::vector<FreeFigure> figures() const override {
    std::vector<FreeFigure> result;
    result.reserve(Form::kFields.size());
    for (const auto& field : Form::kFields) {
      const double start = Form::applies(field.name, setting) ? field.start : 0;
      result.push_back({field.least, field.most, start, 1});
    }
    return result;
  }
  std::vector<bool> of_chip() const override {
    std::vector<bool> result;
    result.reserve(Form::kFields.size());
    for (const auto& field : Form::kFields) result.push_back(field.of_chip);
    return result;
  }
  std::vector<int> options() const override {
    std::vector<int> result;
    result.reserve(Form::kOptions.size());
    for (const auto& option : Form::kOptions) result.push_back(option.ways);
    return result;
  }
  KernelTime time(const std::vector<double>& figures, int choice, std::size_t row) const override {
    return Form::time(unpacked(figures, choice), setting, shapes[row]);
  }
  double time_of(const std::vector<double>& figures, int choice, std::size_t row,
                 int variant) const override {
    return Form::time_of(unpacked(figures, choice), setting, shapes[row], variant);
  }

  static Figures unpacked(const std::vector<double>& figures, int choice) {
    Figures result;
    for (std::size_t i = 0; i < Form::kFields.size(); ++i) {
      result.*Form::kFields[i].field = figures[i];
    }
    for (const auto& option : Form::kOptions) {
      result.*option.field = choice % option.ways;
      choice /= option.ways;
    }
    return result;
  }
};

}  // namespace braid
