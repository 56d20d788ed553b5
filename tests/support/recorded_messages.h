#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace espalier::test {

/// All bytes of a file; empty when it cannot be read.
std::string contents(const std::filesystem::path& path);

/// The names, without extension and sorted, of a folder's files with this extension (".json").
std::vector<std::string> stems_of(const std::filesystem::path& folder, const std::string& extension);

/// A stem as the name of a test: what is neither letter nor digit becomes '_'.
std::string test_name(const testing::TestParamInfo<std::string>& stem);

/// What the command shows of an error: its message and its help, a line each.
std::string lines_of(const Error& error);

/// Expects the text of folder/STEM.expected; with ESPALIER_RECORD in the environment, writes it first.
void expect_recorded(const std::filesystem::path& folder, const std::string& stem, const std::string& text);

}  // namespace espalier::test
