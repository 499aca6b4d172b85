#pragma once

#include <string>

#include <gtest/gtest.h>

#include "braid/base/error.h"

namespace braid {

/// The message of the Error that `action` throws; a test failure when it throws none.
template <class Action>
std::string error_text(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an Error";
  return {};
}

}  // namespace braid
